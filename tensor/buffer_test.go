package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestFromBuffer_SharesTheBytes(t *testing.T) {
	local(t)
	m, err := ipc.NewMemory("raw", 100)
	testutil.NoError(t, err)
	a, err := tensor.FromBuffer(m, tensor.Float32, []int{2, 3}, nil, 8)
	testutil.NoError(t, err)
	tensor.SetAt[float32](a, 7, 1, 2)
	col, err := tensor.FromBuffer(m, tensor.Float32, []int{2}, []int{3}, 8+2*4)
	testutil.NoError(t, err)
	if got := tensor.At[float32](col, 1); got != 7 || !a.SameStorage(col) || !a.IsShared() {
		t.Errorf("the column's last is %v", got)
	}
	last, err := tensor.FromBuffer(m, tensor.Uint8, []int{}, nil, 99)
	testutil.NoError(t, err)
	empty, err := tensor.FromBuffer(m, tensor.Complex128, []int{0, 4}, nil, 96)
	testutil.NoError(t, err)
	testutil.NoError(t, errors.Join(m.Close(), ipc.Unlink("raw"))) // the tensors go on
	if got := a.Sum(); got != 7 {
		t.Errorf("sum %v", got)
	}
	testutil.NoError(t, errors.Join(a.Close(), col.Close(), last.Close(), empty.Close()))
	_, err = tensor.FromBuffer(m, tensor.Uint8, []int{1}, nil, 0)
	testutil.ErrorIs(t, err, tensor.ErrClosed)
}

func TestFromBuffer_RefusesWhatIsNotThere(t *testing.T) {
	local(t)
	m, err := ipc.NewMemory("", 100)
	testutil.NoError(t, err)
	defer m.Close()
	for _, c := range []struct {
		dt             tensor.DType
		shape, strides []int
		offset         int
		want           error
	}{
		{200, []int{1}, nil, 0, tensor.ErrDType},
		{tensor.Float32, []int{26}, nil, 0, tensor.ErrLayout},
		{tensor.Float32, []int{25}, nil, 4, tensor.ErrLayout},
		{tensor.Float32, []int{2, 3}, []int{100, 1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{2, 3}, []int{1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{-1}, nil, 0, tensor.ErrLayout},
		{tensor.Float32, []int{2}, []int{-1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{1}, nil, -4, tensor.ErrLayout},
		{tensor.Float32, []int{1}, nil, 1 << 62, tensor.ErrLayout},
		{tensor.Float32, []int{1 << 40, 1 << 40}, nil, 0, tensor.ErrLayout},
		{tensor.Float32, slices.Repeat([]int{1}, 65), nil, 0, tensor.ErrLayout},
		{tensor.Float32, []int{1}, nil, 2, tensor.ErrAlign},
		{tensor.Complex128, []int{1}, nil, 8, tensor.ErrAlign},
		{tensor.Bool, []int{101}, nil, 0, tensor.ErrLayout},
	} {
		x, err := tensor.FromBuffer(m, c.dt, c.shape, c.strides, c.offset)
		if !errors.Is(err, c.want) {
			t.Errorf("%v %v %v at %d: %v, not %v", c.dt, c.shape, c.strides, c.offset, err, c.want)
		}
		if err == nil {
			x.Close()
		}
	}
}

// frame is what somebody is told about raw memory.
type frame struct {
	Name           string
	DType          tensor.DType
	Shape, Strides []int
	Offset         int
	Add            float64
}

// add opens memory by its name, wraps a tensor of the frame around it and adds to it.
var add = shoal.Register("add", func(ctx context.Context, rank int, f frame) error {
	m, err := ipc.Lookup[*ipc.Memory](f.Name)
	if err != nil {
		return err
	}
	x, err := tensor.FromBuffer(m, f.DType, f.Shape, f.Strides, f.Offset)
	if err := errors.Join(err, m.Close()); err != nil {
		return err
	}
	for range 1000 {
		x.AddScalarAtomic(f.Add)
	}
	return x.Close()
})

func TestFromBuffer_IsTheSameMemoryElsewhere(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	testutil.NoError(t, err)
	use(t, d)
	m, err := ipc.NewMemory("frame", 200)
	testutil.NoError(t, err)
	f := frame{"frame", tensor.Int64, []int{2, 2}, []int{1, 4}, 16, 1} // columns of a 4-row matrix
	testutil.NoError(t, add.Spawn(testutil.Context(t), 3, f))
	x, err := tensor.FromBuffer(m, f.DType, []int{8}, nil, 16)
	testutil.NoError(t, err)
	if got := fmt.Sprint(tensor.Data[int64](x)); got != "[3000 3000 0 0 3000 3000 0 0]" {
		t.Error(got)
	}
	f.DType++
	f.Shape[0] = 100
	var pe *shoal.ProcessError
	if err := add.Spawn(testutil.Context(t), 1, f); !errors.As(err, &pe) || !errors.Is(err, tensor.ErrLayout) {
		t.Errorf("a frame that does not fit: %v", err)
	}
	testutil.NoError(t, errors.Join(x.Close(), m.Close(), ipc.Unlink("frame")))
}

// A tensor by name has its dtype, shape and strides with it.
func TestTensor_IsFoundByName(t *testing.T) {
	local(t)
	x := tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4).Transpose(0, 2)
	testutil.NoError(t, ipc.Bind(t.Context(), "x", x))
	y, err := ipc.Lookup[*tensor.Tensor]("x")
	testutil.NoError(t, err)
	if y.DType() != tensor.Float32 || !slices.Equal(y.Shape(), []int{4, 3, 2}) ||
		!slices.Equal(y.Strides(), []int{1, 4, 12}) || !y.SameStorage(x) {
		t.Errorf("%v %v %v", y.DType(), y.Shape(), y.Strides())
	}
	testutil.NoError(t, errors.Join(x.Close(), y.Close(), ipc.Unlink("x")))
	collect(t, func() bool { d, _ := arena.Default(); return d.Stats().Blocks == 0 })
}
