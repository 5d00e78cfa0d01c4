package files

import (
	stdbytes "bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// lacks are dtypes that formats do not have, and how they say so.
var lacks = map[string]map[tensor.DType]error{
	"x.npz": {tensor.BFloat16: npy.ErrDType, tensor.Float8E4M3FN: npy.ErrDType,
		tensor.Float8E5M2: npy.ErrDType},
	"x.msgpack": {tensor.BFloat16: msgpack.ErrUnsupported, tensor.Float8E4M3FN: msgpack.ErrUnsupported,
		tensor.Float8E5M2: msgpack.ErrUnsupported},
	"x.safetensors": {tensor.Complex128: safetensors.ErrDType},
}

// Every dtype goes by every format, bit by bit, or is an error that names it and leaves nothing
// behind.
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
				if _, there := os.Stat(path); err == nil || !strings.Contains(err.Error(), dt.String()) ||
					there == nil {
					t.Errorf("%s of %v: %v", name, dt, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.Load(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Tensors["x"]; got.DType() != dt || !stdbytes.Equal(tensor.Bytes(got), tensor.Bytes(x)) {
				t.Errorf("%s of %v is %v", name, dt, got)
			}
		}
	}
}

// Every format becomes every other, and itself, bit by bit, with all dtypes that both have; one
// that the second lacks is an error that names it, and there is no file.
func TestEveryFormatToEveryOther(t *testing.T) {
	all := []string{"x.pt", "x.pth", "x.bin", "x.ckpt", "x.safetensors", "x.safetensors.index.json", "x.npy",
		"x.npz", "x.h5", "x.hdf5", "x.msgpack", "x.mpk"}
	dtypes := func(lack func(tensor.DType) bool) Tensors {
		tensors := Tensors{}
		for dt := tensor.Bool; dt <= tensor.Float8E5M2; dt++ {
			if !lack(dt) {
				tensors[dt.String()] = tensor.Ones(tensor.Float32, 2, 3).To(dt)
			}
		}
		return tensors
	}
	lacks := func(name string) map[tensor.DType]error {
		switch filepath.Ext(name) {
		case ".npy":
			return lacks["x.npz"]
		case ".mpk":
			return lacks["x.msgpack"]
		case ".json":
			return lacks["x.safetensors"]
		}
		return lacks[name]
	}
	for _, from := range all {
		for _, to := range all {
			in, dir := filepath.Join(t.TempDir(), from), t.TempDir()
			out := filepath.Join(dir, to)
			source, err1 := Of(in)
			target, err2 := Of(out)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			crosses := func(tensors Tensors) {
				t.Helper()
				if _, err := source.Save(in, Content{Tensors: tensors}); err != nil {
					t.Fatal(err)
				}
				var said strings.Builder
				// which has no names
				if err := Convert(t.Context(), &said, os.Stderr, in, out, Options{}); err != nil ||
					strings.Contains(said.String(), "omitted") != (to == "x.npy" && from != "x.npy") {
					t.Fatalf("%s to %s: %s, %v", from, to, &said, err)
				}
				c, err := target.Load(out, 0)
				if err != nil || len(c.Tensors) != len(tensors) {
					t.Fatalf("%s to %s: %v, %v", from, to, c.Tensors, err)
				}
				for name, x := range tensors {
					got := c.Tensors[name]
					if got == nil && len(tensors) == 1 {
						for _, got = range c.Tensors { // a .npy has no names
						}
					}
					if got == nil || got.DType() != x.DType() || !slices.Equal(got.Shape(), x.Shape()) ||
						!stdbytes.Equal(tensor.Bytes(got), tensor.Bytes(x)) {
						t.Errorf("%s to %s: %s is %v", from, to, name, got)
					}
				}
			}
			fit := dtypes(func(dt tensor.DType) bool { return lacks(from)[dt] != nil || lacks(to)[dt] != nil })
			if from == "x.npy" || to == "x.npy" {
				for name, x := range fit {
					crosses(Tensors{name: x})
				}
			} else {
				crosses(fit)
			}
			for dt, want := range lacks(to) {
				if lacks(from)[dt] != nil {
					continue
				}
				if _, err := source.Save(in, Content{Tensors: Tensors{"x": tensor.Ones(tensor.Float32,
					1).To(dt)}}); err != nil {
					t.Fatal(err)
				}
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o700)
				err := Convert(t.Context(), io.Discard, os.Stderr, in, out, Options{})
				if left, _ := os.ReadDir(dir); !errors.Is(err, want) ||
					!strings.Contains(err.Error(), dt.String()) || len(left) > 0 {
					t.Errorf("%v of %s to %s: %v, and there is %v", dt, from, to, err, left)
				}
			}
		}
	}
}

