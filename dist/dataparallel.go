package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A Loss is a registered function that computes the loss of a network over a batch, the mean over its samples.
type Loss[M nn.Module] struct {
	replica *shoal.Func[replica[M]]
}

// RegisterLoss registers f under a name. It is called in the declaration of a package-level variable, as shoal.Register is.
// What f computes lives in the scope, which is reset after each batch, and in which layers know whose statistics count.
//
//	var loss = dist.RegisterLoss("loss", func(s *autograd.Scope, net *Net, batch []*tensor.Tensor) *autograd.Var {
//		return nn.NLLLoss(net.Forward(s.Const(batch[0])), batch[1])
//	})
func RegisterLoss[M nn.Module](name string, f func(s *autograd.Scope, net M, batch []*tensor.Tensor) *autograd.Var) *Loss[M] {
	return &Loss[M]{shoal.Register(name, func(ctx context.Context, rank int, r replica[M]) error { return r.run(ctx, rank, f) })}
}

// A DataParallel computes gradients by several processes, each on its part of a batch, and leaves the rest of training to its
// caller: torch.nn.DataParallel. The replicas are equal because their parameters are the same memory, that of the network, in which the
// caller's optimizer changes them between batches.
//
// So are the buffers, which one replica writes: the running statistics of a BatchNorm2d are those of the batches' first parts, as
// in PyTorch. One goroutine at a time may use a DataParallel.
//
// On several devices each replica has a copy of the parameters and buffers on its own, which is made anew for each batch.
type DataParallel struct {
	group  *shoal.Group
	device tensor.Device // of the network
	pipes  []*ipc.Duplex[[]*tensor.Tensor, float64]
}

// A replica is the argument of a process.
type replica[M nn.Module] struct {
	Net   M
	Place tensor.Place
	Group *Group
	Pipe  *ipc.Duplex[float64, []*tensor.Tensor]
}

// NewDataParallel starts opts.Workers processes, by default as many as there are threads, with net, whose parameters and gradients
// move to shared memory. opts.CPUs confines each to a set of processors. When ctx ends the processes do. The caller closes it.
//
// What replicas draw, for dropout, is different in each, as in all workers (tensor.DefaultGenerator), and tensor.ManualSeed decides about
// all; goroutines draw from the caller's default generator itself.
//
// If devices are named there is one process for each of them, which computes there. The network is on the first, and gradients are added up there.
func NewDataParallel[M nn.Module](ctx context.Context, loss *Loss[M], net M, opts shoal.Options, devices ...tensor.Device) (_ *DataParallel, err error) {
	opts.Workers = cmp.Or(len(devices), opts.Workers, shoal.Threads())
	var home tensor.Device
	for p := range net.Params() {
		if home = p.T.Device(); len(devices) > 0 && home != devices[0] {
			return nil, fmt.Errorf("%w: parameter %s is on %v, and the first device is %v", ErrTensor, p.Name, tensor.Place{Device: home}, tensor.Place{Device: devices[0]})
		}
	}
	if len(devices) == 0 {
		devices = slices.Repeat([]tensor.Device{home}, opts.Workers)
	}
	gradients(net.Params()) // those that exist are sent, and shared
	group, err := NewGroup(opts.Workers)
	if err != nil {
		return nil, err
	}
	defer group.Close() // the processes have it
	d := &DataParallel{group: shoal.NewGroup(ctx, opts), device: home}
	for _, dev := range devices {
		ours, theirs, err := ipc.Pipe2[[]*tensor.Tensor, float64]()
		if err != nil {
			err = errors.Join(err, d.group.Close()) // they may be waiting for those that there will not be
			d.Close()
			return nil, err
		}
		d.pipes = append(d.pipes, ours)
		loss.replica.Go(d.group, replica[M]{net, tensor.Place{Device: dev}, group, theirs})
		theirs.Close()
	}
	return d, nil
}

