package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

type Counter struct{ n int }

func NewCounter(n int) (*Counter, error) {
	if n < 0 {
		return nil, errors.New("below zero")
	}
	return &Counter{n}, nil
}

func (c *Counter) Add(n int) int                         { c.n += n; return c.n }
func (c *Counter) Get() int                              { return c.n }
func (c *Counter) Two() (int, string)                    { return c.n, fmt.Sprint(c.n) }
func (c *Counter) Save() (restore func())                { n := c.n; return func() { c.n = n } }
func (c *Counter) Many(ns ...int)                        {}
func (c *Counter) Chan(c2 chan int)                      {}
func (c *Counter) Deep(x struct{ F struct{ G func() } }) {}
func (c *Counter) Give() func()                          { return nil }

var counters = manager.Register("Counter", NewCounter, (*Counter).Add, (*Counter).Get, (*Counter).Two)

func TestRegister_ObjectsOfOwnTypes(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		c, err := counters.New(ctx, m, 40)
		closing(t, c, err)
		n, err := manager.Call[int](ctx, c, "Add", 2)
		want(t, n, err, 42)
		two, err := c.Call(ctx, "Two")
		if err != nil || fmt.Sprint(two) != "[42 42]" {
			t.Errorf("%v, %v", two, err)
		}
		no := errors.New("no")
		testutil.ErrorIs(t, m.Txn(ctx, func(tx context.Context) error {
			n, err := manager.Call[int](tx, c, "Add", 1)
			want(t, n, err, 43)
			return no
		}), no)
		n, err = manager.Call[int](ctx, c, "Get")
		want(t, n, err, 42)
		d, err := manager.NewDict[string, *manager.Instance](ctx, m)
		closing(t, d, err)
		testutil.NoError(t, d.Set(ctx, "c", c))
		again, err := d.Get(ctx, "c")
		closing(t, again, err)
		n, err = manager.Call[int](ctx, again, "Add", 1)
		want(t, n, err, 43)
	})
}

func TestCall_IsChecked(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	_, err := counters.New(ctx, m, "one")
	testutil.ErrorIs(t, err, manager.ErrArgument)
	if want := "manager: wrong argument 1 of Counter: got string, want int"; err.Error() != want {
		t.Errorf("%q", err)
	}
	_, err = counters.New(ctx, m, -1)
	if err == nil || !strings.Contains(err.Error(), "below zero") {
		t.Errorf("%v", err)
	}
	c, err := counters.New(ctx, m, 0)
	closing(t, c, err)
	_, err = c.Call(ctx, "Sub", 1)
	testutil.ErrorIs(t, err, manager.ErrNoMethod)
	_, err = c.Call(ctx, "Add")
	testutil.ErrorIs(t, err, manager.ErrArgument)
	_, err = c.Call(ctx, "Add", int64(1))
	testutil.ErrorIs(t, err, manager.ErrArgument)
	_, err = c.Call(ctx, "Add", nil)
	testutil.ErrorIs(t, err, manager.ErrArgument)
	_, err = manager.Call[string](ctx, c, "Get")
	testutil.ErrorIs(t, err, manager.ErrType)
	_, err = manager.Call[int](ctx, c, "Two")
	testutil.ErrorIs(t, err, manager.ErrType)
}

func TestRegister_SaysWhatIsWrong(t *testing.T) {
	c := new(Counter)
	for _, r := range []struct {
		name      string
		construct any
		methods   []any
		want      string
	}{
		{"Counter", NewCounter, nil, "name is empty or already taken"},
		{"", NewCounter, nil, "name is empty or already taken"},
		{"Dict", NewCounter, nil, "name is empty or already taken"},
		{"A", NewCounter, nil, "Main has begun"},
		{"A", 1, nil, "A is not a function"},
		{"A", func() int { return 1 }, nil, "must return a pointer"},
		{"A", NewCounter, []any{1}, "method 0 has type int"},
		{"A", NewCounter, []any{c.Add}, "want a method expression of *manager_test.Counter"},
		{"A", NewCounter, []any{func(*Counter) {}}, "want a method expression of *manager_test.Counter"},
		{"A", NewCounter, []any{(*Deadly).Count}, "want a method expression of *manager_test.Counter"},
		{"A", NewCounter, []any{(*Counter).Add, (*Counter).Add}, "Add is listed twice"},
		{"A", NewCounter, []any{(*Counter).Many}, "A.Many is variadic"},
		{"A", NewCounter, []any{(*Counter).Chan}, "A.Chan, argument 1: chan int: chan int cannot cross"},
		{"A", NewCounter, []any{(*Counter).Deep}, ".F.G: func() cannot cross"},
		{"A", NewCounter, []any{(*Counter).Give}, "A.Give, result 1: func(): func() cannot cross"},
		{"A", func(f func()) *Counter { return nil }, nil, "A, argument 1: func(): func() cannot cross"},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, r.want) ||
					!strings.HasPrefix(text, "manager: Register(") {
					t.Errorf("Register(%q) says %q, not %q", r.name, text, r.want)
				}
			}()
			manager.Register(r.name, r.construct, r.methods...)
		}()
	}
}

