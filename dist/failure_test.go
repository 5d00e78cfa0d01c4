package dist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// blamed wants a *RankError that names these ranks and wraps an error.
func blamed(t testing.TB, err, wraps error, ranks ...int) {
	t.Helper()
	var e *dist.RankError
	if !errors.As(err, &e) || !errors.Is(err, wraps) || !slices.Equal(e.Ranks, ranks) {
		t.Errorf("%v: want ranks %v and %v", err, ranks, wraps)
	}
}

func ones(n ...int) *tensor.Tensor { return tensor.Full(tensor.Float32, 1, n...) }

func TestGroup_DifferentCallsAreAnErrorForAll(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	two := func(others func(g *dist.Group) error, one func(g *dist.Group) error) func(g *dist.Group) error {
		return func(g *dist.Group) error {
			if g.Rank() == 1 {
				return one(g)
			}
			return others(g)
		}
	}
	sum := func(t *tensor.Tensor) func(g *dist.Group) error {
		return func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, t.Clone()) }
	}
	long := make([]*tensor.Tensor, 300) // more than fits into a head
	for i := range long {
		long[i] = ones(2)
	}
	longer := append(slices.Clone(long[:299]), ones(1))
	for name, f := range map[string]func(g *dist.Group) error{
		"shape":  two(sum(ones(2, 3)), sum(ones(3, 2))),
		"length": two(sum(ones(4)), sum(ones(5))),
		"dtype":  two(sum(ones(4)), sum(ones(4).To(tensor.Float64))),
		"op":     two(sum(ones(4)), func(g *dist.Group) error { return g.AllReduce(ctx, dist.Max, ones(4)) }),
		"root": two(func(g *dist.Group) error { return g.Broadcast(ctx, 0, ones(4)) },
			func(g *dist.Group) error { return g.Broadcast(ctx, 2, ones(4)) }),
		"order": two(sum(ones(4)), func(g *dist.Group) error { return g.Barrier(ctx) }),
		"the end of many": two(func(g *dist.Group) error { return g.Broadcast(ctx, 0, long...) },
			func(g *dist.Group) error { return g.Broadcast(ctx, 0, longer...) }),
	} {
		errs := together(groups, f)
		blamed(t, errs[0], dist.ErrMismatch, 1)
		blamed(t, errs[1], dist.ErrMismatch, 0, 2)
		blamed(t, errs[2], dist.ErrMismatch, 1)
		if t.Failed() {
			t.Fatal(name)
		}
		all(t, together(groups, sum(ones(4)))) // the group goes on
	}
	errs := together(groups, two(sum(ones(2, 3)), func(g *dist.Group) error { return g.Barrier(ctx) }))
	if s := errs[0].Error(); !strings.Contains(s, "all_reduce(sum) of float32 [2 3]: rank 1: ") ||
		!strings.HasSuffix(s, "barrier") {
		t.Error(s)
	}
}

