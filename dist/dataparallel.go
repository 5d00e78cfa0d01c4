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
// batch. Use [RegisterLoss] to create one.
type Loss[M nn.Module] struct {
	replica *shoal.Func[replica[M]]
}

// RegisterLoss registers f under a name. Like [shoal.Register], it must be called in the
// declaration of a package-level variable. f must derive its inputs from the scope s, for example
// with s.Const. s is reset after each batch. Layers also read from it whether they should update
// their running statistics.
//
//	var loss = dist.RegisterLoss("loss", func(s *autograd.Scope, net *Net, batch []*tensor.Tensor) *autograd.Var {
//		return nn.NLLLoss{}.Of(net.Forward(s.Const(batch[0])), batch[1])
//	})
func RegisterLoss[M nn.Module](name string,
	f func(s *autograd.Scope, net M, batch []*tensor.Tensor) *autograd.Var) *Loss[M] {
	return &Loss[M]{shoal.Register(name,
		func(ctx context.Context, rank int, r replica[M]) error { return r.serveRequests(ctx, rank, f) })}
}

// A DataParallel computes gradients in several processes, each for a part of the batch:
// torch.nn.DataParallel. Everything else, such as the optimizer step, is up to the caller. All
// replicas share the network's parameters in shared memory, so they see the updates that the
// caller's optimizer makes between batches.
//
// The replicas share the buffers as well, and only the first replica updates them. The running
// statistics of a BatchNorm2d are therefore computed from the first part of each batch, as in
// PyTorch. A DataParallel must not be used by several goroutines at once.
//
// With several devices, each replica copies the parameters and buffers to its device for each
// batch.
type DataParallel struct {
	group  *shoal.Group
	device tensor.Device // device of the network
	pipes  []*ipc.PipeEnd[request, reply]
	layer  error          // error that Forward returns if the network is not an nn.Layer
	mode   mode           // as set by Train
	out    *tensor.Tensor // output of the last Forward, until BackwardFrom
}

// replica is the argument of a replica process.
type replica[M nn.Module] struct {
	Net   M
	Place tensor.Place
	Group *Group
	Pipe  *ipc.PipeEnd[reply, request]
}

// A request is a task for all replicas. Each handles its own part of the batch.
type request struct {
	Kind  task
	Batch []*tensor.Tensor
	Mode  mode
}

type task uint8

const (
	taskLoss     task = iota // add the gradients of the loss over a batch
	taskForward              // compute the output for a batch of one tensor
	taskBackward             // add the gradients, given the derivative with respect to that output
)

// A mode selects training or evaluation for the layers of a replica.
type mode uint8

const (
	modeAsIs mode = iota // unchanged since the network was sent
	modeTrain
	modeEval
)

type reply struct {
	Loss float64
	Out  *tensor.Tensor // output of taskForward; nil if the rank had no samples
}

// DataParallelOptions configure a [DataParallel]. The zero value is valid.
type DataParallelOptions struct {
	// Devices are the devices of the replicas, one process for each. The network must be on the
	// first device, which also sums the gradients. By default all replicas are on the network's
	// device.
	Devices []tensor.Device

	// Process contains the options of the processes. With Devices, Process.Workers has no effect.
	// Without Devices, its default is [shoal.Threads]. Process.CPUs confines each process to a set
	// of processors.
	Process shoal.Options
}

