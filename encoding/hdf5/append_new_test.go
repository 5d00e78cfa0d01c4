package hdf5_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// newNames are what addTo makes: in the first group, in one that is there, and in groups of its
// own.
func newNames(group string) []string { return []string{"new", group + "/new", "made/by/append"} }

// addTo makes data sets, text, a group and attributes in a file that has a group.
func addTo(w *hdf5.Writer, group string) error {
	chunked := hdf5.Options{MaxShape: []int{hdf5.Unlimited, 3}, Shuffle: true, Gzip: 4}
	for i, name := range newNames(group) {
		o := hdf5.Options{}
		if i == 1 {
			o = chunked
		}
		d, err := w.Dataset(name, tensor.Float32, []int{2, 3}, o)
		if err == nil {
			err = d.WriteSlab(rows(0, 2), 0, 0)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Group("empty group"), w.Strings("words", []string{"one", "two"}),
		w.Attr("new", "unit", "m"), w.Attr("empty group", "n", tensor.Arange(tensor.Int64, 0, 3, 1)))
}

// hasAdded checks that a file has what addTo made.
func hasAdded(t *testing.T, path, group string) {
	t.Helper()
	f := open(t, path)
	defer f.Close()
	for _, name := range newNames(group) {
		if got := read(t, f, name); !tensor.Equal(got, rows(0, 2)) {
			t.Errorf("%s is %v", name, got)
		}
	}
	if words, _, err := f.Strings("words"); err != nil || !slices.Equal(words, []string{"one", "two"}) {
		t.Errorf("%q, %v", words, err)
	}
	unit, err := f.Attrs("new")
	n, err2 := f.Attrs("empty group")
	if err := errors.Join(err, err2); err != nil || unit["unit"] != "m" || n["n"].(*tensor.Tensor).Numel() != 3 {
		t.Errorf("%v, %v, %v", unit, n, err)
	}
}

// groups are files with a group that is there, of each form that has more members.
func groups(t *testing.T) map[string]string {
	own := filepath.Join(t.TempDir(), "own.h5")
	if err := hdf5.Save(own, map[string]*tensor.Tensor{"group/x": rows(0, 2)}); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"symbol tables": grown(t), "links in headers": own}
}

