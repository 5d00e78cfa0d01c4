package pool_test

import (
	"context"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A holder has what a function could change for its caller, if it were not copied.
type holder struct {
	List  []int
	Table map[string]int
	One   *int
}

// A tag has a field that is not sent.
type tag struct {
	Name string
	Here int `wire:"-"`
}

var (
	scribbleOn = pool.Register("scribble on", func(_ context.Context, b holder) (holder, error) {
		b.List[0], b.Table["a"], *b.One = -1, -1, -1
		return b, nil
	})
	sameTag = pool.Register("same tag", func(_ context.Context, v tag) (tag, error) {
		v.Here += 10
		return v, nil
	})
	sameText = pool.Register("same text", func(_ context.Context, v string) (string, error) { return v, nil })
	fullOf   = pool.Register("full of", func(_ context.Context, n int) (*tensor.Tensor, error) {
		t, err := tensor.NewShared(tensor.Float32, 8)
		if err != nil {
			return nil, err
		}
		return t.Fill(float64(n)).Give(), nil
	})
	sumOf = pool.Register("sum of", func(_ context.Context, t *tensor.Tensor) (int, error) {
		defer t.Close()
		return int(t.Sum()), nil
	})
)

// The function gets copies and its caller gets copies, also if both are in one process.
func TestMap_ValuesAreCopies(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		one := 1
		in := holder{[]int{1, 2}, map[string]int{"a": 1}, &one}
		out := testutil.Value(scribbleOn.Apply(testutil.Context(t), p, in))(t)
		if in.List[0] != 1 || in.Table["a"] != 1 || one != 1 {
			t.Errorf("the function changed its caller's values to %v, %v, %d", in.List, in.Table, one)
		}
		if out.List[0] != -1 || out.Table["a"] != -1 || *out.One != -1 {
			t.Errorf("got %v", out)
		}
	})
}

func TestMap_LeavesOutFieldsThatAreNotSent(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}})
		got := testutil.Value(sameTag.Apply(testutil.Context(t), p, tag{"a", 1}))(t)
		if want := (tag{Name: "a"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Values are copied before MapAsync returns.
func TestMapAsync_TheCallerMayReuseItsSlice(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		in := upTo(1000)
		r := square.MapAsync(p, in)
		clear(in)
		out := testutil.Value(r.Get(testutil.Context(t)))(t)
		for i, v := range out {
			if v != i*i {
				t.Fatalf("result %d is %d, want %d", i, v, i*i)
			}
		}
		texts := []string{"", "a", "\xff is not UTF-8", string(make([]byte, 1000))}
		if got := testutil.Value(sameText.Map(testutil.Context(t), p, texts))(t); !slices.Equal(got, texts) {
			t.Errorf("got %q, want %q", got, texts)
		}
	})
}

// Numbers in and shared memory out, and the other way round: each side has its own form.
func TestMap_MixesNumbersAndSharedMemory(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		ctx := testutil.Context(t)
		full := testutil.Value(fullOf.Map(ctx, p, upTo(50)))(t)
		sums := testutil.Value(sumOf.Map(ctx, p, full))(t)
		for i, v := range sums {
			if v != 8*i {
				t.Errorf("sum %d is %d, want %d", i, v, 8*i)
			}
			full[i].Close()
		}
	})
}
