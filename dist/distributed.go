package dist

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A DistributedDataParallel is one rank's replica of a network:
// torch.nn.parallel.DistributedDataParallel. Each rank has its own network and optimizer, and
// computes the mean loss of its part of each batch. All parts should have the same number of
// samples. Backward averages the gradients over all ranks, so all optimizers take the same step and
// the replicas stay bitwise equal.
//
// A DistributedDataParallel is itself a module. As in torch, the names of its state begin with
// "module."; use nn.State(d.Module) for the names of the network. Batch normalization uses the
// statistics of the rank's own part of the batch. After each Backward all ranks have the buffers of
// rank 0, such as the running statistics of a BatchNorm2d. A DistributedDataParallel must not be
// used by several goroutines at once.
//
// Ranks exchange gradients in buckets while Backward computes others; see Note [Buckets].
type DistributedDataParallel[M nn.Module] struct {
	Module M // the wrapped network

	group *Group
	opts  DDPOptions
	local bool // true within NoSync
}

// DDPOptions are the options of a [DistributedDataParallel]. The zero value has PyTorch's defaults.
type DDPOptions struct {
	OwnBuffers bool // do not broadcast buffers: broadcast_buffers=False
	OwnParams  bool // do not broadcast parameters and buffers at the start: init_sync=False

	// BucketBytes is the approximate number of gradient bytes per exchange: bucket_cap_mb. 0 means
	// 25 MiB. It must be the same in all ranks.
	BucketBytes int
}

// NewDistributedDataParallel wraps net and copies the parameters, frozen ones included, and the
// buffers of rank 0 to all ranks. All ranks of g must call it, after [Group.Join], each with its
// own copy of the network. The caller may use the group for other calls, and must still close the
// group and the network.
//
// It returns [ErrMismatch] if the networks differ in the shapes or dtypes of parameters or buffers,
// and [ErrTensor] if all parameters are frozen.
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
		"distributed data parallel: %w: all parameters of %T are frozen, want at least one trainable parameter",
		ErrTensor, net)
}

// Forward returns the output of the network for x. It panics unless the network is an [nn.Layer].
// For other networks, call the methods of d.Module.
func (d *DistributedDataParallel[M]) Forward(x *autograd.Var) *autograd.Var {
	l, ok := any(d.Module).(nn.Layer)
	if !ok {
		panic(fmt.Sprintf("dist: %T is not an nn.Layer, so it has no Forward of one value: call its own methods "+
			"on Module", d.Module))
	}
	return l.Forward(x)
}

// Backward computes the gradients of the loss and replaces the gradients of all ranks by their
// means, as [Group.AverageGrads] does. Then it copies the buffers of rank 0 to all ranks. All
// ranks must call it. A rank without samples for this step must pass a nil loss. Within
// [DistributedDataParallel.NoSync] Backward only accumulates the gradients of this rank. Its
// errors are the errors of the group's collective calls.
func (d *DistributedDataParallel[M]) Backward(ctx context.Context, loss *autograd.Var) error {
	if d.local {
		if loss != nil {
			loss.Backward()
		}
		return nil
	}
	b := newBuckets(ctx, d.group, nn.Params(d.Module), d.opts.BucketBytes)
	defer b.removeHooks() // also after a panic
	if loss != nil {
		loss.Backward()
	}
	if err := b.flush(); err != nil {
		return err
	}
	if d.opts.OwnBuffers {
		return nil
	}
	return d.broadcastBuffers(ctx)
}

// NoSync calls f with the exchange of gradients disabled: torch's no_sync. Gradients of several
// parts of a batch then accumulate in each rank, and the first Backward after NoSync averages the
// sums. Either all ranks must call NoSync, or none. NoSync returns the error of f.
func (d *DistributedDataParallel[M]) NoSync(f func() error) error {
	was := d.local
	d.local = true
	defer func() { d.local = was }()
	return f()
}

func (d *DistributedDataParallel[M]) broadcastBuffers(ctx context.Context) error {
	var all []*tensor.Tensor
	for _, t := range nn.Buffers(d.Module) {
		if !slices.Contains(all, t) { // layers may share a buffer
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return forEachDType(all, func(ts []*tensor.Tensor) error { return d.group.Broadcast(ctx, 0, ts...) })
}
