package nn_test

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A recordedModule is what testdata/modules.py has written of one.
type recordedModule struct {
	Module         string
	Shapes         [][]int
	Y, DX, Eval    []recordedTensor
	Grads, Buffers map[string]recordedTensor
}

type recordedTensor struct {
	Shape []int
	V     []float64
}

// A moduleCase is the module of a recorded one, and what is done with inputs.
type moduleCase struct {
	make    func() nn.Module
	forward func(m nn.Module, in []*autograd.Var) []*autograd.Var
}

// layer is the case of a Layer.
func layer(make func() nn.Layer) moduleCase {
	return moduleCase{func() nn.Module { return make() }, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		return just(m.(nn.Layer).Forward(in[0]))
	}}
}

var moduleCases = map[string]moduleCase{
	"LayerNorm without bias": layer(func() nn.Layer {
		l := nn.NewLayerNorm(5, 4)
		l.Bias = nil
		return l
	}),
	"LayerNorm without parameters": layer(func() nn.Layer { return &nn.LayerNorm{Shape: []int{4}, Eps: 1e-5} }),
	"GroupNorm":                    layer(func() nn.Layer { return nn.NewGroupNorm(3, 6) }),
	"GroupNorm of features": layer(func() nn.Layer {
		g := nn.NewGroupNorm(2, 6)
		g.Eps = 1e-3
		return g
	}),
	"InstanceNorm2d": layer(func() nn.Layer { return nn.NewGroupNorm(3, 3) }),
	"BatchNorm1d":    layer(func() nn.Layer { return nn.NewBatchNorm1d(5) }),
	"BatchNorm1d of sequences": layer(func() nn.Layer {
		b := nn.NewBatchNorm1d(3)
		b.Momentum = 0.3
		return b
	}),
	"BatchNorm1d without statistics": layer(func() nn.Layer { return &nn.BatchNorm1d{Eps: 1e-5} }),
	"PReLU":                          layer(func() nn.Layer { return nn.NewPReLU(3) }),
	"GELU tanh":                      layer(func() nn.Layer { return nn.GELUTanh }),

	"Conv2d in groups": layer(func() nn.Layer {
		c := nn.NewConv2d(2, 6, 3, nil)
		c.Groups = 2
		c.Padding = [2]int{1, 1}
		return c
	}),
	"Conv2d by channels": layer(func() nn.Layer {
		c := nn.NewConv2d(1, 6, 3, nil)
		c.Groups = 3
		c.Stride, c.Bias = [2]int{2, 2}, nil
		return c
	}),
	"Conv2d dilated": layer(func() nn.Layer {
		c := wide(2, 3, 3, 2)
		c.Dilation, c.Padding, c.Stride = [2]int{2, 3}, [2]int{2, 1}, [2]int{1, 2}
		return c
	}),
	"Conv2d reflect":   layer(func() nn.Layer { return around(autograd.PadReflect) }),
	"Conv2d replicate": layer(func() nn.Layer { return around(autograd.PadReplicate) }),
	"Conv2d circular":  layer(func() nn.Layer { return around(autograd.PadCircular) }),
	"Conv2d same": layer(func() nn.Layer {
		c := wide(2, 3, 4, 3)
		c.Same, c.Dilation = true, [2]int{1, 2}
		return c
	}),
	"Conv2d same circular": layer(func() nn.Layer {
		c := wide(2, 3, 4, 3)
		c.Same, c.Mode = true, autograd.PadCircular
		return c
	}),
	"Conv1d": layer(func() nn.Layer {
		c := nn.NewConv1d(2, 3, 3, nil)
		c.Stride, c.Padding = 2, 1
		return c
	}),
	"Conv1d same dilated in groups": layer(func() nn.Layer {
		c := nn.NewConv1d(1, 4, 4, nil)
		c.Groups = 2
		c.Same, c.Dilation, c.Mode = true, 2, autograd.PadReflect
		return c
	}),

	"MultiheadAttention": {func() nn.Module { return nn.NewMultiheadAttention(6, 2, nil) },
		func(m nn.Module, in []*autograd.Var) []*autograd.Var {
			y, w := m.(*nn.MultiheadAttention).AttendWeights(in[0], in[1], in[2], nn.AttentionMask{})
			return []*autograd.Var{y, w}
		}},
	"MultiheadAttention masked": {func() nn.Module {
		m := nn.NewMultiheadAttention(6, 3, nil)
		m.BatchFirst, m.InProjBias, m.OutProj.Bias = true, nil, nil
		return m
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		return just(m.(*nn.MultiheadAttention).Attend(in[0], in[0], in[0],
			nn.AttentionMask{Padding: hidden(), Causal: true}))
	}},
	"MultiheadAttention of one": {func() nn.Module { return nn.NewMultiheadAttention(6, 2, nil) },
		func(m nn.Module, in []*autograd.Var) []*autograd.Var {
			y, w := m.(*nn.MultiheadAttention).AttendWeights(in[0], in[0], in[0], nn.AttentionMask{})
			return []*autograd.Var{y, w}
		}},
	"MultiheadAttention of other features": {func() nn.Module {
		return nn.NewMultiheadAttentionWith(6, 2, nil, nn.AttentionOptions{KDim: 5, VDim: 3})
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		y, w := m.(*nn.MultiheadAttention).AttendWeights(in[0], in[1], in[2], nn.AttentionMask{})
		return []*autograd.Var{y, w}
	}},
	"MultiheadAttention of other values": {func() nn.Module {
		m := nn.NewMultiheadAttentionWith(6, 2, nil, nn.AttentionOptions{KDim: 6, VDim: 4})
		m.BatchFirst, m.InProjBias, m.OutProj.Bias = true, nil, nil
		return m
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		return just(m.(*nn.MultiheadAttention).Attend(in[0], in[1], in[2], nn.AttentionMask{Padding: hidden()}))
	}},
	"MultiheadAttention to more keys": {func() nn.Module {
		m := nn.NewMultiheadAttention(6, 3, nil)
		m.ZeroAttn = true
		m.AddBiasKV(nil)
		return m
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		y, w := m.(*nn.MultiheadAttention).AttendWeights(in[0], in[0], in[0],
			nn.AttentionMask{Padding: hidden(), Causal: true})
		return []*autograd.Var{y, w}
	}},
	"MultiheadAttention to zeros of one": {func() nn.Module {
		m := nn.NewMultiheadAttention(6, 2, nil)
		m.ZeroAttn = true
		return m
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		return just(m.(*nn.MultiheadAttention).Attend(in[0], in[0], in[0], nn.AttentionMask{}))
	}},
	"TransformerEncoderLayer norm last":  encoderLayer(false),
	"TransformerEncoderLayer norm first": encoderLayer(true),
	"TransformerEncoder": layer(func() nn.Layer {
		e := &nn.TransformerEncoder{Norm: nn.NewLayerNorm(4)}
		for range 2 {
			l := nn.NewTransformerEncoderLayer(4, 2, 6, 0, nil)
			l.SelfAttn.BatchFirst = true
			e.Layers = append(e.Layers, l)
		}
		return e
	}),

	"LSTM": lstm(func() *nn.LSTM { return nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{}) }),
	"GRU":  gru(func() *nn.GRU { return nn.NewGRU(3, 4, nil, nn.RecurrentOptions{}) }),
	"LSTM of two layers from states": lstm(func() *nn.LSTM {
		return nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2})
	}),
	"GRU of two layers from states": gru(func() *nn.GRU {
		return nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Layers: 2})
	}),
	"LSTM both ways": lstm(func() *nn.LSTM {
		l := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2, Bidirectional: true})
		l.BatchFirst = true
		return l
	}),
	"GRU both ways": gru(func() *nn.GRU {
		g := nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Layers: 2, Bidirectional: true})
		g.BatchFirst = true
		return g
	}),
	"LSTM projected": lstm(func() *nn.LSTM {
		return nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2, Bidirectional: true, Projection: 2})
	}),
	"LSTM projected from states": lstm(func() *nn.LSTM {
		l := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Projection: 2})
		l.BatchFirst = true
		return l
	}),
	"LSTM without biases of one": lstm(func() *nn.LSTM {
		l := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{})
		l.Passes[0].BiasIH, l.Passes[0].BiasHH = nil, nil
		return l
	}),
	"GRU without biases of one": gru(func() *nn.GRU {
		g := nn.NewGRU(3, 4, nil, nn.RecurrentOptions{})
		g.Passes[0].BiasIH, g.Passes[0].BiasHH = nil, nil
		return g
	}),
}

