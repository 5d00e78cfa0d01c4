package tensor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// panics checks that a mistake of the caller is one.
func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		p := recover()
		if err, ok := p.(error); !ok || !errors.Is(err, tensor.ErrMisuse) && !errors.Is(err, tensor.ErrClosed) {
			t.Errorf("no panic with an error of a mistake: %v", p)
		}
	}()
	f()
}

// local makes a domain on the heap the test's, in which nothing may be left.
func local(t testing.TB) *arena.Domain {
	t.Helper()
	d, err := arena.NewLocal(8 << 20)
	testutil.NoError(t, err)
	return use(t, d)
}

func use(t testing.TB, d *arena.Domain) *arena.Domain {
	t.Helper()
	before := arena.Current()
	arena.SetDefault(d)
	t.Cleanup(func() {
		if n := d.Stats().Blocks; n != 0 {
			t.Errorf("%d blocks are left", n)
		}
		arena.SetDefault(before)
		testutil.NoError(t, d.Close())
	})
	return d
}

// collect runs the garbage collector until f is true.
func collect(t testing.TB, f func() bool) {
	t.Helper()
	for ctx := testutil.Context(t); !f(); {
		runtime.GC()
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
	}
}

// blocks take the blocks of a message within one process.
type blocks struct {
	d     *arena.Domain
	table []arena.Handle
}

func (b blocks) Take(i int) (arena.Handle, error) { return b.table[i], b.d.Import(b.table[i]) }

// cross sends v to this process.
func cross[T any](t testing.TB, d *arena.Domain, v T) (T, error) {
	t.Helper()
	plan, err := codec.PlanOf[T]()
	testutil.NoError(t, err)
	var e codec.Encoder
	e.Reset(nil)
	err = plan.Encode(&e, v)
	defer func() { e.Done(err == nil) }()
	if err != nil {
		return v, err
	}
	return decode(plan, d, e.Message())
}

func decode[T any](plan *codec.Plan[T], d *arena.Domain, m codec.Message) (T, error) {
	var dec codec.Decoder
	dec.Reset(m, blocks{d, m.Blocks})
	v, err := plan.Decode(&dec)
	if err == nil {
		err = dec.Finish()
	}
	dec.Done(err == nil)
	return v, err
}
