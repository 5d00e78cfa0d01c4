package hdf5_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

func wantStrings(t *testing.T, f *hdf5.File, name string, shape []int, want ...string) {
	t.Helper()
	got, has, err := f.Strings(name)
	if err != nil || !reflect.DeepEqual(got, want) || fmt.Sprint(has) != fmt.Sprint(shape) {
		t.Errorf("%s is %q %v, not %q %v: %v", name, got, has, want, shape, err)
	}
}

func wantAttrs(t *testing.T, f *hdf5.File, name string, want map[string]any) {
	t.Helper()
	got, err := f.Attrs(name)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%q has %v: %v", name, got, err)
	}
	for key, v := range want {
		x, isTensor := v.(*tensor.Tensor)
		if y, _ := got[key].(*tensor.Tensor); isTensor &&
			(y == nil || y.DType() != x.DType() || !tensor.Equal(x, y)) ||
			!isTensor && !reflect.DeepEqual(got[key], v) {
			t.Errorf("%q of %q is %v, not %v", key, name, got[key], v)
		}
	}
}

func TestStrings_ReadsTextOfH5py(t *testing.T) {
	f := open(t, "testdata/text.h5")
	wantStrings(t, f, "fixed", []int{3}, "a", "bc", "")
	wantStrings(t, f, "long", []int{2, 2}, "", "b", "cde", strings.Repeat("é", 10))
	wantStrings(t, f, "spaces", []int{2}, "", "")
	wantStrings(t, f, "one", nil, "text")
	var chunks []string
	for i := range 50 {
		chunks = append(chunks, fmt.Sprint("chunk ", i))
	}
	wantStrings(t, f, "gzip", []int{50}, chunks...)
	wantAttrs(t, f, "", map[string]any{"creator": "h5py"})
	wantAttrs(t, f, "group", map[string]any{"of": "group"})
	wantAttrs(t, f, "x", map[string]any{
		"unit": "m/s", "names": []string{"a", "bc"}, "bytes": "abc",
		"scale": tensor.Scalar(tensor.Float64, 2.5), "shape": tensor.Arange(tensor.Int32, 0, 6, 1).Reshape(2, 3),
	})
	if _, err := f.Dataset("long"); !errors.Is(err, hdf5.ErrText) || !errors.Is(err, hdf5.ErrUnsupported) {
		t.Errorf("text as numbers: %v", err)
	}
	if _, _, err := f.Strings("x"); !errors.Is(err, hdf5.ErrUnsupported) {
		t.Errorf("numbers as text: %v", err)
	}
	for _, name := range []string{"none", "group/none"} {
		_, attrs := f.Attrs(name)
		if _, _, err := f.Strings(name); !errors.Is(err, hdf5.ErrName) || !errors.Is(attrs, hdf5.ErrName) {
			t.Errorf("%s: %v, %v", name, err, attrs)
		}
	}
	all, err := hdf5.Load("testdata/text.h5")
	if err != nil || len(all) != 2 {
		t.Errorf("without its text it has %v: %v", all, err)
	}
}

func TestStrings_SavesAndLoadsText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	if _, err := w.Dataset("group/x", tensor.Float32, []int{2}, hdf5.Options{}); err != nil {
		t.Fatal(err)
	}
	var many []string
	for i := range 10_000 {
		many = append(many, strings.Repeat("é", i%5))
	}
	const largest = 65_494 // bytes, with 8 of the name, 33 of dtype, shape and sizes
	attrs := map[string]any{"text": "été", "empty": "", "list": []string{"a", "", "bc"}, "none": []string{},
		"number": tensor.Scalar(tensor.Int32, -1), "mask": tensor.Ones(tensor.Bool, 2, 2),
		"largest": tensor.Full(tensor.Uint8, 7, largest)}
	err = errors.Join(w.Strings("labels", []string{"a", "bc", "", "d"}, 2, 2), w.Strings("group/many", many),
		w.Strings("one", []string{"x"}, []int{}...), w.Strings("no", nil))
	for _, name := range []string{"", "group", "group/x", "labels"} {
		for key, v := range attrs {
			err = errors.Join(err, w.Attr(name, key, v))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"an attribute twice", w.Attr("", "text", "again"), hdf5.ErrName},
		{"a number that is none", w.Attr("", "x", 5), hdf5.ErrUnsupported},
		{"a zero byte", w.Attr("", "y", "a\x00b"), hdf5.ErrUnsupported},
		{"a large one", w.Attr("", "larger", tensor.New(tensor.Uint8, largest+2)), hdf5.ErrUnsupported},
		{"a long name", w.Attr("", strings.Repeat("z", 65_536), "v"), hdf5.ErrUnsupported},
		{"no name", w.Attr("", "", "v"), hdf5.ErrUnsupported},
		{"another shape", w.Strings("bad", []string{"a"}, 2), hdf5.ErrShape},
		{"a name twice", w.Strings("labels", nil), hdf5.ErrName},
		{"a zero byte in a data set", w.Strings("bad", []string{"\x00"}), hdf5.ErrUnsupported},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", c.what, c.err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	wantStrings(t, f, "labels", []int{2, 2}, "a", "bc", "", "d")
	wantStrings(t, f, "group/many", []int{10_000}, many...)
	for _, name := range []string{"", "group", "group/x", "labels"} {
		wantAttrs(t, f, name, attrs)
	}
}

// An attribute of what is not there is found out at the end.
func TestAttr_OfNothingIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Attr("none", "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, hdf5.ErrName) {
		t.Errorf("%v", err)
	}
}
