package hdf5_test

import (
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// Every way to find chunks, groups and attributes that libver="latest" has, by HDF5 1.10 and by 2.0.
func TestLatest(t *testing.T) {
	pages := tensor.Full(tensor.Int32, 7, 5000)
	pages.Narrow(0, 4000, 4).Fill(1)
	sparse := tensor.Full(tensor.Int32, 7, 10, 10)
	tensor.SetAt[int32](sparse, 1, 4, 4)
	for _, file := range []string{"v110", "latest"} {
		t.Run(file, func(t *testing.T) {
			f := open(t, "testdata/"+file+".h5")
			want := map[string]*tensor.Tensor{
				"fixed_pages": pages, "sparse": sparse, "extensible_blocks": tensor.Arange(tensor.Int64, 0, 400, 1), "tree_gzip": tensor.Arange(tensor.Int64, 0, 900, 1).Reshape(30, 30),
			}
			for _, name := range []string{"plain", "single", "single_gzip", "implicit", "fixed", "fixed_all", "fixed_room", "extensible", "extensible_last", "tree"} {
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
			if err := dataset(t, f, "tree_gzip").ReadSlab(part, 11, 3); err != nil || !tensor.Equal(part, want["tree_gzip"].Narrow(0, 11, 7).Narrow(1, 3, 9)) {
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

// What lzf cannot make smaller stays as it is, which the chunk says.
func TestLZF(t *testing.T) {
	g := tensor.NewGenerator(1)
	for name, want := range map[string]*tensor.Tensor{
		"noise": tensor.RandN(tensor.Float32, g, 5000), "zeros": tensor.New(tensor.Int64, 70_000), "bytes": tensor.Arange(tensor.Int32, 0, 100_000, 1).To(tensor.Uint8), "one": tensor.Ones(tensor.Uint8, 1),
		"far": tensor.Cat([]*tensor.Tensor{tensor.RandN(tensor.Float32, g, 2047), tensor.Ones(tensor.Float32, 1), tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 5000)}, 0),
	} {
		path := t.TempDir() + "/x.h5"
		if err := hdf5.Save(path, map[string]*tensor.Tensor{"x": want}, hdf5.Options{LZF: true}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, path), "x"); !tensor.Equal(got, want) {
			t.Errorf("%s is %v", name, got)
		}
	}
}
