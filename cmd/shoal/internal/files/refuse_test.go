package files

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// convertIn converts from one file of a folder to another, and returns what was said.
func convertIn(t *testing.T, dir, from, to string, o Options) (said string, err error) {
	t.Helper()
	var out strings.Builder
	err = Convert(t.Context(), &out, os.Stderr, filepath.Join(dir, from), filepath.Join(dir, to), o)
	return out.String(), err
}

// A file is never written over one that is read, by whatever name.
func TestAFileIsNotConvertedToItself(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	x := Tensors{"x": tensor.Ones(tensor.Float32, 3), "y": tensor.Ones(tensor.Float32, 3)}
	err := errors.Join(pt.Save(at("a.pt"), x),
		safetensors.SaveWith(at("m.safetensors.index.json"), x, safetensors.SaveOptions{ShardBytes: 12}),
		os.Symlink("a.pt", at("b.pt")), os.Link(at("a.pt"), at("c.bin")), os.Mkdir(at("sub"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(at("a.pt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"a.pt", "a.pt"}, {"a.pt", "b.pt"}, {"a.pt", "c.bin"},
		{"a.pt", "sub/../a.pt"}, {"b.pt", "a.pt"},
		{"m.safetensors.index.json", "m.safetensors.index.json"},
		{"m.safetensors.index.json", "m-00001-of-00002.safetensors"},
		{"m-00001-of-00002.safetensors", "m.safetensors.index.json"}} {
		if _, err := convertIn(t, dir, c[0], c[1], Options{}); !errors.Is(err, ErrSame) ||
			!strings.Contains(err.Error(), "another name") {
			t.Errorf("%s to %s: %v", c[0], c[1], err)
		}
	}
	if after, err := os.ReadFile(at("a.pt")); err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %v", err)
	}
	if _, err := convertIn(t, dir, "a.pt", "d.pt", Options{Strict: true}); err != nil {
		t.Error(err)
	}
}

// What a conversion leaves behind is always said, and --strict refuses it, with nothing written.
func TestWhatIsLeftBehindIsListedAndStrictRefusesIt(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	w := tensor.Ones(tensor.Float32, 4)
	checkpoint := map[string]any{"model": map[string]*tensor.Tensor{"w": w, "tied": w.Narrow(0, 0, 4)},
		"epoch": 3, "note": "x", "none": nil}
	mixed, err := msgpack.Marshal(map[string]any{"w": w, "lr": 0.1, "list": []any{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	npz, err := os.ReadFile("testdata/object.npz")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../../../encoding/pt/testdata/model-2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"mixed.msgpack": mixed, "object.npz": npz, "module.pt": module} {
		if err := os.WriteFile(at(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := pt.Save(at("checkpoint.pt"), checkpoint); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"checkpoint.pt", "x.safetensors",
			"value epoch, value none, value note, memory shared by model.tied, model.w"},
		{"checkpoint.pt", "x.h5", "value epoch, value none, value note, memory shared by model.tied, model.w"},
		{"checkpoint.pt", "x.pt", "value epoch, value none, value note"},
		{"module.pt", "x.npz",
			"class __main__.Net of at the top, buffer passing, memory shared by fc.bias, tied.bias, memory shared " +
				"by fc.weight, tied.weight"},
		{"mixed.msgpack", "x.pt", "value list.0, value lr"},
		{"object.npz", "x.npy", "array names, the name x"},
	} {
		said, err := convertIn(t, dir, c.from, c.to, Options{})
		if err != nil || !strings.HasSuffix(said, "omitted: "+c.want+"\n") {
			t.Errorf("%s to %s: %s, %v; want %s", c.from, c.to, said, err, c.want)
		}
		if err := os.Remove(at(c.to)); err != nil {
			t.Fatal(err)
		}
		_, err = convertIn(t, dir, c.from, c.to, Options{Strict: true})
		if !errors.Is(err, ErrStrict) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v; want %s", c.from, c.to, err, c.want)
		}
		if _, err := os.Stat(at(c.to)); err == nil {
			t.Errorf("%s to %s: there is a file", c.from, c.to)
		}
	}
}

// testdata/expanded.pt is torch.save(torch.ones(1).expand(1 << 40), …): 1.5 KB for 4 TiB.
func TestRegression_S4_2_AnExpandedTensorIsInspectedAndNotConverted(t *testing.T) {
	var out strings.Builder
	if err := Inspect(t.Context(), &out, os.Stderr, "testdata/expanded.pt", false, Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "[1099511627776]  4.0 TiB  1    1    1     0") {
		t.Error(out.String())
	}
	for _, name := range []string{"x.safetensors", "x.h5", "x.npy", "x.npz", "x.msgpack", "x.pt"} {
		path := filepath.Join(t.TempDir(), name)
		err := Convert(t.Context(), &out, os.Stderr, "testdata/expanded.pt", path, Options{})
		if !errors.Is(err, safefile.ErrLimit) || !strings.Contains(err.Error(), "--max-bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Statistics are of parts, which are copied one at a time; of what was expanded each element is
// looked at once.
func TestRegression_S4_2_StatisticsOfViews(t *testing.T) {
	x := tensor.Arange(tensor.Float64, 0, 300_000, 1).Reshape(300, 1000)
	nan := tensor.Full(tensor.Float32, math.NaN(), 1).Expand(3, 1<<40)
	path := filepath.Join(t.TempDir(), "x.pt")
	if err := pt.Save(path, Tensors{"x": x, "t": x.Transpose(0, 1),
		"e": x.Unsqueeze(0).Expand(1<<30, 300, 1000), "part": x.Narrow(1, 3, 7), "none": x.Narrow(0, 0, 0),
		"nan": nan}); err != nil {
		t.Fatal(err)
	}
	c, err := loadPT(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := summarizeAll(os.Stderr, path, c.Tensors, 0)
	if err != nil || len(list) != 6 {
		t.Fatal(list, err)
	}
	for _, s := range list {
		switch s.Name {
		case "nan":
			if s.NaN != 3<<40 || s.Numbers != nil {
				t.Errorf("%+v", s)
			}
		case "none":
			if s.Numbers != nil {
				t.Errorf("%+v", s)
			}
		case "part":
			if *s.Numbers != (Numbers{3, 299_009, 149_506, s.Numbers.Std}) {
				t.Errorf("%+v", s.Numbers)
			}
		default:
			if n := *s.Numbers; n.Min != 0 || n.Max != 299_999 || n.Mean != 149_999.5 ||
				math.Abs(float64(n.Std)-86602.54) > 0.01 {
				t.Errorf("%s: %+v", s.Name, n)
			}
		}
	}
	if _, err := npy.Load(path); err == nil {
		t.Error("a .pt is no .npy")
	}
}
