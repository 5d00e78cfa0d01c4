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

// A Loss is a registered function that computes the mean loss of a network over the samples of a
// batch. RegisterLoss makes it.
type Loss[M nn.Module] struct {
	replica *shoal.Func[replica[M]]
}

// RegisterLoss registers f under a name, in the declaration of a package-level variable, as
// shoal.Register does. f must begin with values of the scope s, which is reset after each batch,
// and by which layers know whether to update their running statistics.
//
//	var loss = dist.RegisterLoss("loss", func(s *autograd.Scope, net *Net, batch []*tensor.Tensor) *autograd.Var {
//		return nn.NLLLoss.Of(net.Forward(s.Const(batch[0])), batch[1])
//	})
func RegisterLoss[M nn.Module](name string,
	f func(s *autograd.Scope, net M, batch []*tensor.Tensor) *autograd.Var) *Loss[M] {
	return &Loss[M]{shoal.Register(name,
		func(ctx context.Context, rank int, r replica[M]) error { return r.run(ctx, rank, f) })}
}

// A DataParallel computes gradients in several processes, each on its part of a batch:
// torch.nn.DataParallel. Its caller does the rest of training. The parameters of all replicas are
// those of the network, in shared memory, where the caller's optimizer changes them between
// batches.
//
// The replicas share the buffers as well, and the first replica writes them. So the running
// statistics of a BatchNorm2d are those of the batches' first parts, as in PyTorch. One goroutine
// at a time may use a DataParallel.
//
// With several devices, each replica copies the parameters and buffers to its device for each
// batch.
type DataParallel struct {
	group  *shoal.Group
	device tensor.Device // of the network
	pipes  []*ipc.PipeEnd[request, reply]
	layer  error          // why there is no Forward, if there is none
	mode   mode           // what Train said
	out    *tensor.Tensor // of the last Forward, while there may be a BackwardFrom
}

// A replica is the argument of a process.
type replica[M nn.Module] struct {
	Net   M
	Place tensor.Place
	Group *Group
	Pipe  *ipc.PipeEnd[reply, request]
}

// A request is what the processes are asked for.
type request struct {
	Kind  task
	Batch []*tensor.Tensor
	Mode  mode
}

type task uint8

const (
	taskLoss     task = iota // the gradients of the loss over a batch
	taskForward              // what the network makes of a batch of one tensor
	taskBackward             // the gradients from the derivatives with respect to that
)

// A mode is that of layers.
type mode uint8

const (
	modeAsIs mode = iota // as when the network was sent
	modeTrain
	modeEval
)

type reply struct {
	Loss float64
	Out  *tensor.Tensor // of Forward; nil of no samples
}

