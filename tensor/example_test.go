package tensor_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	d, err := arena.NewLocal(1 << 20) // a program that starts processes needs no line for its domain
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	defer arena.SetDefault(arena.Current())
	arena.SetDefault(d)

	t, err := tensor.NewShared(tensor.Float32, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	row := t.Select(0, 1)
	defer row.Close()
	row.Fill(7)
	fmt.Println(tensor.Add(t, tensor.Arange(tensor.Float32, 0, 3, 1)))
	// Output:
	// tensor([[0., 1., 2.],
	//         [7., 8., 9.]])
}

func ExampleMatMul() {
	a := tensor.FromSlice([]float64{1, 2, 3, 4}, 2, 2)
	fmt.Println(tensor.MatMul(a, a.T()))
	// Output:
	// tensor([[ 5., 11.],
	//         [11., 25.]], dtype=torch.float64)
}