func TestAppend_MakesDataSetsInGroupsThatAreThere(t *testing.T) {
	for name, path := range groups(t) {
		t.Run(name, func(t *testing.T) {
			before := everything(t, path)
			w, err := hdf5.Append(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(addTo(w, "group"), w.Close(), w.Discard()); err != nil {
				t.Fatal(err)
			}
			hasAdded(t, path, "group")
			for round := range 60 { // more than one node of a table has
				w, err := hdf5.Append(path)
				if err != nil {
					t.Fatal(err)
				}
				grow, err := w.Open("group/new")
				if err == nil {
					err = grow.Append(rows(0, 1))
				}
				_, made := w.Dataset(fmt.Sprint("group/many", round), tensor.Uint8, []int{1}, hdf5.Options{})
				if err := errors.Join(err, made, w.Close()); err != nil {
					t.Fatal(err)
				}
			}
			after := everything(t, path)
			for name, want := range before {
				if !tensor.Equal(after[name], want) {
					t.Errorf("%s has changed", name)
				}
			}
			if n := len(after) - len(before); n != 3+60 || after["group/new"].Dim(0) != 62 {
				t.Errorf("%d data sets more, and %v", n, after["group/new"].Shape())
			}
			runH5py(t, path, `
import sys, h5py, numpy as np
x = np.arange(6, dtype="<f4").reshape(2, 3)
with h5py.File(sys.argv[1], "a") as f:
    for name in ("new", "group/new", "made/by/append"):
        assert (f[name][:2] == x).all(), name
    assert f["new"].attrs["unit"] == "m" and list(f["empty group"].attrs["n"]) == [0, 1, 2]
    assert list(f["words"].asstr()[()]) == ["one", "two"] and len(f["group"]) >= 61
    assert all(f["group/many%d" % i].shape == (1,) for i in range(60)) and f["group/new"].shape == (62, 3)
    f["group/theirs"], f["theirs"] = x, x
    f["group/new"].resize((100, 3))
    del f["group/many0"]
with h5py.File(sys.argv[1]) as f:
    assert (f["theirs"][()] == x).all() and (f["group/theirs"][()] == x).all() and "group/many0" not in f
    assert f["group/new"].shape == (100, 3) and (f["made/by/append"][()] == x).all()`)
		})
	}
}

// everything reads the data sets of numbers that are read.
func everything(t *testing.T, path string) map[string]*tensor.Tensor {
	t.Helper()
	f := open(t, path)
	defer f.Close()
	all := map[string]*tensor.Tensor{}
	for _, name := range f.Names() {
		if d, err := f.Dataset(name); err == nil {
			if all[name], err = d.Read(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// What h5py has made with libver="latest" has links in headers, some of them numbered.
func TestAppend_MakesDataSetsInFilesOfLibverLatest(t *testing.T) {
	for _, file := range []string{"v110", "latest"} {
		path := copied(t, "testdata/"+file+".h5")
		before := everything(t, path)
		w, err := hdf5.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Dataset("one more", tensor.Float32, []int{2, 3}, hdf5.Options{}); err == nil {
			err = errors.Join(w.Attr("one more", "unit", "m"), w.Close())
		}
		if errors.Is(err, hdf5.ErrUnsupported) {
			t.Logf("%s: %v", file, err)
			w.Discard()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if after := everything(t, path); len(after) != len(before)+1 || after["one more"].Sum() != 0 {
			t.Errorf("%s: %d data sets of %d and one", file, len(after), len(before))
		}
	}
}

func TestAppend_RefusesNamesThatAreThere(t *testing.T) {
	path := grown(t)
	w, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	if _, err := w.Dataset("twice", tensor.Uint8, []int{1}, hdf5.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "x/y", "group", "group/n", "group/n/m", "soft", "twice", "twice/more",
		"", "a//b"} {
		if _, err := w.Dataset(name, tensor.Uint8, []int{1}, hdf5.Options{}); !errors.Is(err, hdf5.ErrName) {
			t.Errorf("%q: %v, want ErrName", name, err)
		}
	}
	if err := w.Group("group"); err != nil {
		t.Errorf("a group that is there: %v", err)
	}
	for _, name := range []string{"x", "x/y", "soft"} {
		if err := w.Group(name); !errors.Is(err, hdf5.ErrName) {
			t.Errorf("group %q: %v, want ErrName", name, err)
		}
	}
	for _, name := range []string{"", "x", "group"} {
		if err := w.Attr(name, "key", "value"); !errors.Is(err, hdf5.ErrUnsupported) {
			t.Errorf("an attribute of %q: %v, want ErrUnsupported", name, err)
		}
	}
	if d, err := w.Open("twice"); err != nil || d.Shape()[0] != 1 {
		t.Errorf("a new data set: %v", err)
	}
}

// A process that dies at any of its writes leaves all that was there, and each group as it was or
// with all that is new in it.
func TestAppend_LeavesTheFileWhereItsProcessDies(t *testing.T) {
	for name := range groups(t) {
		for writes := 0; ; writes++ {
			path := groups(t)[name]
			before := everything(t, path)
			w, err := hdf5.Append(path)
			if err != nil {
				t.Fatal(err)
			}
			died := hdf5.DieAfter(w, writes)
			err = errors.Join(addTo(w, "group"), w.Close())
			after := everything(t, path)
			for name, want := range before {
				if !tensor.Equal(after[name], want) {
					t.Fatalf("after %d writes %s is %v", writes, name, after[name])
				}
			}
			for _, name := range newNames("group") {
				if got := after[name]; got != nil && !tensor.Equal(got, rows(0, 2)) {
					t.Fatalf("after %d writes %s is %v", writes, name, got)
				}
			}
			if (after["new"] == nil) != (after["made/by/append"] == nil) {
				t.Fatalf("after %d writes one group has a part of what is new", writes)
			}
			if !died() {
				if err != nil || writes < 10 || len(after) != len(before)+3 {
					t.Errorf("%s: %d writes, %v, %d data sets", name, writes, err, len(after))
				}
				break
			}
		}
	}
}

// A file with a user's block, or links in a heap, is not added to, and nothing of it has changed.
func TestAppend_RefusesLinksInAHeap(t *testing.T) {
	many := filepath.Join(t.TempDir(), "many.h5")
	if !runH5py(t, many, `
import sys, h5py
with h5py.File(sys.argv[1], "w", libver="latest") as f:
    for i in range(20):
        f["many/%d" % i] = i
    f.create_group("numbered", track_order=True)["first"] = 1`) {
		t.Skip("it takes h5py to make the file")
	}
	b, err := os.ReadFile(many)
	if err != nil {
		t.Fatal(err)
	}
	w, err := hdf5.Append(many)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dataset("many/more", tensor.Uint8, []int{1}, hdf5.Options{}); !errors.Is(err, hdf5.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(many); err != nil || !slices.Equal(after, b) {
		t.Errorf("the file has changed, %v", err)
	}
	if w, err = hdf5.Append(many); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"numbered/second", "numbered/a third"} {
		if _, err := w.Dataset(name, tensor.Uint8, []int{1}, hdf5.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runH5py(t, many, `
import sys, h5py
with h5py.File(sys.argv[1], "a", libver="latest") as f:
    assert set(f["numbered"]) == {"first", "second", "a third"} and list(f["numbered"])[0] == "first", list(f["numbered"])
    f["numbered/last"] = 2
    assert list(f["numbered"])[-1] == "last" and len(f["many"]) == 20`)
}
