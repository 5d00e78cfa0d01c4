package nn_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

func TestRecurrent_SaysWhatIsWrongWithItsInputs(t *testing.T) {
	input := func(shape ...int) *autograd.Var { return autograd.Const(tensor.New(tensor.Float32, shape...)) }
	lstm, gru := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2}),
		nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Bidirectional: true})
	projected := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Projection: 2})
	for want, f := range map[string]func(){
		"LSTM: got shape [5 2 4], want sequences of at least 1 element with 3 features": func() {
			lstm.Forward(input(5, 2, 4))
		},
		"GRU: got shape [0 2 3], want sequences of at least 1 element": func() {
			gru.Forward(input(0, 2, 3))
		},
		"GRU: got shape [3]": func() { gru.Forward(input(3)) },
		"LSTM: got initial states of shape [1 2 4], want [2 2 4]": func() {
			lstm.Run(input(5, 2, 3), input(1, 2, 4), nil)
		},
		"LSTM: got initial cells of shape [2 2 3], want [2 2 4]": func() {
			lstm.Run(input(5, 2, 3), nil, input(2, 2, 3))
		},
		"GRU: got initial states of shape [2 4], want [2 2 4]": func() { gru.Run(input(5, 2, 3), input(2, 4)) },
		"LSTM: got initial states of shape [1 2 4], want [1 2 2]": func() {
			projected.Run(input(5, 2, 3), input(1, 2, 4), nil)
		},
		"NewLSTM: got Projection 4, want 0 to 3": func() {
			nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Projection: 4})
		},
		"NewGRU: got sizes [3 0 1], want at least 1": func() { nn.NewGRU(3, 0, nil, nn.RecurrentOptions{}) },
		"NewLSTM: got Projection -1, want 0 to 3": func() {
			nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Projection: -1})
		},
		"NewGRU: got Projection 2, want 0 to 0": func() {
			nn.NewGRU(3, 4, nil, nn.RecurrentOptions{Projection: 2})
		},
		"NewLSTM: got sizes [3 4 -1], want at least 1": func() {
			nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: -1})
		},
	} {
		mustPanic(t, want, f)
	}
}

// What is dropped between layers is another thing each time, the last layer's output is whole, and
// nothing is dropped in eval.
func TestRecurrent_DropsBetweenLayersAlone(t *testing.T) {
	x := autograd.Const(tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 6, 3, 5))
	for layers := 1; layers <= 2; layers++ {
		g := nn.NewGRU(5, 8, tensor.NewGenerator(2), nn.RecurrentOptions{Layers: layers})
		whole := g.Forward(x).T()
		g.P, g.Generator = 0.5, tensor.NewGenerator(3)
		first, second := g.Forward(x).T(), g.Forward(x).T()
		if same := tensor.Equal(first, second); same != (layers == 1) {
			t.Errorf("%d layers: dropping twice is the same is %t", layers, same)
		}
		if tensor.Any(tensor.Eq(first, first.Number(0))).Item() != 0 {
			t.Errorf("%d layers: an output was dropped", layers)
		}
		nn.Eval(g)
		if !tensor.Equal(g.Forward(x).T(), whole) {
			t.Errorf("%d layers: something is dropped in eval", layers)
		}
	}
}

// A batch is what its examples are, however it lies in memory and whichever dimension comes first.
func TestRecurrent_TreatsExamplesAlike(t *testing.T) {
	lstm := nn.NewLSTM(3, 4, tensor.NewGenerator(1), nn.RecurrentOptions{Layers: 2, Bidirectional: true})
	x := tensor.RandN(tensor.Float32, tensor.NewGenerator(2), 5, 2, 3)
	y, h, c := lstm.Run(autograd.Const(x), nil, nil)
	for n := range 2 {
		one, oneH, oneC := lstm.Run(autograd.Const(x.Select(1, n)), nil, nil)
		for i, pair := range [][2]*tensor.Tensor{{one.T(), y.T()}, {oneH.T(), h.T()}, {oneC.T(), c.T()}} {
			if want := pair[1].Select(1, n); !tensor.AllClose(pair[0], want, 1e-5, 1e-6) {
				t.Errorf("example %d, output %d: %v, want %v", n, i, pair[0], want)
			}
		}
	}
	lstm.BatchFirst = true
	first, _, _ := lstm.Run(autograd.Const(x.Transpose(0, 1)), nil, nil)
	if !tensor.AllClose(first.T(), y.T().Transpose(0, 1), 1e-5, 1e-6) {
		t.Errorf("%v, want %v", first.T(), y.T())
	}
}

