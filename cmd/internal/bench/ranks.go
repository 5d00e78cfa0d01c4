package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// reducedBytes is the size of the tensors of the rows by number of ranks. It is the size of
// PyTorch's gradient buckets.
const reducedBytes = 25 * mib

// reduceRows returns a constructor of the rows of all-reduces of size processes. The floor is an
// addition of tensors of the same size by one of them. With more ranks than processors, each
// processor does the work of several ranks.
func reduceRows(size int) func(context.Context, *environment) (group, error) {
	return func(ctx context.Context, h *environment) (group, error) {
		r, err := startReducers(ctx, size)
		if err != nil {
			return group{}, err
		}
		rounds := h.scaleRounds(5)
		floor := r.probe(addTensors, rounds)
		row := func(name, place string) Case {
			return Case{Name: fmt.Sprintf("%s_%d", name, size), Unit: Nanoseconds, Floor: floor,
				Ours: r.probe(place, rounds), Target: overFloor(2)}
		}
		cases := []Case{row("all_reduce_25MiB", onHeap), row("all_reduce_25MiB_shared", inArena)}
		for i := range cases {
			cases[i].Peer = &peerWork{op: fmt.Sprint("all_reduce_", size), Size: reducedBytes, Rounds: rounds}
		}
		return group{rounds: 7, cases: cases, close: r.close}, nil
	}
}

// The orders of a reducer.
const (
	addTensors = "add"
	onHeap     = "heap"
	inArena    = "arena"
)

// reducers are processes that make all-reduces. Rank 0 measures and answers the orders.
// startReducers starts them, and the caller must call close.
type reducers struct {
	group  *shoal.Group
	ranks  *dist.Group
	orders *ipc.PipeEnd[order, report]
}

// A reducer is the argument of one of the processes of [reducers]. Orders is nil in all ranks
// but the first.
type reducer struct {
	Group  *dist.Group
	Rank   int
	Orders *ipc.PipeEnd[report, order]
}

var reducing = shoal.Register("bench reducer", reduceInTurns)

func startReducers(ctx context.Context, size int) (*reducers, error) {
	ranks, err := dist.NewGroup(size)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := ipc.Pipe[order, report]()
	if err != nil {
		return nil, errors.Join(err, ranks.Close())
	}
	defer theirs.Close()
	// Each process has its own thread budget, so that the addition has one thread in all rows.
	r := &reducers{shoal.NewGroup(ctx, shoal.Options{Workers: size, Threads: 1}), ranks, ours}
	for rank := range size {
		arg := reducer{Group: ranks, Rank: rank}
		if rank == 0 {
			arg.Orders = theirs
		}
		reducing.Go(r.group, arg)
	}
	return r, nil
}

func (r *reducers) close() error {
	err := errors.Join(r.orders.Close(), r.group.Wait())
	return errors.Join(err, r.ranks.Close())
}

// probe returns a probe that makes the processes perform work, which is one of the orders above,
// rounds times. It measures the nanoseconds of one round.
func (r *reducers) probe(work string, rounds int) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		if err := r.orders.Send(ctx, order{Work: work, Rounds: rounds}); err != nil {
			return 0, err
		}
		answer, err := r.orders.Recv(ctx)
		return answer.Nanoseconds, errors.Join(err, answer.Err)
	}}
}

// reduceInTurns is the function of the processes of [reducers]. Rank 0 receives the orders and
// passes them to the other ranks. All execute them until the pipe of rank 0 is closed.
func reduceInTurns(ctx context.Context, _ int, r reducer) error {
	if err := r.Group.Join(r.Rank); err != nil {
		return err
	}
	defer r.Group.Close()
	if r.Orders != nil {
		defer r.Orders.Close()
	}
	shared, err := tensor.NewShared(tensor.Float32, reducedBytes/4)
	if err != nil {
		return err
	}
	shared.Fill(1)
	heap, other := tensor.Full(tensor.Float32, 1, reducedBytes/4), tensor.Full(tensor.Float32, 1, reducedBytes/4)
	for {
		var o order
		if r.Orders != nil {
			if o, err = r.Orders.Recv(ctx); errors.Is(err, ipc.ErrClosed) {
				o.Work = ""
			} else if err != nil {
				return err
			}
		}
		if o, err = dist.BroadcastValue(ctx, r.Group, 0, o); err != nil || o.Work == "" {
			return err
		}
		t := map[string]*tensor.Tensor{onHeap: heap, inArena: shared}[o.Work]
		d, err := timeRounds(o.Rounds, func() error {
			if t != nil {
				return r.Group.AllReduce(ctx, dist.Mean, t)
			}
			if r.Rank == 0 {
				heap.AddInPlace(other)
			}
			return nil
		})
		if err := errors.Join(err, r.Group.Barrier(ctx)); err != nil {
			return err
		}
		if r.Orders != nil {
			each := float64(d) / float64(o.Rounds) / float64(time.Nanosecond)
			if err := r.Orders.Send(ctx, report{Nanoseconds: each}); err != nil {
				return err
			}
		}
	}
}
