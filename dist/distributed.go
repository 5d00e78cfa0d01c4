package dist

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A DistributedDataParallel is the replica of a network in one rank of a group:
// torch.nn.parallel.DistributedDataParallel. Each rank has its own network and optimizer. It
// computes the mean loss of its part of each batch; all parts have the same number of samples.
// Backward averages the gradients over all ranks, so all optimizers take the same step, and the
// replicas stay equal to the last bit.
//
// A DistributedDataParallel is itself a module. As in torch, the names of its state begin with
// "module."; nn.State(d.Module) has the names of the network. Each rank normalises by its own part
// of the batch. After each Backward all ranks have the buffers of rank 0, such as the running
// statistics of a BatchNorm2d. One goroutine at a time may use a DistributedDataParallel.
//
// Ranks exchange gradients in buckets, while Backward computes others.
type DistributedDataParallel[M nn.Module] struct {
	Module M // the network

	group *Group
	opts  DDPOptions
	local bool // in NoSync
}

// DDPOptions are the options of a DistributedDataParallel. The zero value has PyTorch's defaults.
type DDPOptions struct {
	OwnBuffers bool // each rank keeps its own buffers: broadcast_buffers=False
	OwnParams  bool // do not broadcast parameters and buffers at the start: init_sync=False

	// BucketBytes is about how many bytes of gradients are exchanged together: bucket_cap_mb. 0 is
	// 25 MiB. All ranks have the same.
	BucketBytes int
}

// NewDistributedDataParallel wraps net and gives all its parameters, frozen ones included, and its
// buffers the values of rank 0. All ranks of g make the call, after Join, each with its own copy of
// the network. The caller still closes the group and the network. It may use the group for other
// calls.
//
// The error is ErrMismatch if the networks differ in the shapes or dtypes of parameters or buffers,
// and ErrTensor if all parameters are frozen.
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

// Forward returns the output of the network for x. It panics unless the network is an nn.Layer. For
// another network, call the methods of d.Module.
func (d *DistributedDataParallel[M]) Forward(x *autograd.Var) *autograd.Var {
	l, ok := any(d.Module).(nn.Layer)
	if !ok {
		panic(fmt.Sprintf("dist: %T has no Forward of one value: call what it has on Module", d.Module))
	}
	return l.Forward(x)
}

// Backward adds the derivatives of the loss to the gradients of this rank, and replaces all
// gradients by their means over the ranks, as [Group.AverageGrads] does. Then it gives all ranks
// the buffers of rank 0. loss is nil in a rank without samples for this step. All ranks make the
// call. Within NoSync Backward only computes gradients.
func (d *DistributedDataParallel[M]) Backward(ctx context.Context, loss *autograd.Var) error {
	if d.local {
		if loss != nil {
			loss.Backward()
		}
		return nil
	}
	b := newBuckets(ctx, d.group, nn.Params(d.Module), d.opts.BucketBytes)
	defer b.forget() // also after a panic
	if loss != nil {
		loss.Backward()
	}
	if err := b.finish(); err != nil {
		return err
	}
	if d.opts.OwnBuffers {
		return nil
	}
	return d.broadcastBuffers(ctx)
}

// NoSync calls f, in which Backward does not exchange gradients: torch's no_sync. So gradients of
// several parts of a batch add up in each rank, and the first Backward after NoSync averages the
// sums. Either all ranks call NoSync, or none. The error is that of f.
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