// NewDataParallel starts processes with replicas of net, and moves the parameters and gradients of
// net to shared memory. The processes end with ctx. The caller must close the DataParallel. The
// error wraps [ErrTensor] if net is not on the first of opts.Devices.
//
// Each replica draws its own random numbers, for example for dropout, as workers do; see
// [tensor.DefaultGenerator]. They are determined by [tensor.ManualSeed] in the caller. Replicas on
// goroutines draw from the caller's default generator.
func NewDataParallel[M nn.Module](ctx context.Context, loss *Loss[M], net M,
	opts DataParallelOptions) (_ *DataParallel, err error) {
	devices, process := opts.Devices, opts.Process
	process.Workers = cmp.Or(len(devices), process.Workers, shoal.Threads())
	var home tensor.Device
	for p := range nn.Params(net) {
		if home = p.T.Device(); len(devices) > 0 && home != devices[0] {
			return nil, fmt.Errorf("%w: parameter %s is on %v, want the first device, %v", ErrTensor, p.Name,
				tensor.Place{Device: home}, tensor.Place{Device: devices[0]})
		}
	}
	if len(devices) == 0 {
		devices = slices.Repeat([]tensor.Device{home}, process.Workers)
	}
	collectGrads(nn.Params(net)) // allocate missing gradients, because they are sent and shared
	group, err := NewGroup(process.Workers)
	if err != nil {
		return nil, err
	}
	defer group.Close() // the processes have received it
	d := &DataParallel{group: shoal.NewGroup(ctx, process), device: home}
	if _, ok := any(net).(nn.Layer); !ok {
		d.layer = fmt.Errorf("%w: %T is not an nn.Layer, so it has no Forward of one value: call Backward to "+
			"compute its loss", ErrTensor, net)
	}
	for _, dev := range devices {
		ours, theirs, err := ipc.Pipe[request, reply]()
		if err != nil {
			err = errors.Join(err, d.group.Close()) // unblock the processes already started
			d.Close()
			return nil, err
		}
		d.pipes = append(d.pipes, ours)
		loss.replica.Go(d.group, replica[M]{net, tensor.Place{Device: dev}, group, theirs})
		theirs.Close()
	}
	return d, nil
}

// Backward adds the gradients of the loss over a batch to the gradients of the parameters, as if
// one process had computed them. It returns the mean loss of the samples. The first dimension of
// each tensor in batch must be the number of samples; otherwise the error is [ErrTensor].
// Backward moves these tensors to shared memory. If a process fails or ctx ends, Backward closes
// d and returns the error of [shoal.Group.Wait], or else of ctx. It returns [ErrClosed] after
// Close.
func (d *DataParallel) Backward(ctx context.Context, batch ...*tensor.Tensor) (loss float64, err error) {
	if err := d.checkBatch(batch); err != nil {
		return 0, err
	}
	parts, err := d.callReplicas(ctx, request{taskLoss, batch, d.mode})
	for _, part := range parts {
		loss += part.Loss
	}
	return loss, err
}

// Forward returns the output of the network for x: torch's DataParallel(net)(x). The network must
// be an [nn.Layer]; otherwise the error is [ErrTensor]. The processes divide the samples of x among
// them. The caller computes the loss of the output and runs the backward pass in two steps:
//
//	out, err := d.Forward(ctx, x)
//	nn.CrossEntropyLoss{}.Of(out, labels).Backward() // to out.Grad()
//	err = d.BackwardFrom(ctx, out.Grad())       // to the parameters
//
// The caller must not change x before [DataParallel.BackwardFrom]. After Train(false), Forward
// keeps no state for BackwardFrom. The output has one row per sample and is on the device of the
// network.
func (d *DataParallel) Forward(ctx context.Context, x *tensor.Tensor) (*autograd.Var, error) {
	if err := cmp.Or(d.checkBatch([]*tensor.Tensor{x}), d.layer); err != nil {
		return nil, err
	}
	if x.Dim(0) == 0 {
		return nil, fmt.Errorf("%w: batch has 0 samples, want at least 1", ErrTensor)
	}
	replies, err := d.callReplicas(ctx, request{taskForward, []*tensor.Tensor{x}, d.mode})
	if err != nil {
		return nil, err
	}
	out, err := d.gatherOutputs(replies)
	if err != nil {
		return nil, err
	}
	if d.mode == modeEval {
		return autograd.NoGrad(out), nil
	}
	d.out = out
	return autograd.NewParam("output", out).Var(), nil
}

