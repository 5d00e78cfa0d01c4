package manager_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestDict_IsAMap(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := manager.NewDict[string, int](ctx, m)
		closing(t, d, err)
		testutil.NoError(t, d.Set(ctx, "a", 1))
		testutil.NoError(t, d.Update(ctx, map[string]int{"b": 2, "c": 3}))
		v, err := d.Get(ctx, "b")
		want(t, v, err, 2)
		_, err = d.Get(ctx, "z")
		testutil.ErrorIs(t, err, manager.ErrNoKey)
		v, err = d.Add(ctx, "a", 41)
		want(t, v, err, 42)
		v, err = d.Add(ctx, "new", -3)
		want(t, v, err, -3)
		v, err = d.SetDefault(ctx, "a", 7)
		want(t, v, err, 42)
		v, err = d.SetDefault(ctx, "e", 7)
		want(t, v, err, 7)
		v, err = d.Pop(ctx, "e")
		want(t, v, err, 7)
		testutil.NoError(t, d.Delete(ctx, "new"))
		testutil.ErrorIs(t, d.Delete(ctx, "new"), manager.ErrNoKey)
		ok, err := d.CompareAndSwap(ctx, "a", 42, 43)
		want(t, ok, err, true)
		ok, err = d.CompareAndSwap(ctx, "a", 42, 44)
		want(t, ok, err, false)
		ok, err = d.Has(ctx, "c")
		want(t, ok, err, true)
		n, err := d.Len(ctx)
		want(t, n, err, 3)
		all, err := d.All(ctx)
		if err != nil || !maps.Equal(all, map[string]int{"a": 43, "b": 2, "c": 3}) {
			t.Errorf("%v, %v", all, err)
		}
		keys, err := d.Keys(ctx)
		if err != nil || !slices.Equal(keys, []string{"a", "b", "c"}) {
			t.Errorf("%v, %v", keys, err)
		}
		values, err := d.Values(ctx)
		if err != nil || !slices.Equal(values, []int{43, 2, 3}) {
			t.Errorf("%v, %v", values, err)
		}
		k, v, err := d.PopItem(ctx)
		if err != nil || all[k] != v {
			t.Errorf("%v: %v, %v", k, v, err)
		}
		testutil.NoError(t, d.Clear(ctx))
		n, err = d.Len(ctx)
		want(t, n, err, 0)
		_, _, err = d.PopItem(ctx)
		testutil.ErrorIs(t, err, manager.ErrNoKey)
	})
}

func TestDict_LosesNoUpdate(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := manager.NewDict[string, float64](ctx, m)
		closing(t, d, err)
		l, err := manager.NewList(ctx, m, 0)
		closing(t, l, err)
		v, err := manager.NewValue[int32](ctx, m, 0)
		closing(t, v, err)
		const callers, times = 4, 200
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range times {
					_, err1 := d.Add(ctx, "x", 0.5)
					_, err2 := l.Add(ctx, 0, 1)
					_, err3 := v.Add(ctx, 2)
					for _, err := range []error{err1, err2, err3} {
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		x, err := d.Get(ctx, "x")
		want(t, x, err, callers*times/2)
		n, err := l.Get(ctx, 0)
		want(t, n, err, callers*times)
		i, err := v.Get(ctx)
		want(t, i, err, 2*callers*times)
	})
}

func TestArray_IsReadWithoutACall(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		a, err := manager.NewArray(ctx, m, 1.5, 2.5, -3)
		closing(t, a, err)
		n, err := a.Len(ctx)
		want(t, n, err, 3)
		v, err := a.Get(ctx, 2)
		want(t, v, err, -3)
		v, err = a.Add(ctx, 0, 0.25)
		want(t, v, err, 1.75)
		testutil.NoError(t, a.AddSlice(ctx, 1, []float64{1, 1}))
		testutil.NoError(t, a.Set(ctx, 0, 9))
		all, err := a.All(ctx)
		if err != nil || !slices.Equal(all, []float64{9, 3.5, -2}) {
			t.Errorf("%v, %v", all, err)
		}
		ok, err := a.CompareAndSwap(ctx, 0, 9, 10)
		want(t, ok, err, true)
		_, err = a.Get(ctx, 3)
		testutil.ErrorIs(t, err, manager.ErrIndex)
		_, err = a.Slice(ctx, 2, 1)
		testutil.ErrorIs(t, err, manager.ErrIndex)
		testutil.ErrorIs(t, a.SetSlice(ctx, 2, []float64{1, 2}), manager.ErrIndex)
	})
}

