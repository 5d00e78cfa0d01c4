package torch

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A crossing is a module that testdata/layers.py has by the same name.
type crossing struct {
	module func() nn.Module
	shapes [][]int // of the inputs
	call   func(m nn.Module, in []*autograd.Var) []*autograd.Var
}

func forward(m nn.Module, in []*autograd.Var) []*autograd.Var {
	return []*autograd.Var{m.(nn.Layer).Forward(in[0])}
}

func attend(m nn.Module, in []*autograd.Var) []*autograd.Var {
	y, w := m.(*nn.MultiheadAttention).AttendWeights(in[0], in[1], in[1], nn.AttentionMask{})
	return []*autograd.Var{y, w}
}

func runLSTM(m nn.Module, in []*autograd.Var) []*autograd.Var {
	y, h, c := m.(*nn.LSTM).Run(in[0], nil, nil)
	return []*autograd.Var{y, h, c}
}

func runGRU(m nn.Module, in []*autograd.Var) []*autograd.Var {
	y, h := m.(*nn.GRU).Run(in[0], nil)
	return []*autograd.Var{y, h}
}

var crossings = map[string]crossing{
	"Linear": {func() nn.Module { return nn.NewLinear(5, 3, nil) }, [][]int{{2, 5}}, forward},
	"Linear without bias": {func() nn.Module {
		l := nn.NewLinear(5, 3, nil)
		l.Bias = nil
		return l
	}, [][]int{{2, 5}}, forward},
	"Conv1d": {func() nn.Module {
		c := nn.NewConv1d(2, 6, 3, nil)
		c.Groups = 2
		c.Stride, c.Padding = 2, 1
		return c
	}, [][]int{{2, 4, 7}}, forward},
	"Conv2d": {func() nn.Module {
		c := nn.NewConv2d(2, 3, 3, nil)
		c.Padding = [2]int{1, 1}
		return c
	}, [][]int{{2, 2, 5, 6}}, forward},
	"Conv2d in groups": {func() nn.Module {
		c := nn.NewConv2d(2, 6, 3, nil)
		c.Groups = 2
		c.Dilation, c.Bias = [2]int{2, 2}, nil
		return c
	}, [][]int{{2, 4, 6, 7}}, forward},
	"Conv2d circular": {func() nn.Module {
		c := nn.NewConv2d(2, 4, 3, nil)
		c.Same, c.Mode = true, autograd.PadCircular
		return c
	}, [][]int{{2, 2, 5, 6}}, forward},
	"BatchNorm1d": {func() nn.Module { return nn.NewBatchNorm1d(4) }, [][]int{{3, 4}}, forward},
	"BatchNorm2d": {func() nn.Module { return nn.NewBatchNorm2d(3) }, [][]int{{2, 3, 4, 4}}, forward},
	"LayerNorm":   {func() nn.Module { return nn.NewLayerNorm(3, 4) }, [][]int{{2, 3, 4}}, forward},
	"GroupNorm":   {func() nn.Module { return nn.NewGroupNorm(2, 4) }, [][]int{{2, 4, 3}}, forward},
	"PReLU":       {func() nn.Module { return nn.NewPReLU(3) }, [][]int{{2, 3, 4}}, forward},
	"Embedding": {func() nn.Module {
		return nn.NewEmbeddingWith(7, 3, nil, nn.EmbeddingOptions{Padding: []int64{0}})
	}, [][]int{{2, 3}},
		func(m nn.Module, in []*autograd.Var) []*autograd.Var {
			return []*autograd.Var{m.(*nn.Embedding).Forward(autograd.NoGrad(in[0].T().To(tensor.Int64)))}
		}},
	"Sequential": {func() nn.Module {
		return nn.NewSequential(nn.NewLinear(5, 4, nil), nn.ReLU, nn.NewLayerNorm(4),
			nn.NewSequential(nn.GELU, nn.NewLinear(4, 2, nil)))
	}, [][]int{{2, 5}}, forward},
	"LSTM": {func() nn.Module { return nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{}) }, [][]int{{5, 2, 3}}, runLSTM},
	"LSTM both ways": {func() nn.Module {
		l := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2, Bidirectional: true})
		l.BatchFirst = true
		return l
	}, [][]int{{2, 5, 3}}, runLSTM},
	"GRU": {func() nn.Module {
		return nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Layers: 2})
	}, [][]int{{5, 2, 3}}, runGRU},
	"GRU both ways": {func() nn.Module {
		return nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Bidirectional: true})
	}, [][]int{{5, 2, 3}}, runGRU},
	"MultiheadAttention": {func() nn.Module { return nn.NewMultiheadAttention(6, 2, nil) },
		[][]int{{4, 2, 6}, {5, 2, 6}}, attend},
	"MultiheadAttention batch first": {func() nn.Module {
		m := nn.NewMultiheadAttention(6, 3, nil)
		m.BatchFirst, m.InProjBias, m.OutProj.Bias = true, nil, nil
		return m
	}, [][]int{{2, 4, 6}, {2, 5, 6}}, attend},
	"TransformerEncoderLayer": {func() nn.Module { return nn.NewTransformerEncoderLayer(6, 2, 8, 0.1, nil) },
		[][]int{{4, 2, 6}}, forward},
	"TransformerEncoderLayer norm first": {func() nn.Module {
		l := nn.NewTransformerEncoderLayer(6, 2, 8, 0.1, nil)
		l.NormFirst, l.Activation, l.SelfAttn.BatchFirst = true, nn.GELU, true
		return l
	}, [][]int{{2, 4, 6}}, forward},
	"TransformerEncoder": {func() nn.Module {
		e := &nn.TransformerEncoder{Norm: nn.NewLayerNorm(4)}
		for range 2 {
			l := nn.NewTransformerEncoderLayer(4, 2, 6, 0.1, nil)
			l.SelfAttn.BatchFirst = true
			e.Layers = append(e.Layers, l)
		}
		return e
	}, [][]int{{2, 3, 4}}, forward},
}