func lstm(make func() *nn.LSTM) moduleCase {
	return moduleCase{func() nn.Module { return make() }, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		in = append(in, nil, nil)
		y, h, c := m.(*nn.LSTM).Run(in[0], in[1], in[2])
		return []*autograd.Var{y, h, c}
	}}
}

func gru(make func() *nn.GRU) moduleCase {
	return moduleCase{func() nn.Module { return make() }, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		in = append(in, nil)
		y, h := m.(*nn.GRU).Run(in[0], in[1])
		return []*autograd.Var{y, h}
	}}
}

// hidden is the padding of modules.py.
func hidden() *tensor.Tensor {
	return tensor.FromSlice([]bool{false, false, false, true, false, true, false, false}, 2, 4)
}

// encoderLayer sees nothing of the future, by a mask where the norm comes first.
func encoderLayer(first bool) moduleCase {
	return moduleCase{func() nn.Module {
		l := nn.NewTransformerEncoderLayer(6, 2, 8, 0, nil)
		l.NormFirst, l.SelfAttn.BatchFirst = first, first
		if first {
			l.Activation = nn.GELU
		}
		return l
	}, func(m nn.Module, in []*autograd.Var) []*autograd.Var {
		mask := nn.AttentionMask{Causal: true}
		if first {
			future := tensor.New(tensor.Bool, 4, 4)
			for i := range 16 {
				tensor.SetAt(future, i%4 > i/4, i/4, i%4)
			}
			mask = nn.AttentionMask{Mask: future}
		}
		return just(m.(*nn.TransformerEncoderLayer).Encode(in[0], mask))
	}}
}