// Arithmetic is that of the element's type, the overflow included.
func TestArray_NumbersAreThoseOfTheirType(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	i8, err := manager.NewValue[int8](ctx, m, 127)
	closing(t, i8, err)
	v8, err := i8.Add(ctx, 1)
	want(t, v8, err, -128)
	u64, err := manager.NewValue[uint64](ctx, m, 1<<63)
	closing(t, u64, err)
	v64, err := u64.Add(ctx, 1<<63+5)
	want(t, v64, err, 5)
	f32, err := manager.NewValue[float32](ctx, m, 1<<24)
	closing(t, f32, err)
	v32, err := f32.Add(ctx, 1)
	want(t, v32, err, 1<<24)
	d, err := manager.NewDict[string, string](ctx, m)
	closing(t, d, err)
	_, err = d.Add(ctx, "a", "b")
	testutil.ErrorIs(t, err, manager.ErrNotNumber)
	testutil.NoError(t, d.Set(ctx, "a", "b"))
	_, err = d.Add(ctx, "a", "b")
	testutil.ErrorIs(t, err, manager.ErrNotNumber)
}

func TestDict_HoldsProxies(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := manager.NewDict[string, *manager.List[int]](ctx, m)
		closing(t, d, err)
		l, err := manager.NewList(ctx, m, 1, 2)
		testutil.NoError(t, err)
		testutil.NoError(t, d.Set(ctx, "list", l))
		testutil.NoError(t, l.Close()) // now only the dict has it
		for range 3 {
			inner, err := d.Get(ctx, "list")
			testutil.NoError(t, err)
			testutil.NoError(t, inner.Append(ctx, 3))
			testutil.NoError(t, inner.Close())
		}
		inner, err := d.Get(ctx, "list")
		closing(t, inner, err)
		all, err := inner.All(ctx)
		if err != nil || !slices.Equal(all, []int{1, 2, 3, 3, 3}) {
			t.Errorf("%v, %v", all, err)
		}
		testutil.NoError(t, d.Clear(ctx))
		n, err := inner.Len(ctx)
		want(t, n, err, 5)
	})
}

func TestList_IsASlice(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	l, err := manager.NewList(ctx, m, "b", "d")
	closing(t, l, err)
	testutil.NoError(t, l.Insert(ctx, 0, "a"))
	testutil.NoError(t, l.Insert(ctx, 2, "c"))
	testutil.NoError(t, l.Append(ctx, "e", "f"))
	testutil.NoError(t, l.Set(ctx, 5, "F"))
	i, err := l.Index(ctx, "d")
	want(t, i, err, 3)
	_, err = l.Index(ctx, "z")
	testutil.ErrorIs(t, err, manager.ErrNoKey)
	v, err := l.Pop(ctx, 0)
	want(t, v, err, "a")
	testutil.NoError(t, l.Delete(ctx, 0))
	testutil.NoError(t, l.Reverse(ctx))
	s, err := l.Slice(ctx, 1, 3)
	if err != nil || fmt.Sprint(s) != "[e d]" {
		t.Errorf("%v, %v", s, err)
	}
	testutil.NoError(t, l.Replace(ctx, 0, -1, "x"))
	_, err = l.Get(ctx, 1)
	testutil.ErrorIs(t, err, manager.ErrIndex)
	_, err = l.Get(ctx, -2)
	testutil.ErrorIs(t, err, manager.ErrIndex)
	n, err := l.Len(ctx)
	want(t, n, err, 1)
}

// An index outside of the list means its beginning or its end, as for Python's list.insert.
func TestList_InsertClamps(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		l, err := manager.NewList(ctx, m, "b", "c")
		closing(t, l, err)
		testutil.NoError(t, l.Insert(ctx, -100, "a"))
		testutil.NoError(t, l.Insert(ctx, 100, "e"))
		testutil.NoError(t, l.Insert(ctx, -1, "d"))
		all, err := l.Slice(ctx, 0, -1)
		if got := strings.Join(all, ""); err != nil || got != "abcde" {
			t.Errorf("%q, %v, want abcde", got, err)
		}
	})
}