// NewDataParallel starts opts.Workers processes (0: shoal.Threads()) with net, whose parameters and
// gradients it moves to shared memory. opts.CPUs confines each process to a set of processors. The
// processes end with ctx. The caller closes the DataParallel.
//
// Each replica draws its own random numbers, for dropout, as workers do (tensor.DefaultGenerator).
// They follow from tensor.ManualSeed in the caller. Replicas on goroutines draw from the caller's
// default generator.
//
// With devices there is one process for each, which computes on its device. The network is on the
// first device, which adds up the gradients.
func NewDataParallel[M nn.Module](ctx context.Context, loss *Loss[M], net M, opts shoal.Options,
	devices ...tensor.Device) (_ *DataParallel, err error) {
	opts.Workers = cmp.Or(len(devices), opts.Workers, shoal.Threads())
	var home tensor.Device
	for p := range nn.Params(net) {
		if home = p.T.Device(); len(devices) > 0 && home != devices[0] {
			return nil, fmt.Errorf("%w: parameter %s is on %v, and the first device is %v", ErrTensor, p.Name,
				tensor.Place{Device: home}, tensor.Place{Device: devices[0]})
		}
	}
	if len(devices) == 0 {
		devices = slices.Repeat([]tensor.Device{home}, opts.Workers)
	}
	gradients(nn.Params(net)) // those that exist are sent, and shared
	group, err := NewGroup(opts.Workers)
	if err != nil {
		return nil, err
	}
	defer group.Close() // the processes have it
	d := &DataParallel{group: shoal.NewGroup(ctx, opts), device: home}
	if _, ok := any(net).(nn.Layer); !ok {
		d.layer = fmt.Errorf("%w: %T has no Forward of one value: compute its loss, by Backward", ErrTensor, net)
	}
	for _, dev := range devices {
		ours, theirs, err := ipc.Pipe[request, reply]()
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

// Backward adds the gradient of the loss over a batch to the gradients of the parameters, as if one
// process had computed it. It returns the loss. The first dimension of the tensors in batch counts
// the samples. Backward moves these tensors to shared memory. If a process fails, the error is that
// of shoal.Group.Wait, and d is closed.
func (d *DataParallel) Backward(ctx context.Context, batch ...*tensor.Tensor) (loss float64, err error) {
	if err := d.batch(batch); err != nil {
		return 0, err
	}
	parts, err := d.ask(ctx, request{taskLoss, batch, d.mode})
	for _, part := range parts {
		loss += part.Loss
	}
	return loss, err
}

// Forward returns the output of the network, which must be an nn.Layer, for x: torch's
// DataParallel(net)(x). The processes divide the samples of x among them. The caller computes the
// loss of the output and goes back in two steps:
//
//	out, err := d.Forward(ctx, x)
//	nn.CrossEntropyLoss.Of(out, labels).Backward() // to out.Grad()
//	err = d.BackwardFrom(ctx, out.Grad())       // to the parameters
//
// Do not change x before BackwardFrom. After Train(false) Forward keeps nothing for BackwardFrom.
// The output has a row for each sample, and is on the device of the network.
func (d *DataParallel) Forward(ctx context.Context, x *tensor.Tensor) (*autograd.Var, error) {
	if err := cmp.Or(d.batch([]*tensor.Tensor{x}), d.layer); err != nil {
		return nil, err
	}
	if x.Dim(0) == 0 {
		return nil, fmt.Errorf("%w: a batch of no samples", ErrTensor)
	}
	replies, err := d.ask(ctx, request{taskForward, []*tensor.Tensor{x}, d.mode})
	if err != nil {
		return nil, err
	}
	out, err := d.gather(replies)
	if err != nil {
		return nil, err
	}
	if d.mode == modeEval {
		return autograd.NoGrad(out), nil
	}
	d.out = out
	return autograd.NewParam("output", out).Var(), nil
}

// gather puts the parts of an output together and closes them.
func (d *DataParallel) gather(replies []reply) (*tensor.Tensor, error) {
	var parts []*tensor.Tensor
	for _, r := range replies {
		if r.Out != nil {
			parts = append(parts, r.Out)
		}
	}
	defer closeAll(parts)
	whole := tensor.Cat(0, parts...)
	if d.device == nil {
		return whole, nil
	}
	defer whole.Close()
	return whole.ToDevice(d.device)
}

// BackwardFrom takes dy, the gradient of the loss with respect to the output of the last Forward,
// and adds the gradients of the parameters. It may be called once after each Forward, before the
// next Forward or Backward.
func (d *DataParallel) BackwardFrom(ctx context.Context, dy *tensor.Tensor) error {
	switch {
	case d.pipes == nil:
		return ErrClosed
	case d.out == nil:
		return fmt.Errorf("%w: there was no Forward, or one after Train(false), to go back from", ErrTensor)
	case dy == nil:
		return fmt.Errorf("%w: no derivatives: call Backward of the loss first", ErrTensor)
	case dy.DType() != d.out.DType() || !slices.Equal(dy.Shape(), d.out.Shape()):
		return fmt.Errorf("%w: derivatives of %v %v, and the output is %v %v", ErrTensor, dy.DType(),
			dy.Shape(), d.out.DType(), d.out.Shape())
	}
	_, err := d.ask(ctx, request{taskBackward, []*tensor.Tensor{dy}, d.mode})
	return err
}

// Train sets the layers of all processes to training, which is the mode at first, or to evaluation
// if on is false. nn.Train and nn.Eval of the network do not reach the processes.
func (d *DataParallel) Train(on bool) {
	d.mode = modeEval
	if on {
		d.mode = modeTrain
	}
}

// batch wants tensors of as many samples each.
func (d *DataParallel) batch(batch []*tensor.Tensor) error {
	if d.pipes == nil {
		return ErrClosed
	}
	if len(batch) == 0 {
		return fmt.Errorf("%w: a batch of no tensors", ErrTensor)
	}
	for _, t := range batch {
		if t.Dims() == 0 || t.Dim(0) != batch[0].Dim(0) {
			return fmt.Errorf("%w: a batch of tensors of shape %v and %v", ErrTensor, batch[0].Shape(), t.Shape())
		}
	}
	return nil
}

// ask has all processes do something and returns what each replies.
func (d *DataParallel) ask(ctx context.Context, what request) (replies []reply, err error) {
	d.out = nil
	if err := tensor.Synchronize(d.device); err != nil { // the processes read what was asked for here
		return nil, err
	}
	for _, p := range d.pipes {
		if err := p.Send(ctx, what); err != nil {
			return nil, d.fail(err)
		}
	}
	for _, p := range d.pipes {
		r, err := p.Recv(ctx)
		if err != nil {
			for _, r := range replies {
				if r.Out != nil {
					r.Out.Close()
				}
			}
			return nil, d.fail(err)
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// fail ends everything and returns why: what the processes say, or else err.
func (d *DataParallel) fail(err error) error { return cmp.Or(d.Close(), err) }

// Close ends the processes and waits for them. The caller still closes the network. Close is
// idempotent.
func (d *DataParallel) Close() (err error) {
	for _, p := range d.pipes {
		err = errors.Join(err, p.Close())
	}
	d.pipes = nil
	return errors.Join(d.group.Wait(), err)
}

// A trainer is a replica at work.
type trainer[M nn.Module] struct {
	replica[M]
	rank        int
	loss        func(*autograd.Scope, M, []*tensor.Tensor) *autograd.Var
	scope       *autograd.Scope
	sums, grads []*tensor.Tensor // those that all processes share, and its own
	refresh     func() error
	in          *tensor.Tensor // of the last Forward
	out         *autograd.Var
	from        int // which of its samples this rank has
	mode        mode
}

// run computes until there are no more requests.
func (r replica[M]) run(ctx context.Context, rank int,
	f func(*autograd.Scope, M, []*tensor.Tensor) *autograd.Var) error {
	defer r.Pipe.Close()
	defer r.Group.Close()
	if err := r.Group.Join(rank); err != nil {
		return err
	}
	t := &trainer[M]{replica: r, rank: rank, loss: f, scope: autograd.NewScope()}
	if err := t.setUp(); err != nil {
		return err
	}
	defer t.forget()
	for what, err := range r.Pipe.All(ctx) {
		if err != nil {
			return err
		}
		answer, err := t.do(ctx, what)
		if err != nil {
			return err
		}
		err = r.Pipe.Send(ctx, answer)
		if answer.Out != nil {
			err = errors.Join(err, answer.Out.Close())
		}
		if err != nil && !errors.Is(err, ipc.ErrClosed) {
			return err
		}
	}
	return nil
}

func (t *trainer[M]) setUp() (err error) {
	for p := range nn.Params(t.Net) {
		if !p.Frozen {
			t.sums = append(t.sums, p.Grad)
			p.Grad = nil
		}
	}
	if t.refresh, err = mirrored(t.Net, t.Place); err != nil {
		return err
	}
	t.grads = gradients(nn.Params(t.Net))
	if t.rank != 0 {
		t.scope.KeepBuffers()
	}
	return nil
}

func (t *trainer[M]) do(ctx context.Context, what request) (answer reply, err error) {
	defer closeAll(what.Batch)
	if t.mode != what.Mode {
		t.mode = what.Mode
		t.mode.of(t.Net)
	}
	if what.Kind == taskBackward {
		return reply{}, t.backFrom(ctx, what.Batch[0])
	}
	t.forget() // an output that nobody went back from
	if err := t.refresh(); err != nil {
		return reply{}, err
	}
	if what.Kind == taskForward {
		answer.Out, err = t.forward(what.Batch[0])
		return answer, err
	}
	t.zero()
	if answer.Loss, err = t.backward(what.Batch); err != nil {
		return reply{}, err
	}
	return answer, t.add(ctx)
}

func (m mode) of(net nn.Module) {
	switch m {
	case modeTrain:
		nn.Train(net)
	case modeEval:
		nn.Eval(net)
	}
}

func (t *trainer[M]) zero() {
	for _, g := range t.grads {
		g.Zero()
	}
}

// add adds the gradients of all processes to those of the caller's network, and ends the step.
func (t *trainer[M]) add(ctx context.Context) error {
	err := byDType(t.grads, func(ts []*tensor.Tensor) error { return t.Group.Reduce(ctx, 0, Sum, ts...) })
	if err != nil {
		return err
	}
	for i, g := range t.grads {
		if t.rank == 0 {
			t.sums[i].Add(g)
		}
	}
	if len(t.grads) > 0 {
		if err := tensor.Synchronize(t.grads[0].Device()); err != nil {
			return err
		}
	}
	t.forget()
	return nil
}

// forget lets go of what was computed.
func (t *trainer[M]) forget() {
	t.scope.Reset()
	if t.in != nil {
		t.in.Close()
	}
	t.in, t.out = nil, nil
}

// forward returns this rank's part of the output in shared memory, and keeps it to go back from.
func (t *trainer[M]) forward(x *tensor.Tensor) (*tensor.Tensor, error) {
	from, to := partOf(x.Dim(0), t.rank, t.Group.Size())
	if from == to {
		return nil, nil
	}
	part, err := t.here(x, from, to)
	if err != nil {
		return nil, err
	}
	t.in = part
	in := t.scope.Const(part)
	if t.mode == modeEval {
		in = t.scope.NoGrad(part)
	}
	out := any(t.Net).(nn.Layer).Forward(in)
	if s := out.Shape(); len(s) == 0 || s[0] != to-from {
		return nil, fmt.Errorf("%w: %T makes an output of shape %v of %d samples: want a row for each",
			ErrTensor, t.Net, s, to-from)
	}
	t.out, t.from = out, from
	return toShared(out.T())
}

// backFrom goes on from the derivatives with respect to the output.
func (t *trainer[M]) backFrom(ctx context.Context, dy *tensor.Tensor) error {
	t.zero()
	if t.out != nil && t.out.RequiresGrad() {
		part, err := t.here(dy, t.from, t.from+t.out.Shape()[0])
		if err != nil {
			return err
		}
		defer part.Close()
		t.out.BackwardWith(autograd.BackwardOptions{Gradient: part})
	}
	return t.add(ctx)
}

// here returns the elements of some samples where this rank computes. The caller closes them.
func (t *trainer[M]) here(x *tensor.Tensor, from, to int) (*tensor.Tensor, error) {
	part := x.Narrow(0, from, to-from)
	defer part.Close()
	return part.ToDevice(t.Place.Device)
}

// partOf returns which samples of a batch a rank has. The first ranks have as many as the
// others, or one more, so that rank 0 has some if anybody has.
func partOf(samples, rank, size int) (from, to int) {
	at := func(rank int) int { return (samples*rank + size - 1) / size }
	return at(rank), at(rank + 1)
}

// backward returns the part of the loss that this rank's samples have.
func (t *trainer[M]) backward(batch []*tensor.Tensor) (float64, error) {
	samples := batch[0].Dim(0)
	from, to := partOf(samples, t.rank, t.Group.Size())
	var parts []*tensor.Tensor
	defer func() { closeAll(parts) }()
	for _, x := range batch {
		part, err := t.here(x, from, to)
		if err != nil {
			return 0, err
		}
		parts = append(parts, part)
	}
	if from == to {
		return 0, nil
	}
	loss := autograd.MulScalar(t.loss(t.scope, t.Net, parts), float64(to-from)/float64(samples))
	loss.Backward()
	return loss.Item(), nil
}
