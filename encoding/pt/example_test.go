package pt_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "pt")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.pt")
	if err := pt.Save(path, map[string]*tensor.Tensor{"weight": tensor.Ones(tensor.Float32, 2)}); err != nil {
		panic(err)
	}
	v, err := pt.Load(path, pt.Options{}) // what torch.save wrote as well
	if err != nil {
		panic(err)
	}
	state, _, err := pt.StateDict(v)
	if err != nil {
		panic(err)
	}
	fmt.Println(state["weight"])
	// Output: tensor([1., 1.])
}

// Two sequences, of 2 elements and of 1, travel as one.
func ExamplePackedSequence() {
	p := &pt.PackedSequence{Data: tensor.FromSlice([]float32{1, 3, 2}, 3, 1),
		BatchSizes: tensor.FromSlice([]int64{2, 1}, 2)}
	b, err := pt.Marshal(p, pt.MarshalOptions{})
	if err != nil {
		panic(err)
	}
	v, err := pt.Unmarshal(b)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.(*pt.PackedSequence).BatchSizes)
	// Output: tensor([2, 1])
}
