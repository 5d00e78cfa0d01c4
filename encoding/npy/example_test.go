package npy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.npy")
	if err := npy.Save(path, tensor.Arange(tensor.Int64, 0, 6, 1).Reshape(2, 3)); err != nil {
		panic(err)
	}
	x, err := npy.Map(path) // np.load(path, mmap_mode="c")
	if err != nil {
		panic(err)
	}
	defer x.Close()
	fmt.Println(x)
	// Output:
	// tensor([[0, 1, 2],
	//         [3, 4, 5]])
}

// Several arrays may follow each other in a stream, as numpy.save writes them to one file.
func ExampleDecode() {
	var stream bytes.Buffer
	for _, n := range []int{2, 3} {
		if err := npy.Encode(&stream, tensor.Arange(tensor.Int64, 0, float64(n), 1)); err != nil {
			panic(err)
		}
	}
	for range 2 {
		x, err := npy.Decode(&stream, npy.Options{MaxBytes: 1 << 20})
		if err != nil {
			panic(err)
		}
		fmt.Println(x)
	}
	// Output:
	// tensor([0, 1])
	// tensor([0, 1, 2])
}
