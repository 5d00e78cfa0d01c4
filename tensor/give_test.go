package tensor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func queue[T any](t testing.TB, capacity int) *ipc.Queue[T] {
	t.Helper()
	q, err := ipc.NewQueue[T](capacity)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, q.Close()) })
	return q
}

// shared returns a tensor in shared memory with the numbers from 0 on.
func shared(t testing.TB, shape ...int) *tensor.Tensor {
	t.Helper()
	x := count(tensor.Float32, shape...)
	testutil.NoError(t, x.Share())
	return x
}

func closed(x *tensor.Tensor) bool { return errors.Is(x.Share(), tensor.ErrClosed) }

func TestGive_ClosesWhatIsSent(t *testing.T) {
	local(t)
	ctx, q := testutil.Context(t), queue[*tensor.Tensor](t, 2)
	base := shared(t, 3, 2)
	strided := base.T()
	testutil.NoError(t, base.Close())
	for name, x := range map[string]*tensor.Tensor{
		"shared": shared(t, 2, 3), "on the heap": count(tensor.Float32, 2, 3), "strided": strided,
		"empty": shared(t, 0),
	} {
		want := x.Clone()
		testutil.NoError(t, q.Put(ctx, x.Give()))
		if !closed(x) {
			t.Errorf("%s: it is open", name)
		}
		panics(t, func() { x.Sum() })
		testutil.NoError(t, x.Close())
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		if !tensor.Equal(got, want) {
			t.Errorf("%s: %v arrived, want %v", name, got, want)
		}
		testutil.NoError(t, got.Close())
	}
}

func TestGive_LeavesWhatIsNotSent(t *testing.T) {
	d := local(t)
	ctx, q := testutil.Context(t), queue[*tensor.Tensor](t, 1)
	x, y := shared(t, 4), shared(t, 4)
	testutil.NoError(t, q.Put(ctx, y.Give()))
	before := d.Stats().Blocks
	for range 3 {
		if err := q.TryPut(x.Give()); !errors.Is(err, ipc.ErrFull) {
			t.Fatal(err)
		}
		if closed(x) || x.Sum() != 6 {
			t.Fatal("a refused put has taken the tensor")
		}
	}
	testutil.NoError(t, x.Zero().Fill(2).Share())
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := q.Put(short, x.Give()); !errors.Is(err, ipc.ErrFull) {
		t.Fatal(err)
	}
	got, err := q.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, got.Close())
	if n := d.Stats().Blocks; n != before-1 {
		t.Errorf("%d blocks, want %d", n, before-1)
	}
	testutil.NoError(t, q.Put(ctx, x.Give())) // as if nothing had been
	got, err = q.Get(ctx)
	testutil.NoError(t, err)
	if got.Sum() != 8 {
		t.Errorf("%v arrived", got)
	}
	testutil.NoError(t, got.Close())
	if n := d.Stats().Blocks; n != before-2 {
		t.Errorf("%d blocks, want %d", n, before-2)
	}
	if err := q.Put(ctx, got.Give()); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("a closed tensor: %v", err)
	}
}

func TestGive_OnlyTheNextMessageTakes(t *testing.T) {
	local(t)
	ctx, q := testutil.Context(t), queue[*tensor.Tensor](t, 1)
	x, full := shared(t, 4), shared(t, 1)
	testutil.NoError(t, q.Put(ctx, full.Give()))
	if err := q.TryPut(x.Give()); !errors.Is(err, ipc.ErrFull) {
		t.Fatal(err)
	}
	got, err := q.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, got.Close())
	testutil.NoError(t, q.Put(ctx, x))
	if closed(x) {
		t.Error("a put that was not given the tensor has closed it")
	}
	got, err = q.Get(ctx)
	testutil.NoError(t, err)
	if !got.SameStorage(x) {
		t.Error("it arrived on another storage")
	}
	testutil.NoError(t, errors.Join(got.Close(), x.Close()))
}

