package torch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// savedNet is a module with all kinds of parts: layers by pointer and by value, in interfaces,
// twice, and buffers.
type savedNet struct {
	Features *nn.Sequential
	Head     nn.Layer
	Tied     *nn.Linear
	Scale    *tensor.Tensor
	Epochs   int
	Names    []string
	Drop     nn.Dropout
}

func newSavedNet() *savedNet {
	fc := nn.NewLinear(4, 4, nil)
	fc.Weight.Frozen = true
	return &savedNet{
		Features: nn.NewSequential(nn.NewConv2d(2, 4, 3, nil), nn.NewBatchNorm2d(4), nn.ReLU,
			nn.NewMaxPool2d(2), &nn.Dropout2d{P: 0.25}, nn.Flatten,
			fc, nn.NewLayerNorm(4), nn.LeakyReLU(0.3), nn.NewSequential(nn.GELU, nn.Tanh),
			nn.NewEmbedding(3, 2, nil)),
		Head: nn.NewLinear(4, 2, nil), Tied: fc, Scale: tensor.Full(tensor.Float64, 2, 3), Epochs: 7,
		Names: []string{"a", "b"},
		Drop:  nn.Dropout{Mode: nn.Mode{Off: true}, P: 0.5, Generator: tensor.NewGenerator(1)},
	}
}

func (n *savedNet) Forward(x *autograd.Var) *autograd.Var {
	for _, l := range n.Features.Layers[:10] {
		x = l.Forward(x)
	}
	return n.Head.Forward(x)
}

func TestAs_AWholeModuleIsLoadedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.pt")
	n := newSavedNet()
	nn.Eval(n)
	if err := pt.Save(path, n); err != nil {
		t.Fatal(err)
	}
	got, err := As[*savedNet](pt.Load(path, pt.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	x := autograd.Const(tensor.Ones(tensor.Float32, 2, 2, 4, 4))
	if y, want := got.Forward(x), n.Forward(x); !tensor.Equal(y.T(), want.T()) {
		t.Errorf("%v, not %v", y.T(), want.T())
	}
	state := nn.State(n)
	for name, x := range nn.State(got) {
		if !tensor.Equal(x, state[name]) {
			t.Errorf("%s is %v, not %v", name, x, state[name])
		}
		delete(state, name)
	}
	if len(state) > 0 || got.Epochs != 7 || fmt.Sprint(got.Names) != "[a b]" || got.Drop.P != 0.5 || !got.Drop.Off {
		t.Errorf("%v; missing are %v", got, state)
	}
	if fc := got.Features.Layers[6].(*nn.Linear); fc.Weight != got.Tied.Weight || !fc.Weight.Frozen {
		t.Error("weights that were one are two, or learn again")
	}
	if !got.Features.Layers[4].(*nn.Dropout2d).Off {
		t.Error("a layer forgot that it does not train")
	}
}

// A foreign layer is a layer that nobody has registered.
type foreignLayer struct{ nn.Func }

// Save returns an error for a module that Load could not make again, and writes nothing.
func TestSave_RefusesWhatCannotBeLoadedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pt")
	deep := []any{}
	for range 800 {
		deep = []any{deep, []any{}}
	}
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"an unregistered layer": {nn.NewSequential(nn.ReLU, &foreignLayer{}), "register it with wire.RegisterType"},
		"two fields of one name": {struct {
			A int `torch:"x"`
			B int `torch:"x"`
		}{1, 2}, `called "x"`},
		"two keys that are one": {map[any]int{int64(1): 1, int32(1): 2}, "several keys"},
		"a function":            {map[string]any{"f": func() {}}, "no Python representation"},
		"a hidden field":        {struct{ a int }{1}, "not exported"},
		"a module's hidden":     {tensor.NewGenerator(1), "not exported"},
		"an error":              {struct{ Err error }{errors.New("x")}, "register"},
		"more than Load takes":  {make([]bool, 5<<20), "could not be loaded again"},
	} {
		err := pt.Save(path, c.v)
		if !errors.Is(err, pt.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%s: there is a file", name)
		}
	}
	if err := pt.Save(path, deep); err == nil {
		if _, err := As[any](pt.Load(path, pt.Options{})); err != nil {
			t.Errorf("what was saved does not load: %v", err)
		}
	}
}

// A file may name a type in the place of another. That is an error, and nothing is made.
func TestAs_AFileCannotPutAnotherTypeInAField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pt")
	for _, head := range []any{
		map[string]any{"__type__": "nn.Nothing", "value": map[string]any{}},
		map[string]any{"__type__": "autograd.Param", "value": nil},
		map[string]any{"__type__": 3, "value": nil}, map[string]any{"Weight": 1}, []any{1},
	} {
		if err := pt.Save(path, map[string]any{"Head": head}); err != nil {
			t.Fatal(err)
		}
		if v, err := As[*savedNet](pt.Load(path, pt.Options{})); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v is %v, %v", head, v, err)
		}
	}
}
