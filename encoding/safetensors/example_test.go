package safetensors_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	state := map[string]*tensor.Tensor{"fc.weight": tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3)}
	if err := safetensors.Save(path, state, map[string]string{"epoch": "3"}); err != nil {
		fmt.Println(err)
		return
	}
	f, err := safetensors.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	w, err := f.Tensor("fc.weight")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.DType(), w.Shape(), w.Sum(), f.Metadata["epoch"])
	// Output: float32 [2 3] 15 3
}