// A mapped file may be removed or replaced: its tensors keep what was there.
func TestAMappedFileMayGo(t *testing.T) {
	for _, name := range []string{"x.pt", "x.npy", "x.safetensors", "x.safetensors.index.json"} {
		f, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, change := range map[string]func(dir string) error{
			"removed": func(dir string) error { return os.RemoveAll(dir) },
			"replaced": func(dir string) error {
				_, err := f.Save(filepath.Join(dir, name),
					Content{Tensors: Tensors{"tensor": tensor.New(tensor.Float32, 1)}})
				return err
			},
		} {
			dir, want := t.TempDir(), tensor.Ones(tensor.Float32, 1<<16)
			path := filepath.Join(dir, name)
			if _, err := f.Save(path, Content{Tensors: Tensors{"tensor": want}}); err != nil {
				t.Fatal(err)
			}
			c, err := f.Load(path, 0)
			if err == nil {
				err = change(dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Tensors["tensor"]; !tensor.Equal(got, want) {
				t.Errorf("%s %s: %v", name, what, got)
			}
		}
	}
}

// Ctrl-C ends what takes long.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause, never := errors.New("interrupted"), make(chan struct{})
	defer close(never)
	err := runUntilDone(ctx, func() error { cancel(cause); <-never; return nil })
	if err != cause {
		t.Errorf("%v", err)
	}
}

// Text about tensors stays where there is room for it, and is said to be lost where not.
func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	meta := map[string]string{"license": "MIT", "über": "größer"}
	if err := safetensors.SaveWith(at("a.safetensors"), Tensors{"x": tensor.Ones(tensor.Float32, 2)},
		safetensors.SaveOptions{Metadata: meta}); err != nil {
		t.Fatal(err)
	}
	convert := func(from, to string) string {
		t.Helper()
		var out strings.Builder
		if err := Convert(t.Context(), &out, os.Stderr, at(from), at(to), Options{}); err != nil {
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
		if c, err := f.Load(at(step), 0); err != nil || !maps.Equal(c.Meta, meta) {
			t.Errorf("%s has %v: %v", step, c.Meta, err)
		}
	}
	for _, name := range []string{"x.pt", "x.npz", "x.npy", "x.msgpack"} {
		want := "omitted: metadata license, metadata über\n"
		if name == "x.npy" {
			want = "omitted: metadata license, metadata über, the name x\n"
		}
		if said := convert("a.h5", name); said != want {
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
	err = errors.Join(w.Save(Tensors{"g/x": tensor.Ones(tensor.Uint16, 3)}, hdf5.Options{}),
		w.Strings("labels", []string{"a", "b"}, 2, 1), w.Attr("", "epoch", tensor.Scalar(tensor.Int64, 3)),
		w.Attr("g/x", "unit", "m"), w.Attr("g", "of", "group"), w.Group("bare"),
		w.Attr("bare", "why", "none"), w.Attr("", "by", "me"), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Inspect(t.Context(), &out, os.Stderr, path, false, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"g/x   uint16  [3]    6 B   1    1    1     0",
		"metadata by: me\nalso attribute epoch\nalso attribute of of g\nalso attribute unit of g/x\nalso " +
			"attribute why of bare\nalso group bare\nalso text labels\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	if err := Inspect(t.Context(), &out, os.Stderr, path, true, Options{}); err != nil {
		t.Fatal(err)
	}
	var o struct {
		Metadata map[string]string
		Others   []string
	}
	if err := json.Unmarshal([]byte(out.String()), &o); err != nil || o.Metadata["by"] != "me" || len(o.Others) != 6 {
		t.Errorf("%+v: %v", o, err)
	}
	out.Reset()
	again := filepath.Join(t.TempDir(), "y.h5")
	if err := Convert(t.Context(), &out, os.Stderr, path, again, Options{}); err != nil ||
		!strings.HasSuffix(out.String(), "y.h5: 1 tensor, 6 B\n") {
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
	if err := errors.Join(err, err2, err3); err != nil || unit["unit"] != "m" || epoch["by"] != "me" ||
		epoch["epoch"].(*tensor.Tensor).Item() != 3 ||
		!slices.Equal(labels, []string{"a", "b"}) || !slices.Equal(shape, []int{2, 1}) {
		t.Errorf("%v, %v, %v %v: %v", unit, epoch, labels, shape, err)
	}
	if group, err := f.Attrs("g"); err != nil || group["of"] != "group" {
		t.Errorf("%v: %v", group, err)
	}
	if bare, err := f.Attrs("bare"); err != nil || bare["why"] != "none" {
		t.Errorf("%v: %v", bare, err)
	}
	out.Reset()
	want := "omitted: attribute epoch, attribute of of g, attribute unit of g/x, attribute why of bare, group " +
		"bare, text labels, metadata by\n"
	if err := Convert(t.Context(), &out, os.Stderr, path, filepath.Join(t.TempDir(), "y.pt"),
		Options{}); err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s: %v", &out, err)
	}
}

// Complex numbers have the statistics of their magnitudes.
func TestComplexStatistics(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Complex64, tensor.Complex128} {
		x := tensor.FromSlice([]complex128{3 + 4i, -1, complex(math.Inf(1), 0), complex(0, math.NaN())}, 4).To(dt)
		s := summarize("x", x, new(atomic.Int64))
		if s.Numbers == nil || s.Numbers.Min != 1 || !math.IsInf(float64(s.Numbers.Max), 1) || s.NaN != 1 ||
			s.Inf != 1 {
			t.Errorf("%v: %+v of %+v", dt, s.Numbers, s)
		}
	}
}

// A bar shows what is done, and goes when the work ends, whether or not it was all.
func TestBar(t *testing.T) {
	half := make(screen)
	stop := drawProgress(half, "read x.pt", 1<<30, func() int64 { return 1 << 29 })
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
	startProgress(half, "to no terminal", 1<<40, nil)() // which would panic
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
	written := transferCounter("wchar")
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := written(); n < 1<<20 {
		t.Errorf("%d bytes were written", n)
	}
}