func TestRegression_S3_2_IndicesOfAManagersListsCountFromTheEnd(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		l, err := manager.NewList(ctx, m, 1, 2, 3)
		closing(t, l, err)
		testutil.NoError(t, l.Set(ctx, -1, 30))
		v, err := l.Get(ctx, -1)
		want(t, v, err, 30)
		v, err = l.Add(ctx, -3, 9)
		want(t, v, err, 10)
		testutil.NoError(t, l.Insert(ctx, -1, 25)) // before the last one
		refused := errors.New("not now")
		if err := m.Txn(ctx, func(tx context.Context) error {
			for _, i := range []int{-2, -1, -2} {
				if _, err := l.Pop(tx, i); err != nil {
					return err
				}
			}
			return refused
		}); !errors.Is(err, refused) {
			t.Error(err)
		}
		v, err = l.Pop(ctx, -3)
		want(t, v, err, 2)
		testutil.NoError(t, l.Delete(ctx, -1))
		if all, err := l.All(ctx); err != nil || !slices.Equal(all, []int{10, 25}) {
			t.Errorf("%v, %v", all, err)
		}
		for _, i := range []int{-3, 2} {
			_, err = l.Get(ctx, i)
			testutil.ErrorIs(t, err, manager.ErrIndex)
		}
		a, err := manager.NewArray(ctx, m, 1.5, 2.5)
		closing(t, a, err)
		testutil.NoError(t, a.Set(ctx, -1, 5))
		f, err := a.Add(ctx, -2, 1)
		want(t, f, err, 2.5)
		f, err = a.Get(ctx, -1)
		want(t, f, err, 5)
		_, err = a.Get(ctx, -3)
		testutil.ErrorIs(t, err, manager.ErrIndex)
	})
}

