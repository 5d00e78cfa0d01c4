package nn

import (
	"iter"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// A Pass is one layer's way through a sequence in one direction. Its parameters have PyTorch's names with a suffix: weight_ih_l0, bias_hh_l1_reverse.
type Pass struct {
	WeightIH *autograd.Param // (gates·hidden, in)
	WeightHH *autograd.Param // (gates·hidden, hidden)
	BiasIH   *autograd.Param // (gates·hidden), or nil, as BiasHH
	BiasHH   *autograd.Param // (gates·hidden)
	Suffix   string          // such as _l0
}

func (p *Pass) nameSuffix() string { return p.Suffix }

// A Recurrent is what an LSTM and a GRU have in common.
type Recurrent struct {
	Passes []*Pass `nn:"-"` // of the first layer, forwards and, where Bidirectional, backwards; of the second, and so on

	Hidden        int     // features of a state
	Bidirectional bool    // each layer also goes through a sequence backwards, and puts out both states
	BatchFirst    bool    // sequences are (N, L, features), not (L, N, features)
	P             float64 // the probability that an output of all layers but the last is dropped in training
	Off           bool    // set by Eval: drop nothing

	Generator *tensor.Generator `wire:"-" torch:"-"` // as that of a Dropout
}

// An LSTM is layers of long short-term memory.
type LSTM struct{ Recurrent }

// A GRU is layers of gated recurrent units.
type GRU struct{ Recurrent }

// NewLSTM returns a float32 LSTM from in features to hidden ones, initialised as PyTorch's with numbers from g, or from the default generator if g is nil.
func NewLSTM(in, hidden, layers int, bidirectional bool, g *tensor.Generator) *LSTM {
	return &LSTM{newRecurrent("NewLSTM", 4, in, hidden, layers, bidirectional, g)}
}

// NewGRU returns a float32 GRU from in features to hidden ones, initialised as PyTorch's with numbers from g, or from the default generator if g is nil.
func NewGRU(in, hidden, layers int, bidirectional bool, g *tensor.Generator) *GRU {
	return &GRU{newRecurrent("NewGRU", 3, in, hidden, layers, bidirectional, g)}
}

func newRecurrent(what string, gates, in, hidden, layers int, bidirectional bool, g *tensor.Generator) Recurrent {
	checkSizes(what, in, hidden, layers)
	r := Recurrent{Hidden: hidden, Bidirectional: bidirectional}
	for l := range layers {
		for d := range r.directions() {
			suffix := "_l" + strconv.Itoa(l)
			if d == 1 {
				suffix += "_reverse"
			}
			r.Passes = append(r.Passes, &Pass{uniform("weight_ih", hidden, g, gates*hidden, in), uniform("weight_hh", hidden, g, gates*hidden, hidden),
				uniform("bias_ih", hidden, g, gates*hidden), uniform("bias_hh", hidden, g, gates*hidden), suffix})
		}
		in = hidden * r.directions()
	}
	return r
}

func (r *Recurrent) directions() int {
	if r.Bidirectional {
		return 2
	}
	return 1
}

// Train switches dropping on or off.
func (r *Recurrent) Train(on bool) { r.Off = !on }

// Params returns those of all passes.
func (l *LSTM) Params() iter.Seq[*autograd.Param] { return Params(l) }

// Params returns those of all passes.
func (g *GRU) Params() iter.Seq[*autograd.Param] { return Params(g) }

// Forward is Run from states that are 0.
func (l *LSTM) Forward(x *autograd.Var) *autograd.Var {
	y, _, _ := l.Run(x, nil, nil)
	return y
}

// Forward is Run from states that are 0.
func (g *GRU) Forward(x *autograd.Var) *autograd.Var {
	y, _ := g.Run(x, nil)
	return y
}

// Run takes sequences x, (L, N, in), (N, L, in) with BatchFirst or (L, in), and the first states and cells, (passes, N, hidden), without N if x has none, or nil for zeros. It returns
// the last layer's states at each element, hidden for each direction, and the last states and cells of all passes.
func (l *LSTM) Run(x, h, c *autograd.Var) (y, lastH, lastC *autograd.Var) {
	y, last := l.run("LSTM", x, []*autograd.Var{h, c}, func(gates, x *autograd.Var, states []*autograd.Var) []*autograd.Var {
		g := autograd.Split(autograd.Add(x, gates), l.Hidden, 1)
		kept := autograd.Mul(autograd.Sigmoid(g[1]), states[1])
		c := autograd.Add(kept, autograd.Mul(autograd.Sigmoid(g[0]), autograd.Tanh(g[2])))
		return []*autograd.Var{autograd.Mul(autograd.Sigmoid(g[3]), autograd.Tanh(c)), c}
	})
	return y, last[0], last[1]
}

// Run takes sequences x, (L, N, in), (N, L, in) with BatchFirst or (L, in), and the first states, (passes, N, hidden), without N if x has none, or nil for zeros. It returns the
// last layer's states at each element, hidden for each direction, and the last states of all passes.
func (g *GRU) Run(x, h *autograd.Var) (y, last *autograd.Var) {
	y, states := g.run("GRU", x, []*autograd.Var{h}, func(gates, x *autograd.Var, states []*autograd.Var) []*autograd.Var {
		from, own := autograd.Split(x, g.Hidden, 1), autograd.Split(gates, g.Hidden, 1)
		reset, update := autograd.Sigmoid(autograd.Add(from[0], own[0])), autograd.Sigmoid(autograd.Add(from[1], own[1]))
		fresh := autograd.Tanh(autograd.Add(from[2], autograd.Mul(reset, own[2])))
		return []*autograd.Var{autograd.Add(fresh, autograd.Mul(update, autograd.Sub(states[0], fresh)))}
	})
	return y, states[0]
}

// A step makes new states of those before, of what the first of them gives to the gates, and of what an element does.
type step func(gates, x *autograd.Var, states []*autograd.Var) []*autograd.Var

func (r *Recurrent) run(what string, x *autograd.Var, first []*autograd.Var, f step) (y *autograd.Var, last []*autograd.Var) {
	single := len(x.Shape()) == 2
	x, first = r.batched(what, x, first)
	ends := make([][]*autograd.Var, len(first))
	for i := 0; i < len(r.Passes); i += r.directions() {
		var outs []*autograd.Var
		for d := range r.directions() {
			states := make([]*autograd.Var, len(first))
			for k := range states {
				states[k] = autograd.Select(first[k], 0, i+d)
			}
			out, end := r.Passes[i+d].run(x, states, d == 1, f)
			outs = append(outs, out)
			for k := range end {
				ends[k] = append(ends[k], end[k])
			}
		}
		if x = outs[0]; len(outs) > 1 {
			x = autograd.Cat(2, outs...)
		}
		if i+r.directions() < len(r.Passes) {
			x = autograd.Dropout(x, r.P, r.Generator, !r.Off)
		}
	}
	for k := range ends {
		end := autograd.Stack(0, ends[k]...)
		if single {
			end = autograd.Squeeze(end, 1)
		}
		last = append(last, end)
	}
	switch {
	case single:
		x = autograd.Squeeze(x, 1)
	case r.BatchFirst:
		x = autograd.Transpose(x, 0, 1)
	}
	return x, last
}

// batched returns x as (L, N, in), and all first states.
func (r *Recurrent) batched(what string, x *autograd.Var, first []*autograd.Var) (*autograd.Var, []*autograd.Var) {
	single := len(x.Shape()) == 2
	switch {
	case single:
		x = autograd.Unsqueeze(x, 1)
	case len(x.Shape()) == 3 && r.BatchFirst:
		x = autograd.Transpose(x, 0, 1)
	}
	in := r.Passes[0].WeightIH.T.Dim(1)
	if s := x.Shape(); len(s) != 3 || s[2] != in || s[0] == 0 {
		misuse("%s of shape %v: it takes sequences of at least one element of %d features, with or without a batch", what, s, in)
	}
	shape := []int{len(r.Passes), x.Shape()[1], r.Hidden}
	states := make([]*autograd.Var, len(first))
	for k, s := range first {
		if s == nil {
			states[k] = autograd.Const(x.T().NewZeros(x.T().DType(), shape...))
			continue
		}
		if single && len(s.Shape()) == 2 {
			s = autograd.Unsqueeze(s, 1)
		}
		if states[k] = s; !slices.Equal(s.Shape(), shape) {
			misuse("%s with first states of shape %v: they are %v", what, s.Shape(), shape)
		}
	}
	return x, states
}

// run goes through a sequence, (L, N, in), and returns the first state at each element, (L, N, hidden), and the last ones.
func (p *Pass) run(x *autograd.Var, states []*autograd.Var, backwards bool, f step) (y *autograd.Var, last []*autograd.Var) {
	n := x.Shape()[0]
	given := autograd.Linear(x, p.WeightIH.Var(), optional(p.BiasIH)) // of all elements at once
	w, b := p.WeightHH.Var(), optional(p.BiasHH)
	outs := make([]*autograd.Var, n)
	for i := range n {
		if backwards {
			i = n - 1 - i
		}
		states = f(autograd.Linear(states[0], w, b), autograd.Select(given, 0, i), states)
		outs[i] = states[0]
	}
	return autograd.Stack(0, outs...), states
}

func init() {
	wire.RegisterType[*LSTM]("nn.LSTM")
	wire.RegisterType[*GRU]("nn.GRU")
}