func TestMultiheadAttention_SaysWhatIsWrongWithItsInputs(t *testing.T) {
	input := func(shape ...int) *autograd.Var { return autograd.Const(tensor.New(tensor.Float32, shape...)) }
	m, other := nn.NewMultiheadAttention(6, 2, nil),
		nn.NewMultiheadAttentionWith(6, 2, nil, nn.AttentionOptions{KDim: 5, VDim: 3})
	for want, f := range map[string]func(){
		"sequences of 6, 6 and 6 features, with or without a batch": func() { m.Forward(input(4, 2, 5)) },
		"queries [4 2 6], keys [4 6] and values [4 6]": func() {
			m.Attend(input(4, 2, 6), input(4, 6), input(4, 6), nn.AttentionMask{})
		},
		"sequences of 6, 5 and 3 features": func() { other.Forward(input(4, 2, 6)) },
		"keys [5 2 5] and values [4 2 3], want one value for each key": func() {
			other.Attend(input(4, 2, 6), input(5, 2, 5), input(4, 2, 3), nn.AttentionMask{})
		},
		"queries [4 2 6] and keys [5 3 6] differ in the batch dimension, 1": func() {
			m.Attend(input(4, 2, 6), input(5, 3, 6), input(5, 3, 6), nn.AttentionMask{})
		},
		"got mask shape [4 5], want [4 4] or [4 4 4]": func() {
			m.Attend(input(4, 2, 6), input(4, 2, 6), input(4, 2, 6),
				nn.AttentionMask{Mask: tensor.New(tensor.Bool, 4, 5)})
		},
		"got padding shape [4 2], want [2 4]": func() {
			m.Attend(input(4, 2, 6), input(4, 2, 6), input(4, 2, 6),
				nn.AttentionMask{Padding: tensor.New(tensor.Bool, 4, 2)})
		},
		"NewMultiheadAttentionWith: got sizes [6 2 -1 3]": func() {
			nn.NewMultiheadAttentionWith(6, 2, nil, nn.AttentionOptions{KDim: -1, VDim: 3})
		},
		"NewMultiheadAttention: 6 features are not divisible by 4": func() { nn.NewMultiheadAttention(6, 4, nil) },
	} {
		mustPanic(t, want, f)
	}
}

// All queries see the keys that are added, also those that see no other.
func TestMultiheadAttention_ShowsAddedKeysToAll(t *testing.T) {
	x := tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 4, 2, 6)
	for name, mask := range map[string]nn.AttentionMask{
		"causal":  {Causal: true},
		"padding": {Padding: tensor.Ones(tensor.Bool, 2, 4)},
	} {
		m := nn.NewMultiheadAttention(6, 2, tensor.NewGenerator(2))
		m.ZeroAttn = true
		m.AddBiasKV(tensor.NewGenerator(3))
		_, w := m.AttendWeights(autograd.Const(x), autograd.Const(x), autograd.Const(x), mask)
		for _, added := range []int{4, 5} {
			if least := tensor.Amin(w.T().Select(2, added)).Item(); !(least > 0) {
				t.Errorf("%s: a query gives %v to key %d, which was added", name, least, added)
			}
		}
		if sums := tensor.Sum(w.T(), 2); !tensor.AllClose(sums, tensor.Ones(tensor.Float32, 2, 4), 1e-5, 1e-5) {
			t.Errorf("%s: weights add up to %v", name, sums)
		}
		if mask.Causal && tensor.At[float32](w.T(), 0, 1, 2) != 0 {
			t.Errorf("a query sees the future")
		}
	}
}
