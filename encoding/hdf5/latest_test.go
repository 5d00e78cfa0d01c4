package hdf5_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// Every way to find chunks, groups and attributes that libver="latest" has, by HDF5 1.10 and by
// 2.0.
func TestOpen_ReadsLibverLatest(t *testing.T) {
	pages := tensor.Full(tensor.Int32, 7, 5000)
	pages.Narrow(0, 4000, 4).Fill(1)
	sparse := tensor.Full(tensor.Int32, 7, 10, 10)
	tensor.SetAt[int32](sparse, 1, 4, 4)
	for _, file := range []string{"v110", "latest"} {
		t.Run(file, func(t *testing.T) {
			f := open(t, "testdata/"+file+".h5")
			want := map[string]*tensor.Tensor{
				"fixed_pages": pages, "sparse": sparse,
				"extensible_blocks": tensor.Arange(tensor.Int64, 0, 400, 1),
				"tree_gzip":         tensor.Arange(tensor.Int64, 0, 900, 1).Reshape(30, 30),
			}
			for _, name := range []string{"plain", "single", "single_gzip", "implicit", "fixed", "fixed_all",
				"fixed_room", "extensible", "extensible_last", "tree"} {
				want[name] = x()
			}
			for i := range 40 {
				want[fmt.Sprintf("many/%02d", i)] = tensor.Scalar(tensor.Float32, float64(i))
			}
			if len(f.Names()) != len(want) {
				t.Errorf("%d data sets, not %d: %v", len(f.Names()), len(want), f.Names())
			}
			for name, x := range want {
				if got := read(t, f, name); got.DType() != x.DType() || !tensor.Equal(got, x) {
					t.Errorf("%s is %v", name, got)
				}
			}
			part := tensor.New(tensor.Int64, 7, 9)
			if err := dataset(t, f, "tree_gzip").ReadSlab(part, 11, 3); err != nil ||
				!tensor.Equal(part, want["tree_gzip"].Narrow(0, 11, 7).Narrow(1, 3, 9)) {
				t.Errorf("a slab is %v, %v", part, err)
			}
			attrs, err := f.Attrs("many")
			if err != nil || len(attrs) != 40 {
				t.Fatalf("%d attributes, %v", len(attrs), err)
			}
			for key, v := range attrs {
				if x := v.(*tensor.Tensor); fmt.Sprintf("a%02d", tensor.At[int64](x)) != key {
					t.Errorf("%s is %v", key, x)
				}
			}
		})
	}
}

// Attributes that are in no block of a heap, since they are larger, are by themselves in the file;
// groups without data sets are there.
func TestAttrs_ReadsHugeOnes(t *testing.T) {
	f := open(t, "testdata/huge.h5")
	attrs, err := f.Attrs("x")
	if err != nil || len(attrs) != 20 {
		t.Fatalf("%d attributes: %v", len(attrs), err)
	}
	for i := range 20 {
		want := tensor.Scalar(tensor.Int64, float64(i))
		if i < 3 {
			want = tensor.Arange(tensor.Int64, 0, float64(5_000+i), 1).To(tensor.Int16)
		}
		if got := attrs[fmt.Sprintf("a%02d", i)].(*tensor.Tensor); got.DType() != want.DType() ||
			!tensor.Equal(got, want) {
			t.Errorf("%d is %v", i, got)
		}
	}
	if got := fmt.Sprint(f.Groups()); got != "[bare bare/within empty]" {
		t.Errorf("groups %s", got)
	}
	wantAttrs(t, f, "empty", map[string]any{"of": "nothing"})
}

// A group may be empty, and may not be where a data set is.
func TestWriter_MakesGroups(t *testing.T) {
	path := t.TempDir() + "/x.h5"
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	one := map[string]*tensor.Tensor{"a/x": tensor.Ones(tensor.Float32, 1)}
	err = errors.Join(w.Group("a/b/c"), w.Save(one, hdf5.Options{}), w.Group("a"), w.Group("d"),
		w.Attr("a/b/c", "of", "c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"a/x", "a/x/y", "", "a//b", "."} {
		if err := w.Group(bad); !errors.Is(err, hdf5.ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := w.Dataset("a/b", tensor.Float32, []int{1}, hdf5.Options{}); !errors.Is(err, hdf5.ErrName) {
		t.Errorf("a data set where a group is: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if got := fmt.Sprint(f.Groups(), f.Names()); got != "[a a/b a/b/c d] [a/x]" {
		t.Errorf("there is %s", got)
	}
	wantAttrs(t, f, "a/b/c", map[string]any{"of": "c"})
}

// What lzf cannot make smaller stays as it is, which the chunk says.
func TestLZF_IsUndone(t *testing.T) {
	g := tensor.NewGenerator(1)
	for name, want := range map[string]*tensor.Tensor{
		"noise": tensor.RandN(tensor.Float32, g, 5000), "zeros": tensor.New(tensor.Int64, 70_000),
		"bytes": tensor.Arange(tensor.Int32, 0, 100_000, 1).To(tensor.Uint8), "one": tensor.Ones(tensor.Uint8, 1),
		"far": tensor.Cat(
			0, tensor.RandN(tensor.Float32, g, 2047),
			tensor.Ones(tensor.Float32, 1), tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 5000)),
	} {
		path := t.TempDir() + "/x.h5"
		if err := hdf5.SaveWith(path, map[string]*tensor.Tensor{"x": want}, hdf5.Options{LZF: true}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, path), "x"); !tensor.Equal(got, want) {
			t.Errorf("%s is %v", name, got)
		}
	}
}
