package nn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// theirs is the network of encoding/pt/testdata/record.py.
type theirs struct {
	FC   *nn.Linear
	BN   *nn.BatchNorm2d
	Tied *nn.Linear
}

func newTheirs() *theirs {
	fc := nn.NewLinear(4, 2, nil)
	return &theirs{fc, nn.NewBatchNorm2d(2), fc}
}

// sameState wants two modules to hold the same numbers.
func sameState(t *testing.T, got, want nn.Module) {
	t.Helper()
	state := nn.State(want)
	for name, x := range nn.State(got) {
		if near, err := x.CPU(); err != nil || !tensor.Equal(near, state[name]) {
			t.Errorf("%s is %v, not %v: %v", name, x, state[name], err)
		}
	}
}

// Whole modules of two PyTorchs, in both formats of torch.save, are loaded by the same call.
func TestLoadFile_ReadsWhatTorchSaved(t *testing.T) {
	for _, name := range []string{"model-1.13", "model-2.15", "legacymodel-1.13", "legacymodel-2.15"} {
		path := "../encoding/pt/testdata/" + name + ".pt"
		v, err := pt.Load(path, pt.Options{})
		testutil.NoError(t, err)
		want, _, err := pt.StateDict(v)
		testutil.NoError(t, err)
		n := newTheirs()
		testutil.NoError(t, nn.LoadFile(n, path, nil))
		for name, x := range nn.State(n) {
			if !tensor.Equal(x, want[name]) {
				t.Errorf("%s of %s is %v, not %v", name, path, x, want[name])
			}
		}
	}
}

// The file's name says nothing: its first bytes do.
func TestLoadFile_GoesByContent(t *testing.T) {
	n := newTheirs()
	dir := t.TempDir()
	state := nn.State(n)
	delete(state, "tied.weight") // safetensors has no two names for one
	for file, save := range map[string]func(path string) error{
		"a.bin": func(path string) error { return pt.Save(path, nn.State(n)) },
		"b.pt":  func(path string) error { return safetensors.Save(path, nn.State(n)) },
		"c":     func(path string) error { return nn.SaveFile(n, path) },
		"d.safetensors": func(path string) error {
			return nn.SaveFile(n, path)
		},
		"e.safetensors.index.json": func(path string) error {
			return safetensors.SaveWith(path, nn.State(n), safetensors.SaveOptions{ShardBytes: 10})
		},
	} {
		path := filepath.Join(dir, file)
		testutil.NoError(t, save(path))
		m := newTheirs()
		testutil.NoError(t, nn.LoadFile(m, path, nil))
		sameState(t, m, n)
	}
}

