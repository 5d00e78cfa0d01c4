package hdf5_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// A data set is written and read slab by slab, so that it may be larger than memory.
func Example() {
	dir, err := os.MkdirTemp("", "hdf5")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "train.h5")
	if err := write(path); err != nil {
		panic(err)
	}
	f, err := hdf5.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	x, err := f.Dataset("train/x")
	if err != nil {
		panic(err)
	}
	slab := tensor.New(tensor.Float32, 1, 3)
	if err := x.ReadSlab(slab, 2, 0); err != nil { // from (2, 0) on
		panic(err)
	}
	fmt.Println(slab)
	// Output: tensor([[2., 2., 2.]])
}

func write(path string) error {
	w, err := hdf5.Create(path)
	if err != nil {
		return err
	}
	defer w.Close()
	x, err := w.Dataset("train/x", tensor.Float32, []int{4, 3}, hdf5.Options{Chunk: []int{1, 3}, Gzip: 4})
	if err != nil {
		return err
	}
	for row := range 4 {
		if err := x.WriteSlab(tensor.Full(tensor.Float32, float64(row), 1, 3), row, 0); err != nil {
			return err
		}
	}
	return w.Close()
}

// A file that is there becomes longer, as by h5py's mode "a" and resize.
func ExampleAppend() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "log.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Dataset("losses", tensor.Float32, []int{0},
		hdf5.Options{MaxShape: []int{hdf5.Unlimited}}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	for epoch := range 3 {
		a, err := hdf5.Append(path)
		if err != nil {
			log.Fatal(err)
		}
		d, err := a.Open("losses")
		if err != nil {
			log.Fatal(err)
		}
		if err := errors.Join(d.Append(tensor.Full(tensor.Float32, 1/float64(1+epoch), 1)), a.Close()); err != nil {
			log.Fatal(err)
		}
	}
	all, err := hdf5.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tensor.Data[float32](all["losses"]))
	// Output: [1 0.5 0.33333334]
}

// What a file says of itself, in several dimensions.
func ExampleText() {
	dir, err := os.MkdirTemp("", "hdf5")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "names.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	names := hdf5.Text{Shape: []int{2, 2}, Values: []string{"cat", "dog", "ant", "bee"}}
	if err := errors.Join(w.Attr("", "classes", names), w.Close()); err != nil {
		log.Fatal(err)
	}
	f, err := hdf5.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	attrs, err := f.Attrs("")
	fmt.Println(attrs["classes"], err)
	// Output: {[2 2] [cat dog ant bee]} <nil>
}