// Backward adds the gradient of the loss over a batch to the gradients of the parameters, as if one process had computed it, and
// returns the loss. The tensors of the batch have one sample for each index of their first dimension; they move to shared memory,
// where the processes find their parts. If a process fails, the error is that of shoal.Group.Wait, and d is closed.
func (d *DataParallel) Backward(ctx context.Context, batch ...*tensor.Tensor) (loss float64, err error) {
	if d.pipes == nil {
		return 0, ErrClosed
	}
	if len(batch) == 0 {
		return 0, fmt.Errorf("%w: a batch of no tensors", ErrTensor)
	}
	for _, t := range batch {
		if t.Dims() == 0 || t.Dim(0) != batch[0].Dim(0) {
			return 0, fmt.Errorf("%w: a batch of tensors of shape %v and %v", ErrTensor, batch[0].Shape(), t.Shape())
		}
	}
	if err := tensor.Synchronize(d.device); err != nil { // the processes read what was asked for here
		return 0, err
	}
	for _, p := range d.pipes {
		if err := p.Send(ctx, batch); err != nil {
			return 0, d.fail(err)
		}
	}
	for _, p := range d.pipes {
		part, err := p.Recv(ctx)
		if err != nil {
			return 0, d.fail(err)
		}
		loss += part
	}
	return loss, nil
}

// fail ends everything and returns why: what the processes say, or else err.
func (d *DataParallel) fail(err error) error { return cmp.Or(d.Close(), err) }

// Close lets the processes end and waits for them. The network and its gradients stay the caller's. It is idempotent.
func (d *DataParallel) Close() (err error) {
	for _, p := range d.pipes {
		err = errors.Join(err, p.Close())
	}
	d.pipes = nil
	return errors.Join(d.group.Wait(), err)
}

// run computes gradients until there are no more batches.
func (r replica[M]) run(ctx context.Context, rank int, f func(*autograd.Scope, M, []*tensor.Tensor) *autograd.Var) error {
	defer r.Pipe.Close()
	defer r.Group.Close()
	if err := r.Group.Join(rank); err != nil {
		return err
	}
	var sums []*tensor.Tensor // which all processes share
	for p := range r.Net.Params() {
		if !p.Frozen {
			sums = append(sums, p.Grad)
			p.Grad = nil
		}
	}
	refresh, err := mirrored(r.Net, r.Place)
	if err != nil {
		return err
	}
	grads, scope := gradients(r.Net.Params()), autograd.NewScope()
	if rank != 0 {
		scope.KeepBuffers()
	}
	for batch, err := range r.Pipe.All(ctx) {
		if err != nil {
			return err
		}
		for _, g := range grads {
			g.Zero()
		}
		if err := refresh(); err != nil {
			return err
		}
		loss, err := r.backward(rank, scope, f, batch)
		if err != nil {
			return err
		}
		err = byDType(grads, func(ts []*tensor.Tensor) error { return r.Group.Reduce(ctx, 0, Sum, ts...) })
		if err != nil {
			return err
		}
		for i, g := range grads {
			if rank == 0 {
				sums[i].Add(g)
			}
		}
		if len(grads) > 0 {
			if err := tensor.Synchronize(grads[0].Device()); err != nil {
				return err
			}
		}
		scope.Reset()
		if err := r.Pipe.Send(ctx, loss); err != nil && !errors.Is(err, ipc.ErrClosed) {
			return err
		}
	}
	return nil
}

// partOf returns which samples of a batch a rank has. Those of the first ranks are as many as others', or one more, so that rank 0 has some if anybody has.
func partOf(samples, rank, size int) (from, to int) {
	at := func(rank int) int { return (samples*rank + size - 1) / size }
	return at(rank), at(rank + 1)
}

// backward returns the part of the loss that this rank's samples have.
func (r replica[M]) backward(rank int, s *autograd.Scope, f func(*autograd.Scope, M, []*tensor.Tensor) *autograd.Var, batch []*tensor.Tensor) (float64, error) {
	samples := batch[0].Dim(0)
	from, to := partOf(samples, rank, r.Group.Size())
	for i, t := range batch {
		defer t.Close()
		part := t.Narrow(0, from, to-from)
		defer part.Close()
		there, err := part.ToDevice(r.Place.Device)
		if err != nil {
			return 0, err
		}
		batch[i] = there
		defer there.Close()
	}
	if from == to {
		return 0, nil
	}
	loss := autograd.MulScalar(f(s, r.Net, batch), float64(to-from)/float64(samples))
	loss.Backward()
	return loss.Item(), nil
}