// gatherOutputs concatenates the parts of an output in rank order, on the network's device, and
// closes the parts.
func (d *DataParallel) gatherOutputs(replies []reply) (*tensor.Tensor, error) {
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

// BackwardFrom takes dy, the gradient of the loss with respect to the output of the last
// Forward, and adds to the gradients of the parameters. It must be called at most once per
// Forward, before the next Forward or Backward. It returns [ErrTensor] if there is no such
// output or dy does not match it. It closes d, and fails after Close, as Backward does.
func (d *DataParallel) BackwardFrom(ctx context.Context, dy *tensor.Tensor) error {
	switch {
	case d.pipes == nil:
		return ErrClosed
	case d.out == nil:
		return fmt.Errorf("%w: no output to differentiate: call Forward first, in training mode", ErrTensor)
	case dy == nil:
		return fmt.Errorf("%w: derivative is nil: call Backward of the loss first", ErrTensor)
	case dy.DType() != d.out.DType() || !slices.Equal(dy.Shape(), d.out.Shape()):
		return fmt.Errorf("%w: derivative is %v %v, want %v %v like the output", ErrTensor, dy.DType(),
			dy.Shape(), d.out.DType(), d.out.Shape())
	}
	_, err := d.callReplicas(ctx, request{taskBackward, []*tensor.Tensor{dy}, d.mode})
	return err
}

// Train sets the layers of all processes to training mode, or to evaluation mode if on is false.
// The default is the mode of the network when it was sent. nn.Train and nn.Eval on the caller's
// network do not affect the processes.
func (d *DataParallel) Train(on bool) {
	d.mode = modeEval
	if on {
		d.mode = modeTrain
	}
}

// checkBatch returns an error that wraps [ErrTensor] unless the batch has tensors and all of
// them have the same number of samples. It returns [ErrClosed] if d is closed.
func (d *DataParallel) checkBatch(batch []*tensor.Tensor) error {
	if d.pipes == nil {
		return ErrClosed
	}
	if len(batch) == 0 {
		return fmt.Errorf("%w: batch has 0 tensors, want at least 1", ErrTensor)
	}
	for _, t := range batch {
		if t.Dims() == 0 || t.Dim(0) != batch[0].Dim(0) {
			return fmt.Errorf("%w: batch has tensors of shape %v and %v, want the same first dimension", ErrTensor,
				batch[0].Shape(), t.Shape())
		}
	}
	return nil
}

// callReplicas sends a request to all processes and returns their replies in rank order. The
// caller must close the outputs in the replies. If a process fails or ctx ends, callReplicas
// closes d; see [DataParallel.closeWithError].
func (d *DataParallel) callReplicas(ctx context.Context, what request) (replies []reply, err error) {
	d.out = nil
	if err := tensor.Synchronize(d.device); err != nil { // the processes read them
		return nil, err
	}
	for _, p := range d.pipes {
		if err := p.Send(ctx, what); err != nil {
			return nil, d.closeWithError(err)
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
			return nil, d.closeWithError(err)
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// closeWithError closes d and returns the errors of the processes, or err if they report none.
func (d *DataParallel) closeWithError(err error) error { return cmp.Or(d.Close(), err) }

// Close stops the processes, waits for them and returns their errors. The caller must still
// close the network. Close is idempotent.
func (d *DataParallel) Close() (err error) {
	for _, p := range d.pipes {
		err = errors.Join(err, p.Close())
	}
	d.pipes = nil
	return errors.Join(d.group.Wait(), err)
}

// A trainer executes requests in a replica process.
type trainer[M nn.Module] struct {
	replica[M]
	rank        int
	loss        func(*autograd.Scope, M, []*tensor.Tensor) *autograd.Var
	scope       *autograd.Scope
	sums, grads []*tensor.Tensor // the caller's gradients, shared; this replica's
	refresh     func() error
	in          *tensor.Tensor // input of the last Forward
	out         *autograd.Var
	from        int // index of its first sample in the batch
	mode        mode
}

// serveRequests is the main function of a replica process: it joins the group as rank and
// handles requests until the caller closes the pipe. f computes the loss.
func (r replica[M]) serveRequests(ctx context.Context, rank int,
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
	defer t.releaseGraph()
	for what, err := range r.Pipe.All(ctx) {
		if err != nil {
			return err
		}
		answer, err := t.handleRequest(ctx, what)
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
	if t.refresh, err = mirrorModule(t.Net, t.Place); err != nil {
		return err
	}
	t.grads = collectGrads(nn.Params(t.Net))
	if t.rank != 0 {
		t.scope.KeepBuffers()
	}
	return nil
}

func (t *trainer[M]) handleRequest(ctx context.Context, what request) (answer reply, err error) {
	defer closeAll(what.Batch)
	if t.mode != what.Mode {
		t.mode = what.Mode
		t.mode.applyTo(t.Net)
	}
	if what.Kind == taskBackward {
		return reply{}, t.backFrom(ctx, what.Batch[0])
	}
	t.releaseGraph() // an output that was not followed by taskBackward
	if err := t.refresh(); err != nil {
		return reply{}, err
	}
	if what.Kind == taskForward {
		answer.Out, err = t.forward(what.Batch[0])
		return answer, err
	}
	t.zeroGrads()
	if answer.Loss, err = t.backward(what.Batch); err != nil {
		return reply{}, err
	}
	return answer, t.reduceGrads(ctx)
}

func (m mode) applyTo(net nn.Module) {
	switch m {
	case modeTrain:
		nn.Train(net)
	case modeEval:
		nn.Eval(net)
	}
}

func (t *trainer[M]) zeroGrads() {
	for _, g := range t.grads {
		g.Zero()
	}
}

// reduceGrads sums the gradients of all processes, adds the sums to the gradients of the caller's
// network in rank 0, and ends the step.
func (t *trainer[M]) reduceGrads(ctx context.Context) error {
	err := forEachDType(t.grads, func(ts []*tensor.Tensor) error { return t.Group.Reduce(ctx, 0, Sum, ts...) })
	if err != nil {
		return err
	}
	for i, g := range t.grads {
		if t.rank == 0 {
			t.sums[i].AddInPlace(g)
		}
	}
	if len(t.grads) > 0 {
		if err := tensor.Synchronize(t.grads[0].Device()); err != nil {
			return err
		}
	}
	t.releaseGraph()
	return nil
}

// releaseGraph releases the graph and the input of the last request.
func (t *trainer[M]) releaseGraph() {
	t.scope.Reset()
	if t.in != nil {
		t.in.Close()
	}
	t.in, t.out = nil, nil
}

// forward computes the output for this rank's samples of x, the whole batch, and returns a copy
// in shared memory, which the caller must close. It keeps the graph for backFrom. It returns nil
// if this rank has no samples. The error wraps [ErrTensor] if the output does not have one row
// per sample.
func (t *trainer[M]) forward(x *tensor.Tensor) (*tensor.Tensor, error) {
	from, to := sampleRange(x.Dim(0), t.rank, t.Group.Size())
	if from == to {
		return nil, nil
	}
	part, err := t.copyPart(x, from, to)
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
		return nil, fmt.Errorf("%w: %T returned an output of shape %v for %d samples, want one row per sample",
			ErrTensor, t.Net, s, to-from)
	}
	t.out, t.from = out, from
	return toShared(out.T())
}

// backFrom continues the backward pass of the last forward from dy, the derivative with respect
// to the output of the whole batch. It adds the sums of all ranks to the caller's gradients, as
// [trainer.reduceGrads] does.
func (t *trainer[M]) backFrom(ctx context.Context, dy *tensor.Tensor) error {
	t.zeroGrads()
	if t.out != nil && t.out.RequiresGrad() {
		part, err := t.copyPart(dy, t.from, t.from+t.out.Shape()[0])
		if err != nil {
			return err
		}
		defer part.Close()
		t.out.BackwardWith(autograd.BackwardOptions{Gradient: part})
	}
	return t.reduceGrads(ctx)
}

// copyPart copies the samples from up to to, exclusive, to the replica's device. The caller must
// close the result.
func (t *trainer[M]) copyPart(x *tensor.Tensor, from, to int) (*tensor.Tensor, error) {
	part := x.Narrow(0, from, to-from)
	defer part.Close()
	return part.ToDevice(t.Place.Device)
}

// sampleRange returns the half-open range of samples that a rank handles. The shares of two ranks
// differ by at most one sample. Rank 0 has samples unless the batch is empty.
func sampleRange(samples, rank, size int) (from, to int) {
	at := func(rank int) int { return (samples*rank + size - 1) / size }
	return at(rank), at(rank + 1)
}

// backward copies this rank's samples from the whole batch and adds the gradients of their loss. It
// returns the samples' part of the mean loss of the batch; the parts of all ranks add up to the
// mean.
func (t *trainer[M]) backward(batch []*tensor.Tensor) (float64, error) {
	samples := batch[0].Dim(0)
	from, to := sampleRange(samples, t.rank, t.Group.Size())
	var parts []*tensor.Tensor
	defer func() { closeAll(parts) }()
	for _, x := range batch {
		part, err := t.copyPart(x, from, to)
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
