package safetensors_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

func TestSaveWith_WritesSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors.index.json")
	all := map[string]*tensor.Tensor{}
	for i := range 5 {
		all[fmt.Sprint("w", i)] = tensor.Full(tensor.Float32, float64(i), 10)
	}
	opts := safetensors.SaveOptions{Metadata: map[string]string{"format": "pt"}, ShardBytes: 80}
	if err := safetensors.SaveWith(path, all, opts); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "model-0000?-of-00003.safetensors"))
	if len(files) != 3 {
		t.Errorf("files: %v", files)
	}
	s, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tensors()
	if err != nil || !slices.Equal(s.Names(), slices.Sorted(maps.Keys(all))) {
		t.Fatalf("%v: %v", s.Names(), err)
	}
	m, err := s.Map("w3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tensor("w9"); !errors.Is(err, safetensors.ErrName) {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, x := range all {
		if !tensor.Equal(got[name], x) {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if m.Sum() != 30 { // after Close
		t.Errorf("%v", m)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	other := filepath.Join(dir, "model.json")
	if err := os.Rename(path, other); err != nil {
		t.Fatal(err)
	}
	byContent, err := safetensors.Open(other)
	if err != nil || len(byContent.Names()) != len(all) || !slices.Equal(byContent.Files, files) {
		t.Fatalf("an index of another name: %v", err)
	}
	if err := byContent.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Rename(other, path), os.Remove(files[1])); err != nil {
		t.Fatal(err)
	}
	if _, err := safetensors.Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestOpen_RefusesHostileIndexes(t *testing.T) {
	dir := t.TempDir()
	if err := safetensors.Save(filepath.Join(dir, "a.safetensors"),
		map[string]*tensor.Tensor{"x": tensor.New(tensor.Float32, 1)}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.safetensors.index.json")
	for name, text := range map[string]string{
		"empty": "", "no object": "[]", "no map": "{}", "numbers": `{"weight_map":{"x":1}}`,
		"a way out": `{"weight_map":{"x":"../a.safetensors"}}`,
		"absolute":  `{"weight_map":{"x":"/etc/passwd"}}`,
		"a folder":  `{"weight_map":{"x":"a/b.safetensors"}}`, "itself": `{"weight_map":{"x":""}}`,
		"dot":       `{"weight_map":{"x":"."}}`,
		"not there": `{"weight_map":{"y":"a.safetensors"}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var format *encoding.FileError
		if s, err := safetensors.Open(path); !errors.As(err, &format) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// ShardBytes has no meaning without an index, so it must not be ignored silently.
func TestSaveWith_RefusesShardsWithoutAnIndex(t *testing.T) {
	opts := safetensors.SaveOptions{ShardBytes: 1}
	path := filepath.Join(t.TempDir(), "m.json")
	for name, err := range map[string]error{
		"an index of another name": safetensors.SaveWith(path, nil, opts),
		"a stream":                 safetensors.EncodeWith(io.Discard, nil, opts),
	} {
		if !errors.Is(err, safetensors.ErrName) || !strings.Contains(err.Error(), "ShardBytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

// Save writes an index even if all tensors fit into one file.
func TestSave_ToAnIndexWritesOne(t *testing.T) {
	for _, name := range []string{"model.safetensors.index.json", "model.SAFETENSORS.Index.json"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		x := tensor.Ones(tensor.Float32, 3)
		if err := safetensors.Save(path, map[string]*tensor.Tensor{"a": x, "b": x}); err != nil {
			t.Fatal(err)
		}
		f := open(t, path)
		if want := []string{filepath.Join(dir, "model-00001-of-00001.safetensors")}; !slices.Equal(f.Files, want) {
			t.Errorf("files: %v, want %v", f.Files, want)
		}
		if b, err := f.Tensor("b"); err != nil || !tensor.Equal(b, x) {
			t.Errorf("%v, %v", b, err)
		}
	}
}

func TestFile_MapIsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	want := map[string]*tensor.Tensor{"a": tensor.Arange(tensor.Float32, 0, 1<<16, 1),
		"b": tensor.Ones(tensor.BFloat16, 3), "c": tensor.Ones(tensor.Bool, 2)}
	if err := safetensors.Save(path, want); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	for name, x := range want {
		m, err := f.Map(name)
		if err != nil || !tensor.Equal(m, x) || m.DType() != x.DType() {
			t.Errorf("%s is %v: %v", name, m, err)
		}
	}
	if _, err := f.Map("z"); !errors.Is(err, safetensors.ErrName) {
		t.Errorf("%v", err)
	}
	a, err := f.Map("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 300); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Catch(func() { a.Sum() }); !errors.Is(err, tensor.ErrFile) {
		t.Errorf("cut short: %v", err)
	}
}
