package files

import (
	stdbytes "bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/hdf5"
	"github.com/shoal-mp/shoal/npy"
	"github.com/shoal-mp/shoal/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// lacks are dtypes that formats do not have, and how they say so.
var lacks = map[string]map[tensor.DType]error{
	"x.npz":         {tensor.BFloat16: npy.ErrDType, tensor.Float8E4M3FN: npy.ErrDType, tensor.Float8E5M2: npy.ErrDType},
	"x.msgpack":     {tensor.BFloat16: errors.ErrUnsupported, tensor.Float8E4M3FN: errors.ErrUnsupported, tensor.Float8E5M2: errors.ErrUnsupported},
	"x.safetensors": {tensor.Complex128: safetensors.ErrDType},
}

// Every dtype goes by every format, bit by bit, or is an error that names it and leaves nothing behind.
func TestEveryDTypeInEveryFormat(t *testing.T) {
	for _, name := range []string{"x.pt", "x.safetensors", "x.npz", "x.h5", "x.msgpack"} {
		for dt := tensor.Bool; dt <= tensor.Float8E5M2; dt++ {
			path := filepath.Join(t.TempDir(), name)
			f, err := Of(path)
			if err != nil {
				t.Fatal(err)
			}
			x := tensor.New(dt, 3, 5)
			for i := range tensor.Bytes(x) {
				if dt != tensor.Bool {
					tensor.Bytes(x)[i] = byte(37 * i)
				}
			}
			_, err = f.Save(path, Content{Tensors: Tensors{"x": x}})
			if lacks[name][dt] != nil {
				if _, there := os.Stat(path); err == nil || !strings.Contains(err.Error(), dt.String()) || there == nil {
					t.Errorf("%s of %v: %v", name, dt, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Tensors["x"]; got.DType() != dt || !stdbytes.Equal(tensor.Bytes(got), tensor.Bytes(x)) {
				t.Errorf("%s of %v is %v", name, dt, got)
			}
		}
	}
}

// Text about tensors stays where there is room for it, and is said to be lost where not.
func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	meta := map[string]string{"license": "MIT", "über": "größer"}
	if err := safetensors.Save(at("a.safetensors"), Tensors{"x": tensor.Ones(tensor.Float32, 2)}, meta); err != nil {
		t.Fatal(err)
	}
	convert := func(from, to string) string {
		t.Helper()
		var out strings.Builder
		if err := Convert(&out, os.Stderr, at(from), at(to)); err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(out.String(), at(to)+": 1 tensor, 8 B\n")
	}
	for i, step := range []string{"a.h5", "b.safetensors.index.json", "c.safetensors", "d.hdf5"} {
		from := []string{"a.safetensors", "a.h5", "b.safetensors.index.json", "c.safetensors"}[i]
		if said := convert(from, step); said != "" {
			t.Errorf("to %s: %q", step, said)
		}
		f, _ := Of(step)
		if c, err := f.Load(at(step)); err != nil || !maps.Equal(c.Meta, meta) {
			t.Errorf("%s has %v: %v", step, c.Meta, err)
		}
	}
	for _, name := range []string{"x.pt", "x.npz", "x.npy", "x.msgpack"} {
		if said := convert("a.h5", name); said != "left behind: metadata license, metadata über\n" {
			t.Errorf("to %s: %q", name, said)
		}
	}
}

// What is no tensor is named by both commands.
func TestOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	err = errors.Join(w.Save(Tensors{"g/x": tensor.Ones(tensor.Uint16, 3)}, hdf5.Options{}), w.Strings("labels", []string{"a", "b"}, 2, 1), w.Attr("", "epoch", tensor.Scalar(tensor.Int64, 3)),
		w.Attr("g/x", "unit", "m"), w.Attr("g", "of", "group"), w.Attr("", "by", "me"), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Inspect(&out, os.Stderr, path, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"g/x   uint16  [3]    6 B   1    1    1     0", "metadata by: me\nalso attribute epoch\nalso attribute of of g\nalso attribute unit of g/x\nalso text labels\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	if err := Inspect(&out, os.Stderr, path, true); err != nil {
		t.Fatal(err)
	}
	var o struct {
		Metadata map[string]string
		Others   []string
	}
	if err := json.Unmarshal([]byte(out.String()), &o); err != nil || o.Metadata["by"] != "me" || len(o.Others) != 4 {
		t.Errorf("%+v: %v", o, err)
	}
	out.Reset()
	again := filepath.Join(t.TempDir(), "y.h5")
	if err := Convert(&out, os.Stderr, path, again); err != nil || !strings.HasSuffix(out.String(), "y.h5: 1 tensor, 6 B\n") {
		t.Errorf("%s: %v", &out, err)
	}
	f, err := hdf5.Open(again)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unit, err := f.Attrs("g/x")
	epoch, err2 := f.Attrs("")
	labels, shape, err3 := f.Strings("labels")
	if err := errors.Join(err, err2, err3); err != nil || unit["unit"] != "m" || epoch["by"] != "me" || epoch["epoch"].(*tensor.Tensor).Item() != 3 ||
		!slices.Equal(labels, []string{"a", "b"}) || !slices.Equal(shape, []int{2, 1}) {
		t.Errorf("%v, %v, %v %v: %v", unit, epoch, labels, shape, err)
	}
	if group, err := f.Attrs("g"); err != nil || group["of"] != "group" {
		t.Errorf("%v: %v", group, err)
	}
	out.Reset()
	want := "left behind: attribute epoch, attribute of of g, attribute unit of g/x, text labels, metadata by\n"
	if err := Convert(&out, os.Stderr, path, filepath.Join(t.TempDir(), "y.pt")); err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s: %v", &out, err)
	}
}

// Complex numbers have the statistics of their magnitudes.
func TestComplexStatistics(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Complex64, tensor.Complex128} {
		x := tensor.FromSlice([]complex128{3 + 4i, -1, complex(math.Inf(1), 0), complex(0, math.NaN())}, 4).To(dt)
		s := summarize("x", x, new(atomic.Int64))
		if s.Numbers == nil || s.Numbers.Min != 1 || !math.IsInf(float64(s.Numbers.Max), 1) || s.NaN != 1 || s.Inf != 1 {
			t.Errorf("%v: %+v of %+v", dt, s.Numbers, s)
		}
	}
}

// A bar shows what is done, and goes when the work ends, whether or not it was all.
func TestBar(t *testing.T) {
	half := make(screen)
	stop := show(half, "read x.pt", 1<<30, func() int64 { return 1 << 29 })
	for text := range half {
		if strings.Contains(text, "read x.pt") && strings.Contains(text, "512.0 MiB / 1.0 GiB") {
			break
		}
	}
	go func() {
		for range half { // what is drawn at the end
		}
	}()
	stop()
	close(half)
	watch(half, "to no terminal", 1<<40, nil)() // which would panic
}

// A screen hands on what is drawn.
type screen chan string

func (s screen) Write(b []byte) (int, error) {
	s <- string(b)
	return len(b), nil
}

// The kernel counts what a process writes.
func TestTransferred(t *testing.T) {
	if _, err := os.ReadFile("/proc/self/io"); err != nil {
		t.Skip("this system does not say")
	}
	written := transferred("wchar")
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := written(); n < 1<<20 {
		t.Errorf("%d bytes were written", n)
	}
}
