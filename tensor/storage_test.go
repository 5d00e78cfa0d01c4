package tensor_test

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestNew_IsAligned(t *testing.T) {
	for n := 1; n < 100; n++ {
		d := tensor.Data[uint8](tensor.New(tensor.Uint8, n))
		if at := uintptr(unsafe.Pointer(&d[0])); at%64 != 0 || len(d) != n || cap(d) != n {
			t.Fatalf("%d bytes lie at %x, length %d", n, at, len(d))
		}
	}
}

func TestNewShared_IsReleasedByItsLastView(t *testing.T) {
	d := local(t)
	a, err := tensor.NewShared(tensor.Float32, 4, 4)
	testutil.NoError(t, err)
	v := a.Select(0, 1)
	row := v.Narrow(0, 1, 2)
	for i, x := range []*tensor.Tensor{a, v, v, row} {
		if d.Stats().Blocks != 1 {
			t.Fatalf("%d blocks before close %d", d.Stats().Blocks, i)
		}
		testutil.NoError(t, x.Close())
	}
	if n := d.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks after the last close", n)
	}
	panics(t, func() { v.Fill(1) })
	if err := v.Share(); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("Share of a closed tensor: %v", err)
	}
}

func TestOp_LeavesNothingBehind(t *testing.T) {
	local(t)
	a, err := tensor.NewShared(tensor.Float32, 4, 4)
	testutil.NoError(t, err)
	idx := tensor.FromSlice([]int64{3, 0}, 2)
	tensor.MatMul(a, a.Fill(2))
	tensor.Sum(a, 0)
	tensor.Max(a, 1)
	tensor.IndexSelect(a, 1, idx)
	tensor.AllClose(a, tensor.Add(a, a), 0, 0)
	a.AxpyInPlace(1, a).ClampInPlace(0, 1).AddAtomic(a)
	_ = a.String()
	a.Sum()
	tensor.Cat(0, a, a)
	tensor.Equal(a, a)
	testutil.NoError(t, a.Close())
}

func TestNewShared_IsCollectedIfForgotten(t *testing.T) {
	d := local(t)
	func() {
		a, err := tensor.NewShared(tensor.Float32, 4, 4)
		testutil.NoError(t, err)
		b := a.T()
		testutil.NoError(t, b.Close())
	}()
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

func TestTensorShare_TakesAllViews(t *testing.T) {
	d := local(t)
	a := count(tensor.Float32, 2, 3)
	v := a.Select(0, 1)
	testutil.NoError(t, v.Share())
	if !a.IsShared() || !v.IsShared() || !a.SameStorage(v) {
		t.Error("a view was left behind")
	}
	v.Fill(9)
	if got := tensor.At[float32](a, 1, 2); got != 9 {
		t.Errorf("the other view reads %v", got)
	}
	copied := d.Stats().Copied
	testutil.NoError(t, a.Share())
	if copied != 24 || d.Stats().Copied != copied {
		t.Errorf("%d bytes copied, then %d", copied, d.Stats().Copied)
	}
	testutil.NoError(t, errors.Join(a.Close(), v.Close()))
}

func TestTensorShare_HappensOnce(t *testing.T) {
	d := local(t)
	a := count(tensor.Float32, 64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := a.Share(); err != nil {
				t.Error(err)
			}
			if s := a.Sum(); s != 63*32 {
				t.Errorf("a reader sees a sum of %v", s)
			}
		})
	}
	wg.Wait()
	if n := d.Stats().Blocks; n != 1 {
		t.Errorf("%d blocks", n)
	}
	testutil.NoError(t, a.Close())
}

func TestTensorShare_IntoAFullDomainChangesNothing(t *testing.T) {
	local(t)
	full, err := tensor.NewShared(tensor.Uint8, 5<<20)
	testutil.NoError(t, err)
	defer full.Close()
	a := tensor.Ones(tensor.Float64, 1<<19)
	if err := a.Share(); !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("Share: %v", err)
	}
	if a.IsShared() || a.Sum() != 1<<19 {
		t.Error("the tensor has changed")
	}
	if _, err := tensor.NewShared(tensor.Float64, 1<<19); !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("NewShared: %v", err)
	}
}

func TestTensorShare_OfNoElements(t *testing.T) {
	d := local(t)
	a := tensor.New(tensor.Float32, 0, 3)
	b, err := cross(t, d, a)
	testutil.NoError(t, err)
	if b.Numel() != 0 || b.Dim(1) != 3 || len(tensor.Data[float32](b)) != 0 {
		t.Errorf("%v arrived", b.Shape())
	}
	testutil.NoError(t, errors.Join(a.Close(), b.Close()))
}

func TestTensorVersion_CountsWrites(t *testing.T) {
	a := tensor.New(tensor.Float32, 4)
	v := a.Narrow(0, 0, 2)
	for i, write := range []func(){
		func() { v.Fill(1) }, func() { a.AddInPlace(a) }, func() { a.ReLUInPlace() },
		func() { tensor.SetAt[float32](a, 1, 0) },
		func() { a.CopyFrom(tensor.Ones(tensor.Float32)) }, func() { a.Touch() }, func() { a.Zero() },
		func() { a.AddScalarAtomic(1) },
	} {
		before := a.Version()
		write()
		if a.Version() <= before || v.Version() != a.Version() {
			t.Errorf("write %d was not counted", i)
		}
	}
	before := a.Version()
	tensor.Add(a, a)
	a.Sum()
	if a.Version() != before {
		t.Error("a read was counted")
	}
}

func TestTensorAddAtomic_LosesNothing(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int32, tensor.Int64} {
		a := tensor.New(dt, 3, 2)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 1000 {
					a.T().AddAtomic(tensor.Ones(dt, 3))
				}
			})
		}
		wg.Wait()
		if !tensor.Equal(a, tensor.Full(dt, 4000, 3, 2)) {
			t.Errorf("%v: %v", dt, a)
		}
	}
}

func TestTensorFill_ReachesEveryElement(t *testing.T) {
	for _, dt := range allDTypes {
		want := tensor.Scalar(dt, 1)
		for _, n := range []int{0, 1, 3, 16<<10 + 1, 33<<20/dt.Size() + 1} {
			x := tensor.New(dt, n+2)
			x.Narrow(0, 1, n).Fill(1)
			if !tensor.Equal(x.Narrow(0, 1, n), want.Expand(n)) {
				t.Errorf("%v: not all of %d elements were filled", dt, n)
			}
			if edges := tensor.Cat(
				0, x.Narrow(0, 0, 1), x.Narrow(0, n+1, 1)); !tensor.Equal(edges, tensor.New(dt, 2)) {
				t.Errorf("%v: more than %d elements were filled", dt, n)
			}
		}
	}
}
