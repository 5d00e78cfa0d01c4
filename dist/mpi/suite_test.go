package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

// suite makes every call that a Group has, and compares the results with what they should be. It
// knows nothing of engines: it is run by ranks that share memory as well.
func suite(ctx context.Context, g *dist.Group) error {
	for _, part := range []struct {
		name string
		run  func(ctx context.Context, g *dist.Group) error
	}{
		{"reductions of every dtype", reductions}, {"reductions of a NaN", nans},
		{"reductions of many tensors", manyTensors}, {"reduce", reduceToRoot}, {"the same bits", sameBits},
		{"broadcast", broadcasts}, {"gathers and scatters", gathers}, {"parts of other lengths", unevenParts},
		{"letters", letters}, {"values", values}, {"groups of some ranks", subgroups},
		{"in the background", background},
		{"calls that do not fit", mismatches}, {"monitored barrier", monitored}, {"barrier", barriers},
	} {
		if err := part.run(ctx, g); err != nil {
			return fmt.Errorf("rank %d: %s: %w", g.Rank(), part.name, err)
		}
	}
	return nil
}

var (
	integers = []dist.Op{dist.Sum, dist.Max, dist.Min, dist.Prod, dist.BAnd, dist.BOr, dist.BXor}
	floats   = []dist.Op{dist.Sum, dist.Mean, dist.Max, dist.Min, dist.Prod}
	ofDType  = map[tensor.DType][]dist.Op{
		tensor.Bool: integers, tensor.Uint8: integers, tensor.Int8: integers, tensor.Int16: integers,
		tensor.Int32: integers, tensor.Int64: integers, tensor.Float32: floats, tensor.Float64: floats,
		tensor.Float16: floats, tensor.BFloat16: floats,
		tensor.Complex64: {dist.Sum, dist.Mean}, tensor.Complex128: {dist.Sum, dist.Mean},
	}
)

// number is element i of rank r: small, so that results are exact in every dtype and order.
func number(dt tensor.DType, i, r int) float64 {
	if dt == tensor.Bool {
		return float64((i/3 + r) % 2)
	}
	return float64((i*7+r*3)%4 + 1)
}

// reduced is what op makes of element i of all ranks.
func reduced(dt tensor.DType, op dist.Op, i, size int) float64 {
	x := number(dt, i, 0)
	for r := 1; r < size; r++ {
		y := number(dt, i, r)
		switch {
		case op == dist.Max || dt == tensor.Bool && op == dist.Sum:
			x = max(x, y)
		case op == dist.Min:
			x = min(x, y)
		case op == dist.Sum || op == dist.Mean:
			x += y
		case op == dist.Prod:
			x *= y
		case op == dist.BAnd:
			x = float64(int(x) & int(y))
		case op == dist.BOr:
			x = float64(int(x) | int(y))
		case op == dist.BXor:
			x = float64(int(x) ^ int(y))
		}
	}
	if op == dist.Mean {
		x /= float64(size)
	}
	return x
}

// filled returns a tensor of numbers, made by f.
func filled(dt tensor.DType, n int, f func(i int) float64) *tensor.Tensor {
	all := make([]float64, n)
	for i := range all {
		all[i] = f(i)
	}
	return tensor.FromSlice(all, n).To(dt)
}

// allReduced is what op makes of the numbers of all ranks.
func allReduced(dt tensor.DType, op dist.Op, n, size int) *tensor.Tensor {
	return filled(dt, n, func(i int) float64 { return reduced(dt, op, i, size) })
}

func of(dt tensor.DType, n, rank int) *tensor.Tensor {
	return filled(dt, n, func(i int) float64 { return number(dt, i, rank) })
}