func TestList_IsPythons(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	l, err := manager.NewList(ctx, m, 3, -1, 200, 3)
	closing(t, l, err)
	is := func(what string, vs ...int) {
		t.Helper()
		if got, err := l.All(ctx); err != nil || !slices.Equal(got, vs) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, vs)
		}
	}
	n, err := l.Count(ctx, 3)
	want(t, n, err, 2)
	ok, err := l.Has(ctx, 200)
	want(t, ok, err, true)
	ok, err = l.Has(ctx, 4)
	want(t, ok, err, false)
	testutil.NoError(t, l.Sort(ctx))
	is("sorted", -1, 3, 3, 200)
	testutil.NoError(t, l.SortFunc(ctx, func(a, b int) int { return b - a }))
	is("sorted down", 200, 3, 3, -1)
	testutil.NoError(t, m.Txn(ctx, func(tx context.Context) error {
		return l.SortFunc(tx, func(a, b int) int { return a - b })
	}))
	is("sorted within a Txn", -1, 3, 3, 200)
	testutil.NoError(t, l.Remove(ctx, 3))
	is("removed", -1, 3, 200)
	testutil.ErrorIs(t, l.Remove(ctx, 4), manager.ErrNoKey)
	v, err := l.Pop(ctx, -1)
	want(t, v, err, 200)
	testutil.NoError(t, l.Repeat(ctx, 3))
	is("repeated", -1, 3, -1, 3, -1, 3)
	testutil.ErrorIs(t, l.Repeat(ctx, -1), manager.ErrArgument)
	testutil.ErrorIs(t, l.Repeat(ctx, 1<<40), manager.ErrArgument)
	testutil.NoError(t, l.Replace(ctx, 1, 5, 7, 8))
	is("replaced", -1, 7, 8, 3)
	testutil.NoError(t, l.Replace(ctx, 2, -1))
	is("cut", -1, 7)
	testutil.ErrorIs(t, l.Replace(ctx, 1, 3, 5), manager.ErrIndex)
	testutil.NoError(t, l.Repeat(ctx, 0))
	is("emptied")
	_, err = l.Pop(ctx, -1)
	testutil.ErrorIs(t, err, manager.ErrIndex)

	words, err := manager.NewList(ctx, m, "b", "", "ab", "a")
	closing(t, words, err)
	testutil.NoError(t, words.Sort(ctx))
	if got, err := words.All(ctx); err != nil || !slices.Equal(got, []string{"", "a", "ab", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
	pairs, err := manager.NewList(ctx, m, [2]int{2, 1}, [2]int{1, 2})
	closing(t, pairs, err)
	testutil.ErrorIs(t, pairs.Sort(ctx), manager.ErrNotOrdered)
	if got, err := pairs.All(ctx); err != nil || got[0] != [2]int{2, 1} {
		t.Errorf("%v, %v", got, err)
	}
}

// What a list holds of shared memory is counted for each of its elements.
func TestList_RepeatedElementsHoldTheirMemory(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	l, err := manager.NewList[*ipc.Event](ctx, m)
	closing(t, l, err)
	e, err := ipc.NewEvent()
	testutil.NoError(t, err)
	testutil.NoError(t, l.Append(ctx, e))
	testutil.NoError(t, e.Close())
	testutil.NoError(t, l.Repeat(ctx, 3))
	testutil.NoError(t, l.Delete(ctx, 0))
	testutil.NoError(t, l.Replace(ctx, 0, 1))
	e, err = l.Pop(ctx, -1)
	testutil.NoError(t, err)
	testutil.NoError(t, errors.Join(e.Set(), e.Close()))
}

func TestSet_AndNamespaceArePythons(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	s, err := manager.NewSet[int](ctx, m)
	closing(t, s, err)
	testutil.NoError(t, s.Add(ctx, 3, 1, 2, 3))
	n, err := s.Len(ctx)
	want(t, n, err, 3)
	testutil.NoError(t, s.Remove(ctx, 2))
	testutil.ErrorIs(t, s.Remove(ctx, 2), manager.ErrNoKey)
	all, err := s.All(ctx)
	if err != nil || !slices.Equal(all, []int{1, 3}) {
		t.Errorf("%v, %v", all, err)
	}
	testutil.NoError(t, s.Add(ctx, 4, 5))
	testutil.NoError(t, s.Discard(ctx, 5, 6))
	testutil.NoError(t, s.Keep(ctx, 3, 4, 5))
	all, err = s.All(ctx)
	if err != nil || !slices.Equal(all, []int{3, 4}) {
		t.Errorf("%v, %v", all, err)
	}
	_, err = s.Pop(ctx)
	testutil.NoError(t, err)
	ns, err := manager.NewNamespace(ctx, m)
	closing(t, ns, err)
	testutil.NoError(t, ns.Set(ctx, "lr", 0.5))
	testutil.NoError(t, ns.Set(ctx, "name", "net"))
	lr, err := ns.Get(ctx, "lr")
	want(t, lr, err, any(0.5))
	testutil.NoError(t, ns.Delete(ctx, "lr"))
	_, err = ns.Get(ctx, "lr")
	testutil.ErrorIs(t, err, manager.ErrNoKey)
	names, err := ns.Names(ctx)
	if err != nil || !slices.Equal(names, []string{"name"}) {
		t.Errorf("%v, %v", names, err)
	}
}

func TestDict_PopItemGivesEachEntryOnce(t *testing.T) {
	ctx, m := t.Context(), local(t)
	d, err := manager.NewDict[int, int](ctx, m)
	closing(t, d, err)
	left := make(map[int]int)
	for k := range 100 {
		left[k] = -k
	}
	testutil.NoError(t, d.Update(ctx, left))
	for _, k := range []int{0, 99, 50, 7, 98} { // the first, the last and some between
		testutil.NoError(t, d.Delete(ctx, k))
		delete(left, k)
	}
	testutil.NoError(t, d.Set(ctx, 7, 70))
	left[7] = 70
	for n := len(left); n > 0; n-- {
		k, v, err := d.PopItem(ctx)
		testutil.NoError(t, err)
		if want, ok := left[k]; !ok || v != want {
			t.Fatalf("PopItem returned %d and %d; there was %d, %v", k, v, want, ok)
		}
		delete(left, k)
	}
	if _, _, err := d.PopItem(ctx); !errors.Is(err, manager.ErrNoKey) {
		t.Errorf("PopItem of an empty Dict: %v", err)
	}
}

// A slice of an array has no negative begin, as in Slice. An index may count from the end.
func TestArray_SlicesHaveNoNegativeBegin(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		a, err := manager.NewArray(ctx, m, 1, 2, 3)
		closing(t, a, err)
		_, err = a.Slice(ctx, -1, 3)
		testutil.ErrorIs(t, err, manager.ErrIndex)
		for _, low := range []int{-1, -3, -100} {
			testutil.ErrorIs(t, a.SetSlice(ctx, low, []int{9}), manager.ErrIndex)
			testutil.ErrorIs(t, a.AddSlice(ctx, low, []int{9}), manager.ErrIndex)
		}
		testutil.ErrorIs(t, a.Set(ctx, -4, 9), manager.ErrIndex)
		testutil.ErrorIs(t, a.SetSlice(ctx, 3, []int{9}), manager.ErrIndex)
		testutil.NoError(t, a.Set(ctx, -1, 7), a.SetSlice(ctx, 3, nil))
		all, err := a.All(ctx)
		testutil.NoError(t, err)
		if !slices.Equal(all, []int{1, 2, 7}) {
			t.Errorf("got %v, want [1 2 7]", all)
		}
	})
}