// wide returns a layer whose filters are no squares.
func wide(in, out, high, wide int) *nn.Conv2d {
	c := nn.NewConv2d(in, out, 1, nil)
	c.Weight.T = tensor.New(tensor.Float32, out, in, high, wide)
	return c
}

func around(mode autograd.PadMode) *nn.Conv2d {
	c := nn.NewConv2d(2, 3, 3, nil)
	c.Padding, c.Mode = [2]int{2, 1}, mode
	return c
}

func recordedModules(t *testing.T) []recordedModule {
	f, err := os.Open("testdata/modules.json.gz")
	testutil.NoError(t, err)
	defer f.Close()
	text, err := gzip.NewReader(f)
	testutil.NoError(t, err)
	var all struct {
		Torch   string
		Modules []recordedModule
	}
	testutil.NoError(t, json.NewDecoder(text).Decode(&all))
	if len(all.Modules) != len(moduleCases) || all.Torch == "" {
		t.Errorf("%d modules are recorded, %d are known", len(all.Modules), len(moduleCases))
	}
	return all.Modules
}

// TestRegression_S3_4_ModulesLoadFromTorchAndComputeWhatItDoes also saves the state and loads it
// again, in both formats.
func TestRegression_S3_4_ModulesLoadFromTorchAndComputeWhatItDoes(t *testing.T) {
	for _, file := range []string{"modules.pt", "modules.safetensors"} {
		states, err := nn.ReadState("testdata/" + file)
		testutil.NoError(t, err)
		for _, r := range recordedModules(t) {
			t.Run(file+"/"+r.Module, func(t *testing.T) {
				c, own := moduleCases[r.Module], nn.Under(states, r.Module)
				if c.make == nil {
					t.Fatal("not known")
				}
				first := c.make()
				testutil.NoError(t, nn.Load(first, own))
				path := filepath.Join(t.TempDir(), file)
				testutil.NoError(t, nn.SaveFile(first, path))
				m := c.make()
				testutil.NoError(t, nn.LoadFile(m, path, nil))
				r.check(t, c, m)
			})
		}
	}
}

func (r recordedModule) check(t *testing.T, c moduleCase, m nn.Module) {
	var constants, in []*autograd.Var
	var params []*autograd.Param
	for k, shape := range r.Shapes {
		constants = append(constants, autograd.Const(values(11+k, 1.5, shape...)))
		params = append(params, autograd.NewParam("x", values(11+k, 1.5, shape...)))
		in = append(in, params[k].Var())
	}
	c.forward(m, constants)
	out := c.forward(m, in)
	r.alike(t, "output", out, r.Y)
	var loss *autograd.Var
	for k, y := range out {
		if !y.RequiresGrad() {
			continue
		}
		part := autograd.Sum(autograd.Mul(y, autograd.Const(values(77+k, 1, y.Shape()...))))
		if loss == nil {
			loss = part
		} else {
			loss = autograd.Add(loss, part)
		}
	}
	loss.Backward()
	for k, p := range params {
		r.DX[k].check(t, "gradient of an input", p.Grad)
	}
	names := map[string]bool{}
	for name, p := range nn.Named(m) {
		names[name] = true
		r.Grads[name].check(t, "gradient of "+name, p.Grad)
	}
	for name, b := range nn.Buffers(m) {
		names[name] = true
		r.Buffers[name].check(t, name, b)
	}
	for name := range maps.All(r.Grads) {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
	nn.Eval(m)
	for k := range constants {
		constants[k] = autograd.NoGrad(constants[k].T())
	}
	r.alike(t, "output in eval mode", c.forward(m, constants), r.Eval)
}

func (r recordedModule) alike(t *testing.T, what string, got []*autograd.Var, want []recordedTensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for i := range got {
		want[i].check(t, what, got[i].T())
	}
}

// check compares to a few roundings of what is largest.
func (r recordedTensor) check(t *testing.T, what string, got *tensor.Tensor) {
	t.Helper()
	if got == nil || !slices.Equal(got.Shape(), r.Shape) {
		t.Errorf("%s is %v, want one of shape %v", what, got, r.Shape)
		return
	}
	largest := 1.0
	for _, v := range r.V {
		largest = max(largest, math.Abs(v))
	}
	for i, v := range tensor.Data[float64](got.To(tensor.Float64).Contiguous()) {
		if !(math.Abs(v-r.V[i]) <= 4e-6*largest) {
			t.Errorf("%s: element %d is %v, want %v", what, i, v, r.V[i])
			return
		}
	}
}
