package hdf5_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// rows are numbers from at on, three in a row.
func rows(at, n int) *tensor.Tensor {
	return tensor.Arange(tensor.Float32, float64(3*at), float64(3*(at+n)), 1).Reshape(n, 3)
}

func TestOutput_AppendsAndResizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	d, err := w.Dataset("x", tensor.Float32, []int{0, 3},
		hdf5.Options{MaxShape: []int{hdf5.Unlimited, 3}, Chunk: []int{4, 2}, Gzip: 1, Shuffle: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.Dataset("g", tensor.Int64, []int{5, 5},
		hdf5.Options{MaxShape: []int{hdf5.Unlimited, hdf5.Unlimited}, Chunk: []int{2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	guessed, err := w.Dataset("guessed", tensor.Uint8, []int{0}, hdf5.Options{MaxShape: []int{hdf5.Unlimited}})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, n := range []int{1, 2, 7, 0, 5} {
		if err := d.Append(rows(at, n)); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	full := tensor.Arange(tensor.Int64, 1, 26, 1).Reshape(5, 5)
	err = errors.Join(g.WriteSlab(full, 0, 0), g.Resize(3, 4), g.Resize(6, 7),
		guessed.Append(tensor.Ones(tensor.Uint8, 3000)))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []error{d.Resize(3), d.Resize(3, 4), d.Resize(-1, 3),
		d.Append(rows(0, 2).Narrow(1, 0, 2)), d.Append(rows(0, 1).To(tensor.Float64))} {
		if !errors.Is(bad, hdf5.ErrShape) {
			t.Errorf("%v, want ErrShape", bad)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if x := read(t, f, "x"); !tensor.Equal(x, rows(0, 15)) {
		t.Errorf("%v", x)
	}
	want := tensor.New(tensor.Int64, 6, 7)
	want.Narrow(0, 0, 3).Narrow(1, 0, 4).CopyFrom(full.Narrow(0, 0, 3).Narrow(1, 0, 4))
	if x := read(t, f, "g"); !tensor.Equal(x, want) {
		t.Errorf("what was cut off came back: %v", x)
	}
	if most := dataset(t, f, "g").MaxShape(); !slices.Equal(most, []int{hdf5.Unlimited, hdf5.Unlimited}) {
		t.Errorf("%v", most)
	}
	if most := dataset(t, f, "x").MaxShape(); !slices.Equal(most, []int{hdf5.Unlimited, 3}) {
		t.Errorf("%v", most)
	}
	if chunk := dataset(t, f, "guessed").Chunk(); !slices.Equal(chunk, []int{1024}) {
		t.Errorf("%v", chunk)
	}
	f.Close()
	growByH5py(t, path)
}

// growByH5py lets h5py, where there is one, make what was written larger.
func growByH5py(t *testing.T, path string) {
	t.Helper()
	if !runH5py(t, path, `
import sys, h5py
with h5py.File(sys.argv[1], "a") as f:
    x = f["x"]
    assert x.shape == (15, 3) and x.maxshape == (None, 3) and f["g"].maxshape == (None, None), x
    x.resize((20, 3))
    x[15:] = 7
    assert f["g"][5, 6] == 0 and f["g"][2, 3] == 14`) {
		return
	}
	if x := read(t, open(t, path), "x"); x.Dim(0) != 20 || tensor.At[float32](x, 19, 2) != 7 ||
		tensor.At[float32](x, 14, 2) != 44 {
		t.Errorf("%v", x)
	}
}

func TestWriter_RefusesMaxShapesThatAreNone(t *testing.T) {
	w, err := hdf5.Create(filepath.Join(t.TempDir(), "x.h5"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for i, c := range []struct{ shape, most []int }{{[]int{2}, []int{1}}, {[]int{2}, []int{2, 2}},
		{nil, []int{}}, {[]int{2}, []int{-2}}} {
		if _, err := w.Dataset(fmt.Sprint(i), tensor.Float32, c.shape,
			hdf5.Options{MaxShape: c.most}); !errors.Is(err, hdf5.ErrShape) {
			t.Errorf("%v of %v: %v", c.most, c.shape, err)
		}
	}
}

// Text of several dimensions keeps its shape.
func TestRegression_S4_4_TextAttributesKeepTheirShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	grid := hdf5.Text{Shape: []int{2, 3}, Values: strings.Fields("a b c d e f")}
	err = errors.Join(w.Save(map[string]*tensor.Tensor{"x": tensor.Ones(tensor.Float32, 2)}, hdf5.Options{}),
		w.Attr("x", "grid", grid), w.Attr("x", "list", []string{"a"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Attr("x", "bad", hdf5.Text{Shape: []int{2}, Values: []string{"a"}}); !errors.Is(err, hdf5.ErrShape) {
		t.Errorf("%v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	attrs, err := open(t, path).Attrs("x")
	if got, ok := attrs["grid"].(hdf5.Text); err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(grid) ||
		fmt.Sprint(attrs["list"]) != "[a]" {
		t.Errorf("%v, %v", attrs, err)
	}
}

// A file may begin behind a block of 512 bytes or a power of two times as many, as those of MATLAB
// do.
func TestRegression_S4_4_AUserBlockIsPassedOver(t *testing.T) {
	for _, name := range []string{"h5py.h5", "latest.h5"} {
		plain, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{512, 1024, 4096} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, append([]byte("MATLAB 7.3 MAT-file"+strings.Repeat(" ", n-19)),
				plain...), 0o600); err != nil {
				t.Fatal(err)
			}
			f := open(t, path)
			got, err := hdf5.Load(path)
			want, err2 := hdf5.Load("testdata/" + name)
			if err != nil || err2 != nil || len(got) != len(want) || f.UserBlock != int64(n) {
				t.Fatalf("%s behind %d bytes: %v, %v, %d", name, n, err, err2, f.UserBlock)
			}
			for name, x := range want {
				if !tensor.Equal(got[name], x) {
					t.Errorf("%s is %v", name, got[name])
				}
			}
			f.Close()
		}
	}
}

// A small file may claim a data set that was never written, and chunks of which there are none:
// nobody gets memory for it.
func TestRegression_S4_2_WhatWasNeverWrittenHasALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	large := []int{1 << 18, 1 << 16}
	if _, err := w.Dataset("never", tensor.Float32, large, hdf5.Options{Chunk: []int{1 << 14, 1 << 14}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if _, err := dataset(t, f, "never").Read(); !errors.Is(err, hdf5.ErrLimit) ||
		!strings.Contains(err.Error(), "File.MaxBytes") {
		t.Errorf("%v", err)
	}
	if _, err := hdf5.Load(path); !errors.Is(err, hdf5.ErrLimit) {
		t.Errorf("%v", err)
	}
	slab := tensor.Ones(tensor.Float32, 3, 3)
	if err := dataset(t, f, "never").ReadSlab(slab, 1<<14-1, 1<<14-1); err != nil || slab.Sum() != 0 {
		t.Errorf("%v, %v", slab, err)
	}
	f.MaxBytes = 8
	if _, err := dataset(t, f, "never").Read(); !errors.Is(err, hdf5.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// A megabyte of compressed chunks that become more than 1 GiB is refused, unless it is meant.
func TestFile_CompressedChunksHaveALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	const chunk, n = 4 << 20, 1<<30>>22 + 2
	d, err := w.Dataset("zeros", tensor.Uint8, []int{n * chunk}, hdf5.Options{Chunk: []int{chunk}, Gzip: 1})
	if err != nil {
		t.Fatal(err)
	}
	zeros := tensor.Empty(tensor.Uint8, chunk).Fill(0)
	for i := range n {
		if err := d.WriteSlab(zeros, i*chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	for what, read := range map[string]func() error{
		"Read": func() error { _, err := dataset(t, f, "zeros").Read(); return err },
		"Load": func() error { _, err := hdf5.Load(path); return err },
	} {
		if err := read(); !errors.Is(err, hdf5.ErrLimit) || !strings.Contains(err.Error(), fmt.Sprint(1<<30)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := dataset(t, f, "zeros").ReadSlab(tensor.Ones(tensor.Uint8, 3), n*chunk-3); err != nil {
		t.Error(err)
	}
}