func TestGroup_TensorsThatDoNotFitAreAnErrorForAll(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	for name, f := range map[string]func(g *dist.Group) error{
		"not contiguous": func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ones(2, 3).T()) },
		"mean of integers": func(g *dist.Group) error {
			return g.AllReduce(ctx, dist.Mean, ones(2).To(tensor.Int32))
		},
		"no such operation": func(g *dist.Group) error { return g.AllReduce(ctx, 99, ones(2)) },
		"complex numbers": func(g *dist.Group) error {
			return g.AllReduce(ctx, dist.Max, ones(2).To(tensor.Complex64))
		},
		"several dtypes": func(g *dist.Group) error {
			return g.AllReduce(ctx, dist.Sum, ones(2), ones(2).To(tensor.Float64))
		},
		"root":              func(g *dist.Group) error { return g.Reduce(ctx, 2, dist.Sum, ones(2)) },
		"all_gather":        func(g *dist.Group) error { return g.AllGather(ctx, ones(5), ones(2)) },
		"reduce_scatter":    func(g *dist.Group) error { return g.ReduceScatter(ctx, dist.Sum, ones(2), ones(3)) },
		"all_to_all":        func(g *dist.Group) error { return g.AllToAll(ctx, ones(3), ones(3), nil, nil) },
		"all_to_all larger": func(g *dist.Group) error { return g.AllToAll(ctx, ones(2), ones(4), nil, nil) },
		"gather to nobody":  func(g *dist.Group) error { return g.Gather(ctx, 2, nil, ones(1)) },
		"gather to nil":     func(g *dist.Group) error { return g.AllGather(ctx, nil, ones(1)) },
	} {
		for _, err := range together(groups, f) {
			if !errors.Is(err, dist.ErrTensor) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// What only the root has is missing there, or is somewhere else.
	for name, f := range map[string]func(g *dist.Group, large *tensor.Tensor) error{
		"gather":  func(g *dist.Group, large *tensor.Tensor) error { return g.Gather(ctx, 0, large, ones(2)) },
		"scatter": func(g *dist.Group, large *tensor.Tensor) error { return g.Scatter(ctx, 0, ones(2), large) },
	} {
		for what, large := range map[string][]*tensor.Tensor{
			"is nil": {nil, nil}, "rank 1": {ones(4), ones(4)},
			"large tensor has 3 elements, want 2 times 2": {ones(3), nil}, "not contiguous": {ones(2, 2).T(), nil},
		} {
			errs := together(groups, func(g *dist.Group) error { return f(g, large[g.Rank()]) })
			if !errors.Is(errors.Join(errs...), dist.ErrTensor) || errs[0] == nil || errs[1] == nil ||
				!strings.Contains(errs[0].Error(), what) {
				t.Errorf("%s, %s: %v", name, what, errs)
			}
		}
	}
	// Of one rank alone, the other gets to know why.
	errs := together(groups, func(g *dist.Group) error {
		v := ones(3, 3)
		if g.Rank() == 1 {
			v = v.T().Narrow(0, 0, 3).Transpose(0, 1).T()
		}
		return g.AllReduce(ctx, dist.Sum, v)
	})
	blamed(t, errs[0], dist.ErrMismatch, 1)
	if !errors.Is(errs[1], dist.ErrTensor) || !strings.Contains(errs[0].Error(), "not contiguous") {
		t.Error(errs)
	}
	all(t, together(groups, func(g *dist.Group) error { return g.Barrier(ctx) }))
}

func TestGroup_CloseFailsTheCallsOfOthers(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	errs := together(groups, func(g *dist.Group) error {
		if err := g.AllReduce(ctx, dist.Sum, ones(1000)); err != nil {
			return err // a rank that has finished disturbs none that takes part
		}
		if g.Rank() == 2 {
			return g.Close()
		}
		return g.Barrier(ctx)
	})
	blamed(t, errs[0], dist.ErrLeft, 2)
	blamed(t, errs[1], dist.ErrLeft, 2)
	testutil.NoError(t, errs[2])
	blamed(t, groups[0].Barrier(ctx), dist.ErrLeft, 2) // later calls as well
	if err := groups[2].Barrier(ctx); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
	testutil.NoError(t, groups[2].Close())
}

func TestGroup_CloseEndsTheCallThatIsGoingOn(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	ended := make(chan error)
	go func() { ended <- groups[0].Barrier(ctx) }()
	testutil.NoError(t, groups[0].Close()) // before the call, or in it
	if err := <-ended; !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
}

func TestGroup_NamesWhoDoesNotComeInTime(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	errs := together(groups[:2], func(g *dist.Group) error {
		if g.Rank() == 0 {
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			return g.Barrier(soon)
		}
		return g.Barrier(ctx)
	})
	if !errors.Is(errs[0], context.DeadlineExceeded) || !errors.Is(errs[0], dist.ErrBroken) ||
		errors.Is(errs[1], context.DeadlineExceeded) {
		t.Error(errs)
	}
	var e *dist.RankError
	if !errors.As(errs[0], &e) || !slices.Contains(e.Ranks, 2) { // rank 1 may not have been there yet either
		t.Error(errs[0])
	}
	for _, g := range groups[1:] {
		if err := g.AllReduce(ctx, dist.Sum, ones(2)); !errors.Is(err, dist.ErrBroken) {
			t.Error(err)
		}
	}
}

func TestGroup_RanksAreTakenOnce(t *testing.T) {
	groups, g := handles(t, 2), newGroup(t, 3)
	testutil.NoError(t, g.Join(1))
	for _, err := range []error{g.Join(0), newGroup(t, 2).Join(2), newGroup(t, 2).Join(-1),
		newGroup(t, 1).Barrier(t.Context())} {
		if !errors.Is(err, dist.ErrRank) {
			t.Error(err)
		}
	}
	if g.Rank() != 1 || g.Size() != 3 || newGroup(t, 1).Rank() != -1 || groups[1].Rank() != 1 {
		t.Error("ranks and sizes")
	}
	var zero dist.Group
	for _, err := range []error{zero.Join(0), zero.Barrier(t.Context()),
		zero.AllReduce(t.Context(), dist.Sum, ones(1))} {
		if !errors.Is(err, dist.ErrClosed) {
			t.Error(err)
		}
	}
	testutil.NoError(t, zero.Close())
	for _, n := range []int{-1, 0, 257} {
		if _, err := dist.NewGroup(n); !errors.Is(err, dist.ErrSize) {
			t.Error(err)
		}
	}
}

// What a library says of its error ends with the cause, which the others hear however long it is.
func TestClip_KeepsTheCause(t *testing.T) {
	long := "MPI_Allreduce: Other MPI error, error stack:\n" + strings.Repeat("MPIR_Allreduce…: \n", 60) +
		"MPIC_Wait(91): Connection reset by peer"
	got := dist.Clip(long, 512)
	if len(got) > 512 || !strings.HasPrefix(got, "MPI_Allreduce: ") ||
		!strings.HasSuffix(got, "Connection reset by peer") ||
		!utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if short := "rank 1 has left"; dist.Clip(short, 512) != short {
		t.Error("what is short is changed")
	}
}