// want compares two tensors, bit by bit.
func want(what string, got, want *tensor.Tensor) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) ||
		!bytes.Equal(tensor.Bytes(got), tensor.Bytes(want)) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func reductions(ctx context.Context, g *dist.Group) error {
	for _, dt := range []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32,
		tensor.Int64, tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Complex64,
		tensor.Complex128} {
		for _, op := range ofDType[dt] {
			const n = 101
			should := allReduced(dt, op, n, g.Size())
			t := of(dt, n, g.Rank())
			if err := g.AllReduce(ctx, op, t); err != nil {
				return err
			}
			if err := want(fmt.Sprintf("all_reduce(%v) of %v", op, dt), t, should); err != nil {
				return err
			}
			src := of(dt, n*g.Size(), g.Rank())
			dst := tensor.New(dt, n)
			if err := g.ReduceScatter(ctx, op, dst, src); err != nil {
				return err
			}
			should = filled(dt, n, func(i int) float64 { return reduced(dt, op, g.Rank()*n+i, g.Size()) })
			if err := want(fmt.Sprintf("reduce_scatter(%v) of %v", op, dt), dst, should); err != nil {
				return err
			}
			if err := want("the source of reduce_scatter", src, of(dt, n*g.Size(), g.Rank())); err != nil {
				return err
			}
		}
	}
	return nil
}

func nans(ctx context.Context, g *dist.Group) error {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		for _, op := range []dist.Op{dist.Max, dist.Min} {
			row := []float64{math.NaN(), -3, math.Inf(1), math.Inf(-1), 2.5}
			if g.Rank() != 1 {
				row = []float64{1, 4, -5, 6, -7}
			}
			t := tensor.FromSlice(row, 5).To(dt)
			if err := g.AllReduce(ctx, op, t); err != nil {
				return err
			}
			got := tensor.Data[float64](t.To(tensor.Float64))
			should := map[dist.Op][]float64{dist.Max: {0, 4, math.Inf(1), 6, 2.5},
				dist.Min: {0, -3, -5, math.Inf(-1), -7}}[op]
			if !math.IsNaN(got[0]) || !slices.Equal(got[1:], should[1:]) {
				return fmt.Errorf("%v of %v: %v", op, dt, got)
			}
		}
	}
	return nil
}

// manyTensors reduces small and large ones at once, and more than one call of a library moves.
func manyTensors(ctx context.Context, g *dist.Group) error {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for _, op := range []dist.Op{dist.Sum, dist.Mean, dist.Max} {
			var ts []*tensor.Tensor
			for _, n := range []int{3, 0, 70_000, 1, 300_001, 5, 7} {
				ts = append(ts, of(dt, n, g.Rank()))
			}
			if err := g.AllReduce(ctx, op, ts...); err != nil {
				return err
			}
			for _, t := range ts {
				should := allReduced(dt, op, t.Numel(), g.Size())
				if err := want(fmt.Sprintf("%v of %d", op, t.Numel()), t, should); err != nil {
					return err
				}
			}
		}
	}
	return g.AllReduce(ctx, dist.Sum) // of none
}