func TestLoadFile_NamesWhatDiffersAndChangesNothing(t *testing.T) {
	m := newTheirs()
	before := nn.Clone(m)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.pt")
	state := nn.State(newTheirs())
	delete(state, "bn.bias")
	state["extra"] = tensor.Ones(tensor.Float32, 1)
	state["fc.weight"] = tensor.Ones(tensor.Float32, 2, 5)
	state["bn.num_batches_tracked"] = tensor.Ones(tensor.Float32)
	testutil.NoError(t, pt.Save(path, state))
	err := nn.LoadFile(m, path, nil)
	for want, text := range map[error]string{nn.ErrMissing: "bn.bias", nn.ErrUnexpected: "extra",
		nn.ErrShape: "fc.weight: got shape [2 5], want [2 4]",
		nn.ErrDType: "bn.num_batches_tracked"} {
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v: want %v of %s", err, want, text)
		}
	}
	sameState(t, m, before)
	missing, unexpected, err := nn.LoadPart(m, state)
	if !slices.Equal(missing, []string{"bn.bias"}) || !slices.Equal(unexpected, []string{"extra"}) ||
		!errors.Is(err, nn.ErrShape) {
		t.Errorf("%v, %v, %v", missing, unexpected, err)
	}
	sameState(t, m, before)
	delete(state, "fc.weight")
	delete(state, "bn.num_batches_tracked")
	if missing, _, err = nn.LoadPart(m, state); err != nil || len(missing) != 3 ||
		!tensor.Equal(m.BN.Weight.T, state["bn.weight"]) {
		t.Errorf("%v, %v", missing, err)
	}
	before = nn.Clone(m)
	for name, content := range map[string]string{"empty": "", "text": "these are no tensors",
		"half": "PK\x03\x04 and no more", "json": `{"a": 1, "b": 2}`} {
		path := filepath.Join(dir, name)
		testutil.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		if err := nn.LoadFile(m, path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		} else if unknown := name == "empty" || name == "text"; errors.Is(err, nn.ErrFile) != unknown {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := nn.LoadFile(m, filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	sameState(t, m, before)
}

// A checkpoint of several things says where in it the model is, and how that is loaded.
func TestLoadFile_SaysUnderWhichNameAModelIs(t *testing.T) {
	n, m := newTheirs(), newTheirs()
	path := filepath.Join(t.TempDir(), "checkpoint.pt")
	testutil.NoError(t, pt.Save(path, map[string]any{"epoch": 3, "model": nn.State(n),
		"other": map[string]*tensor.Tensor{"x": tensor.Ones(tensor.Float32, 1)}}))
	if err := nn.LoadFile(m, path, nil); !errors.Is(err, nn.ErrMissing) ||
		!strings.Contains(err.Error(), `Under(state, "model")`) {
		t.Errorf("%v", err)
	}
	state, err := nn.ReadState(path)
	testutil.NoError(t, err)
	if missing, unexpected, err := nn.LoadPart(m, nn.Under(state, "model")); err != nil ||
		len(missing)+len(unexpected) > 0 {
		t.Errorf("%v, %v, %v", missing, unexpected, err)
	}
	sameState(t, m, n)
}

// Weights in half precision are loaded into float32, and a model goes to the device where it is
// wanted.
func TestLoadFile_ConvertsFloatsAndMovesTheModel(t *testing.T) {
	n, m := newTheirs(), newTheirs()
	dev := devicetest.New("test:0")
	path := filepath.Join(t.TempDir(), "half.safetensors")
	half := map[string]*tensor.Tensor{}
	for name, x := range nn.State(n) {
		if half[name] = x; x.DType() == tensor.Float32 {
			half[name] = x.To(tensor.BFloat16)
			x.CopyFrom(half[name]) // rounded as the file's are
		}
	}
	testutil.NoError(t, safetensors.Save(path, half))
	testutil.NoError(t, nn.LoadFile(m, path, dev))
	for name, x := range nn.State(m) {
		if x.Device() != dev {
			t.Errorf("%s is on %v", name, x.Device())
		}
	}
	sameState(t, m, n)
	testutil.NoError(t, nn.LoadFile(m, path, nil))
	if m.FC.Weight.T.Device() != nil {
		t.Error("the model did not come back to the host")
	}
	testutil.NoError(t, nn.Close(m))
}

func ExampleLoadFile() {
	dir, err := os.MkdirTemp("", "nn")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.pt") // as torch.save(model.state_dict(), path) would
	trained := nn.NewSequential(nn.NewLinear(2, 1, nil))
	trained.Layers[0].(*nn.Linear).Bias.T.Fill(3)
	if err := nn.SaveFile(trained, path); err != nil {
		panic(err)
	}
	model := nn.NewSequential(nn.NewLinear(2, 1, nil))
	if err := nn.LoadFile(model, path, nil); err != nil {
		panic(err)
	}
	fmt.Println(nn.State(model)["0.bias"])
	err = nn.LoadFile(nn.NewSequential(nn.NewLinear(3, 1, nil)), path, nil)
	fmt.Println(errors.Is(err, nn.ErrShape))
	// Output:
	// tensor([3.])
	// true
}

// What a program writes to a state that it has read is its own, also where the state is a mapped
// file: it can be loaded more than once.
func TestLoadPart_LeavesTheStateAsItIs(t *testing.T) {
	net := nn.NewLinear(600, 2048, tensor.NewGenerator(1)) // of several pieces
	path := filepath.Join(t.TempDir(), "net.safetensors")
	testutil.NoError(t, nn.SaveFile(net, path))
	state, err := nn.ReadState(path)
	testutil.NoError(t, err)
	want := state["weight"].MulScalarInPlace(2)
	state["weight"].CopyFrom(want)
	for range 2 {
		_, _, err := nn.LoadPart(net, state)
		testutil.NoError(t, err)
		if !tensor.Equal(net.Weight.T, want) || !tensor.Equal(state["weight"], want) {
			t.Error("what was written to the state is gone")
		}
	}
	testutil.NoError(t, nn.LoadFile(net, path, nil))
	if !tensor.Equal(net.Weight.T.MulScalarInPlace(2), want) {
		t.Error("LoadFile did not load the whole file")
	}
	testutil.NoError(t, errors.Join(state["weight"].Close(), state["bias"].Close(), nn.Close(net)))
}
