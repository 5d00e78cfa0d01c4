package safetensors_test

import (
	"bytes"
	"errors"
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
	opts := safetensors.SaveOptions{Metadata: map[string]string{"epoch": "3"}}
	if err := safetensors.SaveWith(path, state, opts); err != nil {
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

// A stream states its own size, so a receiver should limit the bytes that it accepts.
func ExampleDecode() {
	var stream bytes.Buffer
	x := tensor.Ones(tensor.Float32, 1000)
	if err := safetensors.Encode(&stream, map[string]*tensor.Tensor{"x": x}); err != nil {
		panic(err)
	}
	_, _, err := safetensors.Decode(&stream, safetensors.Options{MaxBytes: 3999})
	fmt.Println(errors.Is(err, safetensors.ErrLimit))
	// Output: true
}