func reduceToRoot(ctx context.Context, g *dist.Group) error {
	for root := range g.Size() {
		for _, op := range []dist.Op{dist.Sum, dist.Mean, dist.Max} {
			t := of(tensor.Float32, 1000, g.Rank())
			if err := g.Reduce(ctx, root, op, t); err != nil {
				return err
			}
			should := of(tensor.Float32, 1000, g.Rank()) // unchanged
			if g.Rank() == root {
				should = allReduced(tensor.Float32, op, 1000, g.Size())
			}
			if err := want(fmt.Sprintf("reduce(%v) to %d", op, root), t, should); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameBits reduces numbers whose sum depends on the order.
func sameBits(ctx context.Context, g *dist.Group) error {
	for _, n := range []int{1, 17, 1000, 100_003} {
		t := tensor.RandN(tensor.Float32, tensor.NewGenerator(uint64(g.Rank())), n)
		if err := g.AllReduce(ctx, dist.Mean, t); err != nil {
			return err
		}
		all := tensor.New(tensor.Float32, g.Size(), n)
		if err := g.AllGather(ctx, all, t); err != nil {
			return err
		}
		for r := range g.Size() {
			if err := want(fmt.Sprintf("rank %d", r), all.Select(0, r).Clone(), t); err != nil {
				return err
			}
		}
	}
	return nil
}

func broadcasts(ctx context.Context, g *dist.Group) error {
	for root := range g.Size() {
		ts := []*tensor.Tensor{of(tensor.Int64, 10, g.Rank()), of(tensor.Int64, 100_000, g.Rank())}
		if err := g.Broadcast(ctx, root, ts...); err != nil {
			return err
		}
		for _, t := range ts {
			if err := want("broadcast", t, of(tensor.Int64, t.Numel(), root)); err != nil {
				return err
			}
		}
	}
	return nil
}

func gathers(ctx context.Context, g *dist.Group) error {
	size, rank := g.Size(), g.Rank()
	for _, n := range []int{0, 1, 1000, 50_000} {
		mine := of(tensor.Float32, n, rank)
		all := filled(tensor.Float32, n*size, func(i int) float64 {
			return number(tensor.Float32, i%max(1, n), i/max(1, n))
		})
		dst := tensor.New(tensor.Float32, n*size)
		if err := g.AllGather(ctx, dst, mine); err != nil {
			return err
		}
		if err := want("all_gather", dst, all); err != nil {
			return err
		}
		root := size - 1
		var at, from *tensor.Tensor
		if rank == root {
			at, from = tensor.New(tensor.Float32, n*size), all
		}
		if err := g.Gather(ctx, root, at, mine); err != nil {
			return err
		}
		if rank == root {
			if err := want("gather", at, all); err != nil {
				return err
			}
		}
		part := tensor.New(tensor.Float32, n)
		if err := g.Scatter(ctx, root, part, from); err != nil {
			return err
		}
		if err := want("scatter", part, mine); err != nil {
			return err
		}
		// Rank r sends to rank d its numbers from d·n on.
		src, come := of(tensor.Float32, n*size, rank), tensor.New(tensor.Float32, n*size)
		if err := g.AllToAll(ctx, come, src, nil, nil); err != nil {
			return err
		}
		should := filled(tensor.Float32, n*size, func(i int) float64 {
			return number(tensor.Float32, rank*n+i%max(1, n), i/max(1, n))
		})
		if err := want("all_to_all", come, should); err != nil {
			return err
		}
	}
	return nil
}

func unevenParts(ctx context.Context, g *dist.Group) error {
	size, rank := g.Size(), g.Rank()
	var dst, src, come []*tensor.Tensor
	for r := range size {
		dst = append(dst, tensor.New(tensor.Int32, 10*r+1))
		src = append(src, of(tensor.Int32, 100*rank+r, rank))
		come = append(come, tensor.New(tensor.Int32, 100*r+rank))
	}
	if err := g.AllGatherTensors(ctx, dst, of(tensor.Int32, 10*rank+1, rank)); err != nil {
		return err
	}
	if err := g.AllToAllTensors(ctx, come, src); err != nil {
		return err
	}
	for r := range size {
		if err := errors.Join(want("all_gather of tensors", dst[r], of(tensor.Int32, 10*r+1, r)),
			want("all_to_all of tensors", come[r], of(tensor.Int32, 100*r+rank, r))); err != nil {
			return err
		}
	}
	err := g.AllGatherTensors(ctx, dst, of(tensor.Int32, 5, rank)) // which fits nobody's place for it
	if !errors.Is(err, dist.ErrMismatch) {
		return fmt.Errorf("parts that do not fit: %v", err)
	}
	return nil
}

func letters(ctx context.Context, g *dist.Group) error {
	size, rank := g.Size(), g.Rank()
	next, last := (rank+1)%size, (rank+size-1)%size
	for _, n := range []int{1, 1000, 300_000} { // all send first: a letter does not wait for its receiver
		for k := range 3 {
			if err := g.Send(ctx, next, 7, of(tensor.BFloat16, n, rank+k)); err != nil {
				return err
			}
		}
		for k := range 3 {
			t := tensor.New(tensor.BFloat16, n)
			from, err := g.Recv(ctx, dist.AnyRank, 7, t)
			if err != nil || from != last {
				return fmt.Errorf("from %d: %w", from, err)
			}
			if err := want("letter", t, of(tensor.BFloat16, n, last+k)); err != nil {
				return err
			}
		}
	}
	// Tags are received in any order.
	err := errors.Join(g.Send(ctx, next, 1, of(tensor.Int8, 4, 1)), g.Send(ctx, next, 2, of(tensor.Int8, 4, 2)))
	if err != nil {
		return err
	}
	for _, tag := range []int{2, 1} {
		t := tensor.New(tensor.Int8, 4)
		if _, err := g.Recv(ctx, last, tag, t); err != nil {
			return err
		}
		if err := want("tag", t, of(tensor.Int8, 4, tag)); err != nil {
			return err
		}
	}
	if err := g.Send(ctx, next, 0, of(tensor.Int8, 4, 0)); err != nil {
		return err
	}
	if _, err := g.Recv(ctx, last, 0, tensor.New(tensor.Int16, 4)); !errors.Is(err, dist.ErrMismatch) {
		return fmt.Errorf("a letter of another dtype: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	var e *dist.RankError
	if _, err := g.Recv(short, last, 99, tensor.New(tensor.Int8, 1)); !errors.Is(err, context.DeadlineExceeded) ||
		!errors.As(err, &e) || !slices.Equal(e.Ranks, []int{last}) {
		return fmt.Errorf("a letter that does not come: %v", err)
	}
	return nil
}

// a thing crosses as every value does.
type thing struct {
	Name  string
	Table map[string][]int
	T, U  *tensor.Tensor
}

func aThing(rank int) thing {
	t := of(tensor.Float32, 10, rank)
	return thing{fmt.Sprint("of rank ", rank), map[string][]int{"a": {rank, 2}}, t,
		tensor.Ones(tensor.Float64, 100_000)}
}

func (x thing) is(rank int) error {
	if x.Name != fmt.Sprint("of rank ", rank) || !slices.Equal(x.Table["a"], []int{rank, 2}) {
		return fmt.Errorf("%+v", x)
	}
	return errors.Join(want("its tensor", x.T, of(tensor.Float32, 10, rank)),
		want("its other tensor", x.U, tensor.Ones(tensor.Float64, 100_000)))
}

func values(ctx context.Context, g *dist.Group) error {
	size, rank := g.Size(), g.Rank()
	for root := range size {
		v, err := dist.BroadcastValue(ctx, g, root, aThing(rank))
		if err = errors.Join(err, v.is(root)); err != nil {
			return err
		}
	}
	all, err := dist.AllGatherValues(ctx, g, aThing(rank))
	if err != nil {
		return err
	}
	for r, v := range all {
		if err := v.is(r); err != nil {
			return err
		}
	}
	if all, err = dist.GatherValues(ctx, g, 0, aThing(rank)); err != nil || (all == nil) == (rank == 0) {
		return fmt.Errorf("gathered %d: %w", len(all), err)
	}
	for r, v := range all {
		if err := v.is(r); err != nil {
			return err
		}
	}
	var each []int
	if rank == 0 {
		for r := range size {
			each = append(each, 11*r)
		}
	}
	if n, err := dist.ScatterValues(ctx, g, 0, each); err != nil || n != 11*rank {
		return fmt.Errorf("scattered %d: %w", n, err)
	}
	if err := dist.SendValue(ctx, g, (rank+1)%size, 3, aThing(rank)); err != nil {
		return err
	}
	v, from, err := dist.RecvValue[thing](ctx, g, dist.AnyRank, 3)
	return errors.Join(err, v.is(from))
}

func subgroups(ctx context.Context, g *dist.Group) error {
	for round := range 20 {
		members := []int{g.Size() - 1, 0}
		sub, err := g.NewGroup(ctx, members...)
		if err != nil {
			return err
		}
		if g.Rank() != 0 && g.Rank() != g.Size()-1 {
			if err := sub.Barrier(ctx); sub.Rank() != -1 || !errors.Is(err, dist.ErrRank) {
				return fmt.Errorf("no member: rank %d, %v", sub.Rank(), err)
			}
			continue
		}
		t := tensor.Full(tensor.Float32, float64(g.Rank()+round), 3)
		all, err := dist.AllGatherValues(ctx, sub, g.Rank())
		if err = errors.Join(err, sub.AllReduce(ctx, dist.Sum, t)); err != nil {
			return err
		}
		if err := want("a sum in a part", t, tensor.Full(tensor.Float32, float64(g.Size()-1+2*round), 3)); err != nil {
			return err
		}
		if !slices.Equal(all, []int{0, g.Size() - 1}) {
			return fmt.Errorf("gathered %v", all)
		}
		if err := sub.Close(); err != nil {
			return err
		}
	}
	_, err := g.NewGroup(ctx, 0, 0)
	if !errors.Is(err, dist.ErrTensor) {
		return fmt.Errorf("a rank that is named twice: %v", err)
	}
	return nil
}

func background(ctx context.Context, g *dist.Group) error {
	var works []*dist.Work
	var ts []*tensor.Tensor
	for k := range 10 {
		t := of(tensor.Float32, 10_000*k, g.Rank())
		ts = append(ts, t)
		works = append(works, g.Async(ctx, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, t) }))
	}
	for k, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
		should := allReduced(tensor.Float32, dist.Sum, 10_000*k, g.Size())
		if err := want("in the background", ts[k], should); err != nil {
			return err
		}
	}
	return nil
}

// mismatches makes calls that cannot be made. All ranks can go on.
func mismatches(ctx context.Context, g *dist.Group) error {
	last := g.Size() - 1
	n := 4
	if g.Rank() == last {
		n = 5
	}
	err := g.AllReduce(ctx, dist.Sum, tensor.Ones(tensor.Float32, n))
	var e *dist.RankError
	if !errors.Is(err, dist.ErrMismatch) || !errors.As(err, &e) ||
		g.Rank() != last && !slices.Equal(e.Ranks, []int{last}) || g.Rank() == last && len(e.Ranks) != last {
		return fmt.Errorf("another shape: %v", err)
	}
	t := tensor.Ones(tensor.Float32, 2, 3)
	if g.Rank() == last {
		t = tensor.Ones(tensor.Float32, 3, 2).T()
	}
	err = g.AllReduce(ctx, dist.Sum, t)
	if g.Rank() == last && !errors.Is(err, dist.ErrTensor) || g.Rank() != last && !errors.Is(err, dist.ErrMismatch) {
		return fmt.Errorf("a tensor that is not contiguous: %v", err)
	}
	if err := g.Broadcast(ctx, g.Size(), t); !errors.Is(err, dist.ErrTensor) && !errors.Is(err, dist.ErrMismatch) {
		return fmt.Errorf("a root that there is not: %v", err)
	}
	return g.Barrier(ctx)
}

func monitored(ctx context.Context, g *dist.Group) error {
	if err := g.MonitoredBarrier(ctx, 20*time.Second); err != nil {
		return err
	}
	if g.Rank() == 1 { // it does not come
		return nil
	}
	err := g.MonitoredBarrier(ctx, 2*time.Second)
	var e *dist.RankError
	if !errors.As(err, &e) || !slices.Equal(e.Ranks, []int{1}) || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("rank 1 did not come: %v", err)
	}
	return nil
}

func barriers(ctx context.Context, g *dist.Group) error {
	for range 100 {
		if err := g.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}
