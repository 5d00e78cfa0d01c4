package pt_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A view without elements may begin behind its storage; PyTorch saves such views, and reads them.
func TestRegression_S4_1_EmptyViewsBehindTheirStorage(t *testing.T) {
	none, some := tensor.New(tensor.Float32, 3, 0, 2), tensor.Ones(tensor.Float32, 3, 4)
	views := map[string]*tensor.Tensor{
		"alone": none.Narrow(0, 2, 1), "last": none.Narrow(2, 1, 1),
		"behind": some.Narrow(0, 3, 0).Narrow(1, 2, 2), "row": some.Narrow(0, 1, 1),
	}
	path := filepath.Join(t.TempDir(), "x.pt")
	for _, set := range []map[string]*tensor.Tensor{views, {"alone": none.Narrow(0, 2, 1)},
		{"behind": some.Narrow(0, 3, 0)}} {
		if err := pt.Save(path, set); err != nil {
			t.Fatal(err)
		}
		state, _, err := pt.StateDict(load(t, path, pt.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range set {
			if got := state[name]; got == nil || !slices.Equal(got.Shape(), v.Shape()) || !tensor.Equal(got, v) {
				t.Errorf("%s is %v, not %v", name, got, v)
			}
		}
		if b, err := pt.Marshal(set, pt.MarshalOptions{Protocol: 2}); err != nil {
			t.Error(err)
		} else if _, err := pt.Unmarshal(b); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4096 {
		t.Errorf("%v, %v", info, err)
	}
}

// testdata/empty.pt is of PyTorch 2.15: {"a": x.narrow(0, 2, 1), "b": x.narrow(2, 1, 1), "c":
// torch.zeros(4)[4:], "d": torch.zeros(3, 4)[3:, 2:]} of x = torch.zeros(3, 0, 2).
func TestRegression_S4_1_EmptyViewsOfTorchAreRead(t *testing.T) {
	for _, mmap := range []bool{false, true} {
		state, _, err := pt.StateDict(load(t, "testdata/empty.pt", pt.Options{Mmap: mmap}))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]int{"a": {1, 0, 2}, "b": {3, 0, 1}, "c": {0}, "d": {0, 2}} {
			if got := state[name]; got == nil || !slices.Equal(got.Shape(), want) || got.Clone().Numel() != 0 {
				t.Errorf("%s is %v", name, got)
			}
		}
	}
}

// testdata/unsupported-2.15.pt has tensors that have no form in Go: q and again are one quantized
// tensor, n.b is conjugated, and s and the second item of list are sparse.
func TestOptions_SkipReadsTheRest(t *testing.T) {
	const path = "testdata/unsupported-2.15.pt"
	_, err := pt.Load(path, pt.Options{})
	testutil.ErrorIs(t, err, pt.ErrUnsupported)
	testutil.ErrorContains(t, err, path, "q: ", "quantized")
	var skipped []string
	skip := func(keys string, err error) bool {
		testutil.ErrorIs(t, err, pt.ErrUnsupported)
		skipped = append(skipped, keys)
		return true
	}
	d := load(t, path, pt.Options{Skip: skip}).(*python.Dict)
	if want := []string{"q", "again", "n.b", "list", "s"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	a, _ := d.Get("a")
	n, _ := d.Get("n")
	c, _ := n.(*python.Dict).Get("c")
	if d.Len() != 2 || n.(*python.Dict).Len() != 1 || a.(*tensor.Tensor).Sum() != 2 || c.(*tensor.Tensor).Numel() != 3 {
		t.Errorf("%v", d)
	}
	_, err = pt.Load(path, pt.Options{Skip: func(keys string, _ error) bool { return keys != "n.b" }})
	testutil.ErrorContains(t, err, "n.b: ", "conjugated")
}
