package tensor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A view has the elements of the tensor that it is of.
func ExampleTensor() {
	t := tensor.FromSlice([]int64{1, 2, 3, 4, 5, 6}, 2, 3)
	column := t.Select(1, 0)
	column.Fill(9)
	fmt.Println(t)
	fmt.Println(t.T().Shape(), t.T().Strides(), t.T().IsContiguous())
	fmt.Println(tensor.At[int64](t, 1, 2), column.Numel())
	// Output:
	// tensor([[9, 2, 3],
	//         [9, 5, 6]])
	// [3 2] [1 3] false
	// 6 2
}

// A tensor that is given away is closed with the put. The deferred Close is for a put that fails.
func ExampleTensor_Give() {
	ctx := context.Background()
	q, err := ipc.NewQueue[*tensor.Tensor](8)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	t, err := tensor.NewShared(tensor.Float32, 4)
	if err != nil {
		panic(err)
	}
	defer t.Close()
	if err := q.Put(ctx, t.Fill(2).Give()); err != nil {
		panic(err)
	}
	got, err := q.Get(ctx)
	if err != nil {
		panic(err)
	}
	defer got.Close()
	fmt.Println(got.Sum(), errors.Is(t.Share(), tensor.ErrClosed))
	// Output: 8 true
}

func ExampleDType() {
	dt, err := tensor.ParseDType("bfloat16")
	fmt.Println(dt, dt.Size(), err)
	_, err = tensor.ParseDType("float7")
	fmt.Println(err != nil, tensor.Promote(tensor.Int64, tensor.Float16))
	// Output:
	// bfloat16 2 <nil>
	// true float16
}

// A half number has no arithmetic in Go: it is converted, or lies in a tensor.
func ExampleF16() {
	h := tensor.MakeF16(0.1)
	t := tensor.FromSlice([]tensor.F16{h, h}, 2)
	fmt.Println(h.Float32(), t.DType(), t.To(tensor.Float32).Sum())
	// Output: 0.099975586 float16 0.199951171875
}

// The shorter mantissa of a bfloat16 rounds more.
func ExampleBF16() {
	fmt.Println(tensor.MakeBF16(0.1).Float32())
	// Output: 0.100097656
}

// Generators of one seed make the same numbers; a fork makes others.
func ExampleGenerator() {
	g := tensor.NewGenerator(7)
	state := g.State()
	first := g.IntN(1000)
	if err := g.SetState(state); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first == g.IntN(1000), g.InitialSeed())
	fmt.Println(tensor.NewGenerator(7).Fork(1).Uint64() == tensor.NewGenerator(7).Fork(2).Uint64())
	// Output:
	// true 7
	// false
}

// A Place travels as the name of a device.
func ExamplePlace() {
	var p tensor.Place
	if err := p.UnmarshalText([]byte("cpu")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p, p == tensor.Place{})
	// Output: cpu true
}

// A storage may be seen as several tensors.
func ExampleStorage() {
	x := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	y, err := x.Storage().View(tensor.Float32, []int{3}, nil, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer y.Close()
	fmt.Println(y, y.SameStorage(x))
	// Output: tensor([2., 3., 4.]) true
}
