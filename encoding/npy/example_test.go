package npy_test

import (
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
