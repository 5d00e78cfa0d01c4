package dist

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A DistributedDataParallel is a replica of a network in a rank of a group, whose Backward averages
// gradients over all ranks: torch.nn.parallel.DistributedDataParallel. Each rank has a network of
// its own, computes the loss of its own part of each batch, as a mean over as many samples as the
// others', and takes the same step with an optimizer of its own; so the replicas stay equal, to the
// last bit.
//
// It is itself a module, whose state has the names of torch's, module. before each;
// nn.State(d.Module) has those of the network. Buffers, such as the running statistics of a
// BatchNorm2d, are those of rank 0 in all ranks after each Backward; each rank normalizes by its
// own part of the batch. One goroutine at a time may use it.
//
// Gradients are exchanged when Backward has computed all of them, and not in buckets meanwhile.
type DistributedDataParallel[M nn.Module] struct {
	Module M // the network

	group *Group
	opts  DDPOptions
	local bool // in NoSync
}

// DDPOptions are the options of a DistributedDataParallel. The zero value is PyTorch's defaults.
type DDPOptions struct {
	OwnBuffers bool // each rank keeps its own buffers: broadcast_buffers=False
	OwnParams  bool // parameters and buffers are equal already and not broadcast at the start: init_sync=False
}

// NewDistributedDataParallel wraps net, to whose parameters, frozen ones too, and buffers it gives
// the values that they have in rank 0. All ranks of g make the call, each with its own copy of the
// network; g has been joined. Group and network stay the caller's to close, and the group may be
// used for other calls as well.
//
// The error is ErrMismatch if the networks differ in the shapes or dtypes of parameters or buffers,
// and ErrTensor if there is no parameter that is not frozen.
func NewDistributedDataParallel[M nn.Module](ctx context.Context, g *Group, net M,
	opts DDPOptions) (*DistributedDataParallel[M], error) {
	d := &DistributedDataParallel[M]{Module: net, group: g, opts: opts}
	if !opts.OwnParams {
		if err := g.BroadcastParams(ctx, 0, nn.Params(net)); err != nil {
			return nil, err
		}
		if err := d.broadcastBuffers(ctx); err != nil {
			return nil, err
		}
	}
	for p := range nn.Params(net) {
		if !p.Frozen {
			return d, nil
		}
	}
	return nil, fmt.Errorf(
		"distributed data parallel: %w: %T has no parameter that is not frozen, so there is nothing to average", ErrTensor, net)
}

// Forward returns what the network makes of x. It panics unless the network is a nn.Layer; the
// calls of another network are made on Module.
func (d *DistributedDataParallel[M]) Forward(x *autograd.Var) *autograd.Var {
	l, ok := any(d.Module).(nn.Layer)
	if !ok {
		panic(fmt.Sprintf("dist: %T has no Forward of one value: call what it has on Module", d.Module))
	}
	return l.Forward(x)
}

// Backward adds the derivatives of the loss to the gradients of this rank, and then replaces all
// gradients by their means over the ranks, as AverageGrads does: frozen parameters are left out,
// and one without a gradient counts as zeros. Then it gives all ranks the buffers of rank 0. loss
// is nil in a rank that has no samples for this step. All ranks make the call. Within NoSync it
// only computes gradients.
func (d *DistributedDataParallel[M]) Backward(ctx context.Context, loss *autograd.Var) error {
	if loss != nil {
		loss.Backward()
	}
	if d.local {
		return nil
	}
	if err := d.group.AverageGrads(ctx, nn.Params(d.Module)); err != nil {
		return err
	}
	if d.opts.OwnBuffers {
		return nil
	}
	return d.broadcastBuffers(ctx)
}

// NoSync calls f, in which Backward exchanges nothing, so that gradients of several parts of a
// batch add up in each rank; the first Backward after it averages the sums. It is torch's no_sync.
// All ranks call it, or none.
func (d *DistributedDataParallel[M]) NoSync(f func() error) error {
	was := d.local
	d.local = true
	defer func() { d.local = was }()
	return f()
}

func (d *DistributedDataParallel[M]) broadcastBuffers(ctx context.Context) error {
	var all []*tensor.Tensor
	for _, t := range nn.Buffers(d.Module) {
		if !slices.Contains(all, t) { // one that two layers have
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return byDType(all, func(ts []*tensor.Tensor) error { return d.group.Broadcast(ctx, 0, ts...) })
}