func TestPanicError_IsItsCallersAlone(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := deadly.New(ctx, m)
		closing(t, d, err)
		_, err = manager.Call[int](ctx, d, "Panic", "oh no")
		var p *manager.PanicError
		if testutil.ErrorIs(t, err, manager.ErrPanic); !errors.As(err, &p) || p.Method != "Panic" ||
			p.Text != "oh no" || !strings.Contains(p.Stack, "(*Deadly).Panic") {
			t.Errorf("%+v", err)
		}
		if text := fmt.Sprintf("%+v", p); !strings.Contains(text, "death_test.go") {
			t.Errorf("%s", text)
		}
		_, err = d.Call(ctx, "Nil")
		testutil.ErrorIs(t, err, manager.ErrPanic)
		_, err = d.Call(ctx, "Fail")
		testutil.ErrorIs(t, err, fs.ErrNotExist)
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		_, err = d.Call(short, "Wait")
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
		n, err := manager.Call[int](ctx, d, "Count")
		want(t, n, err, 1)
	})
}

// The server goes on after a method that calls runtime.Goexit, and so does a transaction.
func TestRegister_AGoexitIsTheErrorOfItsCaller(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := deadly.New(ctx, m)
		closing(t, d, err)
		for range 3 {
			_, err = d.Call(ctx, "Exit")
			testutil.ErrorIs(t, err, manager.ErrPanic)
			testutil.ErrorContains(t, err, "runtime.Goexit", "Deadly.Exit")
		}
		n, err := manager.Call[int](ctx, d, "Count")
		want(t, n, err, 1)
		testutil.NoError(t, m.Txn(ctx, func(context.Context) error { return nil })) // no call is in progress
	})
}

// A method has the deadline of its caller.
func TestRegister_MethodsHaveTheDeadlineOfTheirCaller(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := t.Context()
		d, err := deadly.New(ctx, m)
		closing(t, d, err)
		left, err := manager.Call[int64](ctx, d, "Left")
		want(t, left, err, 0)
		hour, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		left, err = manager.Call[int64](hour, d, "Left")
		testutil.NoError(t, err)
		if time.Duration(left) > time.Hour || time.Duration(left) < 50*time.Minute {
			t.Errorf("got %v until the deadline, want an hour", time.Duration(left))
		}
	})
}

// Fragile is a type that cannot be rolled back without a panic.
type Fragile struct{ n int }

func NewFragile() *Fragile                { return new(Fragile) }
func (f *Fragile) Add(n int) int          { f.n += n; return f.n }
func (f *Fragile) Save() (restore func()) { return func() { panic("on purpose") } }

var fragile = manager.Register("Fragile", NewFragile, (*Fragile).Add)

// A restore function that panics leaves neither the object nor the server locked.
func TestSaver_APanicInRestoreEndsNothing(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx, no := testutil.Context(t), errors.New("no")
		f, err := fragile.New(ctx, m)
		closing(t, f, err)
		testutil.ErrorIs(t, m.Txn(ctx, func(tx context.Context) error {
			_, err := manager.Call[int](tx, f, "Add", 1)
			testutil.NoError(t, err)
			return no
		}), no)
		n, err := manager.Call[int](ctx, f, "Add", 1)
		want(t, n, err, 2)
	})
}