func TestGive_WithOthers(t *testing.T) {
	d := local(t)
	ctx, q := testutil.Context(t), queue[[]*tensor.Tensor](t, 2)
	pass := func(vs ...*tensor.Tensor) []*tensor.Tensor {
		t.Helper()
		testutil.NoError(t, q.Put(ctx, vs))
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		return got
	}
	end := func(vs ...*tensor.Tensor) {
		t.Helper()
		for _, v := range vs {
			testutil.NoError(t, v.Close())
		}
	}

	x := shared(t, 4)
	got := pass(x.Give(), x, x) // one tensor three times
	if !closed(x) || !got[0].SameStorage(got[1]) || !got[0].SameStorage(got[2]) || got[2].Sum() != 6 {
		t.Errorf("twice in a message: %v", got)
	}
	end(got...)

	x = shared(t, 2, 2)
	v := x.T()
	got = pass(x.Give()) // the view stays
	if !closed(x) || closed(v) || v.Sum() != 6 || !got[0].SameStorage(v) {
		t.Error("a view of what was given was closed with it, or is of other memory")
	}
	end(append(got, v)...)

	x = shared(t, 2, 2)
	v = x.T()
	got = pass(v.Give(), x.Give()) // both views go
	if !closed(x) || !closed(v) || !got[0].SameStorage(got[1]) {
		t.Error("two views that were given")
	}
	end(got...)

	x, v = shared(t, 4), shared(t, 4)
	got = pass(v, x.Give()) // one goes, another stays
	if !closed(x) || closed(v) || !got[0].SameStorage(v) || got[1].Sum() != 6 {
		t.Error("a tensor that was given beside one that was not")
	}
	end(append(got, v)...)

	var many []*tensor.Tensor // more blocks than a slot has room for
	for range 9 {
		many = append(many, shared(t, 4).Give())
	}
	got = pass(many...)
	for i := range many {
		if !closed(many[i]) || got[i].Sum() != 6 {
			t.Errorf("tensor %d of many", i)
		}
	}
	end(got...)
	if n := d.Stats().Blocks; n != 3 { // the queue
		t.Errorf("%d blocks are left", n-3)
	}
}

// A message that arrives with the block while it is under way makes a tensor that has a reference
// of its own, whether the block is sent then or not.
func TestGive_OfWhatArrivesMeanwhile(t *testing.T) {
	for _, sent := range []bool{true, false} {
		local(t)
		ctx := testutil.Context(t)
		full, other := queue[*tensor.Tensor](t, 1), queue[*tensor.Tensor](t, 1)
		x, first := shared(t, 4), shared(t, 1)
		testutil.NoError(t, other.Put(ctx, x))
		testutil.NoError(t, full.Put(ctx, first.Give()))
		putting, stop := context.WithCancel(ctx)
		put := make(chan error, 1)
		given := x.Give()
		go func() { put <- full.Put(putting, given) }()
		testutil.Eventually(t, func() bool { return closed(x) }, "the put does not begin")
		arrived, err := other.Get(ctx)
		testutil.NoError(t, err)
		if !sent {
			stop()
			if err := <-put; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if closed(x) || !x.SameStorage(arrived) {
				t.Error("what was not sent has another storage than what arrived of its block")
			}
			testutil.NoError(t, x.Close())
		}
		got, err := full.Get(ctx)
		testutil.NoError(t, err)
		testutil.NoError(t, got.Close())
		if sent {
			testutil.NoError(t, <-put)
			if got, err = full.Get(ctx); err == nil && !got.SameStorage(arrived) {
				t.Error("what came later of the block has another storage")
			}
			testutil.NoError(t, errors.Join(err, got.Close()))
		}
		if arrived.Sum() != 6 {
			t.Errorf("%v", arrived)
		}
		testutil.NoError(t, arrived.Close())
		stop()
	}
}

// A tensor that is closed while it is under way is closed, whether it is sent then or not.
func TestGive_AndCloseTooEarly(t *testing.T) {
	for _, sent := range []bool{true, false} {
		local(t)
		ctx, q := testutil.Context(t), queue[*tensor.Tensor](t, 1)
		x, first := shared(t, 4), shared(t, 1)
		testutil.NoError(t, q.Put(ctx, first.Give()))
		putting, stop := context.WithCancel(ctx)
		put := make(chan error, 1)
		given := x.Give()
		go func() { put <- q.Put(putting, given) }()
		testutil.Eventually(t, func() bool { return closed(x) }, "the put does not begin")
		testutil.NoError(t, x.Close())
		if !sent {
			stop()
			if err := <-put; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		got, err := q.Get(ctx)
		testutil.NoError(t, err)
		testutil.NoError(t, got.Close())
		if sent {
			testutil.NoError(t, <-put)
			got, err = q.Get(ctx)
			testutil.NoError(t, err)
			testutil.NoError(t, got.Close())
		}
		if !closed(x) {
			t.Error("it is open again")
		}
		stop()
	}
}
