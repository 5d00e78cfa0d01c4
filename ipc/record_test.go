package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A fish is a struct as users have them: nested, with arrays, a bool and what fills its last word.
type fish struct {
	At     [2]float64
	Name   [6]byte
	Alive  bool
	_      [1]byte
	Weight struct{ Grams, Error float32 }
	number int64
}

func TestRegression_S3_2_ABoolAndAStructAreShared(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		flag, err := ipc.NewRecord(true)
		testutil.NoError(t, err)
		defer flag.Close()
		again, err := receive[ipc.Record[bool]](t, flag)
		testutil.NoError(t, err)
		testutil.NoError(t, again.Store(false))
		if v, err := flag.Load(); v || err != nil {
			t.Error(v, err)
		}
		cod := fish{At: [2]float64{1, -2}, Name: [6]byte{'c', 'o', 'd'}, Alive: true, number: -7}
		cod.Weight.Grams = 12.5
		all, err := ipc.NewRecords[fish](3)
		testutil.NoError(t, err)
		defer all.Close()
		testutil.NoError(t, all.Write(0, []fish{{}, {}, cod}))
		there, err := receive[ipc.Records[fish]](t, all)
		testutil.NoError(t, err)
		if v, err := there.At(-1); v != cod || err != nil {
			t.Errorf("%+v, %v", v, err)
		}
		cod.number++
		testutil.NoError(t, there.Set(0, cod))
		got := make([]fish, 2)
		testutil.NoError(t, all.Read(-3, got))
		if want := []fish{cod, {}}; !slices.Equal(got, want) || all.Len() != 3 {
			t.Errorf("%+v of %d", got, all.Len())
		}
		for _, i := range []int{3, -4} {
			testutil.ErrorIs(t, all.Set(i, cod), ipc.ErrIndex)
		}
		testutil.ErrorIs(t, all.Write(2, got), ipc.ErrIndex)
		_, err = ipc.NewRecords[fish](-1)
		testutil.ErrorIs(t, err, ipc.ErrSize)
		testutil.NoError(t, all.Close())
		testutil.ErrorIs(t, all.Set(0, cod), ipc.ErrClosed)
	})
}

func TestRecords_ChangeUnderTheirMutex(t *testing.T) {
	local(t)
	ctx := testutil.Context(t)
	type pair struct{ A, B int }
	r, err := ipc.NewRecord(pair{})
	testutil.NoError(t, err)
	defer r.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if err := r.Lock(ctx); err != nil {
					t.Error(err)
					return
				}
				p, err := r.Load()
				if err != nil || p.A != p.B {
					t.Errorf("%+v, %v", p, err)
				}
				if err := errors.Join(r.Store(pair{p.A + 1, p.B + 1}), r.Unlock()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if p, err := r.Load(); p != (pair{400, 400}) || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func refuse[T any](t *testing.T, says string) {
	t.Helper()
	for kind, try := range map[string]func() error{
		"Record":  func() error { _, err := ipc.NewRecord(*new(T)); return err },
		"Records": func() error { _, err := ipc.NewRecords[T](2); return err },
	} {
		err := try()
		if !errors.Is(err, ipc.ErrType) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "no record of "+reflect.TypeFor[T]().String()+": ") {
			t.Errorf("%s: %v, want %s", kind, err, says)
		}
	}
}

func TestRegression_S3_2_WhatHasNoFixedLayoutIsRefused(t *testing.T) {
	local(t)
	refuse[*int](t, "points into the memory of one process")
	refuse[[]int](t, "use an array, such as [32]byte")
	refuse[string](t, "[32]byte")
	refuse[struct{ Names [3]string }](t, ".Names[] is a string")
	refuse[map[int]int](t, "points into")
	refuse[any](t, "points into")
	refuse[func()](t, "points into")
	refuse[chan int](t, "points into")
	refuse[time.Time](t, "time.Time.loc is a *time.Location")
	refuse[uintptr](t, "an address")
	refuse[struct{}](t, "has size 0")
	refuse[[0]int](t, "has size 0")
	refuse[struct{ M sync.Mutex }](t, "use the Mutex of the record")
	refuse[struct{ N atomic.Int64 }](t, "use the Mutex of the record")
	refuse[struct {
		Alive bool
		N     int64
	}](t, ".N has 7 bytes of padding before it")
	refuse[struct {
		N     int64
		Alive bool
	}](t,
		"has 7 bytes of padding at its end, which depends on the compiler: put large fields first, or add a field "+
			"`_ [7]byte` there")
}

func olderPoint(t *testing.T) any {
	type point struct{ X, Y float32 }
	r, err := ipc.NewRecord(point{})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, r.Close()) })
	return r
}

// Two programs of one domain may have been built from different sources.
func TestRecord_OfAnotherLayoutIsRefused(t *testing.T) {
	local(t)
	older := olderPoint(t)
	type point struct{ X, Y int32 }
	_, err := receive[ipc.Record[point]](t, older)
	testutil.ErrorIs(t, err, ipc.ErrType)
	n, err := ipc.NewValue(1)
	testutil.NoError(t, err)
	defer n.Close()
	_, err = receive[ipc.Record[point]](t, n)
	testutil.ErrorIs(t, err, ipc.ErrType)
}

func TestRegression_S3_2_IndicesCountFromTheEnd(t *testing.T) {
	local(t)
	l, err := ipc.NewShareableList("a", 2, 3.5)
	testutil.NoError(t, err)
	defer l.Close()
	testutil.NoError(t, l.Set(-1, 4.5))
	testutil.NoError(t, l.Set(-3, "b"))
	for i, want := range map[int]any{-3: "b", -2: 2, -1: 4.5, 0: "b", 2: 4.5} {
		if v, err := l.At(i); v != want || err != nil {
			t.Errorf("element %d: %v, %v", i, v, err)
		}
	}
	for _, i := range []int{-4, 3} {
		_, err := l.At(i)
		testutil.ErrorIs(t, err, ipc.ErrIndex)
		testutil.ErrorIs(t, l.Set(i, 1), ipc.ErrIndex)
	}
	a, err := ipc.ArrayOf([]int16{1, 2, 3})
	testutil.NoError(t, err)
	defer a.Close()
	testutil.NoError(t, a.Set(-1, 30))
	if sum, err := a.Add(-2, 5); sum != 7 || err != nil {
		t.Error(sum, err)
	}
	if ok, err := a.CompareAndSwap(-3, 1, 10); !ok || err != nil {
		t.Error(ok, err)
	}
	got := make([]int16, 3)
	testutil.NoError(t, a.Read(-3, got))
	if !slices.Equal(got, []int16{10, 7, 30}) {
		t.Error(got)
	}
	testutil.ErrorIs(t, a.Read(-2, got), ipc.ErrIndex)
	testutil.ErrorIs(t, a.Set(-4, 0), ipc.ErrIndex)
}

func ExampleRecord() {
	type point struct{ X, Y float64 }
	p, err := ipc.NewRecord(point{1, 2}) // goes to workers in their argument
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	p.Lock(context.Background())
	v, _ := p.Load()
	v.X *= 10
	p.Store(v)
	p.Unlock()
	fmt.Println(p.Load())
	// Output: {10 2} <nil>
}

func ExampleRecords() {
	done, err := ipc.NewRecords[bool](3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done.Close()
	done.Set(-1, true)
	all := make([]bool, done.Len())
	fmt.Println(done.Read(0, all), all)
	// Output: <nil> [false false true]
}