// layersCross saves a module of each kind here, which PyTorch loads strictly, and the other way
// round. Both compute the same results. Their parameters have the same order, by which optimizers
// know them.
func layersCross(t *testing.T, k *talk) {
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.pt"), filepath.Join(dir, "theirs.pt")
	modules, inputs, saved := map[string]nn.Module{}, map[string][]*tensor.Tensor{}, map[string]any{}
	for name, c := range crossings {
		modules[name] = worn(c)
		inputs[name] = c.inputs()
		saved[name] = map[string]any{"state": nn.State(modules[name]), "inputs": inputs[name]}
	}
	if err := pt.Save(ours, saved); err != nil {
		t.Fatal(err)
	}
	if left := asked[[]string](k, "exchange", ours, theirs); len(left) > 0 {
		t.Errorf("nothing was sent of %q", left)
	}
	got, err := As[map[string]crossed](pt.Load(theirs, pt.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(crossings)) {
		cell(t, name, func(t *testing.T) { crossings[name].compare(t, modules[name], inputs[name], got[name]) })
	}
}

// These are the results of PyTorch with our state, the order of its parameters, a state of its own,
// and the results of that.
type crossed struct {
	Outputs []*tensor.Tensor          `torch:"outputs"`
	Order   []string                  `torch:"order"`
	State   map[string]*tensor.Tensor `torch:"state"`
	Own     []*tensor.Tensor          `torch:"own"`
}

func (c crossing) compare(t *testing.T, m nn.Module, in []*tensor.Tensor, theirs crossed) {
	sameOutputs(t, "to PyTorch", c.compute(m, in), theirs.Outputs)
	var order []string
	for name := range nn.Named(m) {
		order = append(order, name)
	}
	if !slices.Equal(order, theirs.Order) {
		t.Errorf("parameters are %q, and in PyTorch %q", order, theirs.Order)
	}
	fresh := c.module()
	if err := nn.Load(fresh, theirs.State); err != nil {
		t.Fatal(err)
	}
	sameOutputs(t, "from PyTorch", c.compute(fresh, in), theirs.Own)
}

// worn returns a module none of whose parameters and statistics have their first values.
func worn(c crossing) nn.Module {
	m, g := c.module(), tensor.NewGenerator(7)
	for _, p := range nn.Named(m) {
		p.T.AddInPlace(tensor.RandN(tensor.Float32, g, p.T.Shape()...).MulScalarInPlace(0.125))
	}
	switch m.(type) {
	case *nn.BatchNorm1d, *nn.BatchNorm2d:
		c.call(m, vars(c.inputs()))
	}
	return m
}

// inputs are small whole numbers, which an Embedding takes as well.
func (c crossing) inputs() (in []*tensor.Tensor) {
	for k, shape := range c.shapes {
		x := tensor.New(tensor.Float32, shape...)
		for i, d := 0, tensor.Data[float32](x); i < len(d); i++ {
			d[i] = float32((i*5 + i/3 + k) % 7)
		}
		in = append(in, x)
	}
	return in
}

func (c crossing) compute(m nn.Module, in []*tensor.Tensor) []*autograd.Var {
	nn.Eval(m)
	return c.call(m, vars(in))
}

func vars(in []*tensor.Tensor) (vs []*autograd.Var) {
	for _, x := range in {
		vs = append(vs, autograd.NoGrad(x))
	}
	return vs
}

func sameOutputs(t *testing.T, way string, got []*autograd.Var, want []*tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d outputs, not %d", way, len(got), len(want))
	}
	for i, x := range want {
		if !slices.Equal(got[i].Shape(), x.Shape()) {
			t.Fatalf("%s: output %d is of shape %v, not %v", way, i, got[i].Shape(), x.Shape())
		}
		if d := farthest(got[i].T(), x); !(d <= 2e-5) || math.IsNaN(d) {
			t.Errorf("%s: output %d is off by %v", way, i, d)
		}
	}
}
