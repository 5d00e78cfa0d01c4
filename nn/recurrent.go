package nn

import (
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/tensor"
)

// A Pass is one layer's way through a sequence in one direction. Its parameters have PyTorch's
// names with a suffix: weight_ih_l0, bias_hh_l1_reverse.
type Pass struct {
	WeightIH *autograd.Param // (gates·hidden, in)
	// (gates·hidden, states): states have as many features as hidden ones, unless there is WeightHR
	WeightHH *autograd.Param
	BiasIH   *autograd.Param // (gates·hidden), or nil, as BiasHH
	BiasHH   *autograd.Param // (gates·hidden)
	// (states, hidden) of an LSTM: its states are projected to so many features, PyTorch's
	// proj_size; or nil
	WeightHR *autograd.Param
	Suffix   string // such as _l0
}

func (p *Pass) nameSuffix() string { return p.Suffix }

// A Recurrent is what an LSTM and a GRU have in common.
type Recurrent struct {
	Mode

	// of the first layer, forwards and, where Bidirectional, backwards; of the second, and so on
	Passes []*Pass `nn:"-"`

	Hidden        int     // features of a state
	Bidirectional bool    // each layer also goes through a sequence backwards, and puts out both states
	BatchFirst    bool    // sequences are (N, L, features), not (L, N, features)
	P             float64 // the probability that an output of all layers but the last is dropped in training

	Generator *tensor.Generator `wire:"-" torch:"-"` // as that of a Dropout
}

// An LSTM is layers of long short-term memory.
type LSTM struct{ Recurrent }

// A GRU is layers of gated recurrent units.
type GRU struct{ Recurrent }

// NewLSTM returns a float32 LSTM from in features to hidden ones, initialised as PyTorch's with
// numbers from g, or from the default generator if g is nil.
func NewLSTM(in, hidden, layers int, bidirectional bool, g *tensor.Generator) *LSTM {
	return &LSTM{newRecurrent("NewLSTM", 4, in, hidden, hidden, layers, bidirectional, g)}
}

// NewProjectedLSTM returns a layer as [NewLSTM] does, whose states are projected from hidden
// features to proj, which are fewer: PyTorch's proj_size. Cells keep hidden ones.
func NewProjectedLSTM(in, hidden, proj, layers int, bidirectional bool, g *tensor.Generator) *LSTM {
	checkSizes("NewProjectedLSTM", proj)
	if proj >= hidden {
		misuse("NewProjectedLSTM from %d features to %d: they become fewer", hidden, proj)
	}
	l := &LSTM{newRecurrent("NewProjectedLSTM", 4, in, hidden, proj, layers, bidirectional, g)}
	for _, p := range l.Passes {
		p.WeightHR = uniform("weight_hr", hidden, g, proj, hidden)
	}
	return l
}

// NewGRU returns a float32 GRU from in features to hidden ones, initialised as PyTorch's with
// numbers from g, or from the default generator if g is nil.
func NewGRU(in, hidden, layers int, bidirectional bool, g *tensor.Generator) *GRU {
	return &GRU{newRecurrent("NewGRU", 3, in, hidden, hidden, layers, bidirectional, g)}
}

func newRecurrent(what string, gates, in, hidden, states, layers int, bidirectional bool,
	g *tensor.Generator) Recurrent {
	checkSizes(what, in, hidden, layers)
	r := Recurrent{Hidden: hidden, Bidirectional: bidirectional}
	for l := range layers {
		for d := range r.directions() {
			suffix := "_l" + strconv.Itoa(l)
			if d == 1 {
				suffix += "_reverse"
			}
			r.Passes = append(r.Passes, &Pass{uniform("weight_ih", hidden, g, gates*hidden, in),
				uniform("weight_hh", hidden, g, gates*hidden, states),
				uniform("bias_ih", hidden, g, gates*hidden), uniform("bias_hh", hidden, g, gates*hidden), nil, suffix})
		}
		in = states * r.directions()
	}
	return r
}

func (r *Recurrent) directions() int {
	if r.Bidirectional {
		return 2
	}
	return 1
}

// Forward returns the states of the last layer at each element of x, from first states and cells
// that are 0; see Run for the shapes.
func (l *LSTM) Forward(x *autograd.Var) *autograd.Var {
	y, _, _ := l.Run(x, nil, nil)
	return y
}

// Forward returns the states of the last layer at each element of x, from first states that are 0;
// see Run for the shapes.
func (g *GRU) Forward(x *autograd.Var) *autograd.Var {
	y, _ := g.Run(x, nil)
	return y
}

// Run takes sequences x, (L, N, in), (N, L, in) with BatchFirst or (L, in), and the first states
// and cells, (passes, N, hidden), without N if x has none, or nil for zeros. It returns the last
// layer's states at each element, hidden for each direction, and the last states and cells of all
// passes. Where states are projected, those have that many features instead of hidden ones.
func (l *LSTM) Run(x, h, c *autograd.Var) (y, lastH, lastC *autograd.Var) {
	y, last := l.run("LSTM", x, []*autograd.Var{h, c}, []int{l.Passes[0].WeightHH.T.Dim(1), l.Hidden}, lstm)
	return y, last[0], last[1]
}

func lstm(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var) {
	bias := optional(p.BiasIH)
	if bias != nil && p.BiasHH != nil {
		bias = autograd.Add(bias, p.BiasHH.Var())
	}
	r.Proj = optional(p.WeightHR)
	y, h, c := autograd.LSTM(autograd.Linear(x, p.WeightIH.Var(), bias), first[0], first[1], r)
	return y, []*autograd.Var{h, c}
}

// Run takes sequences x, (L, N, in), (N, L, in) with BatchFirst or (L, in), and the first states,
// (passes, N, hidden), without N if x has none, or nil for zeros. It returns the last layer's
// states at each element, hidden for each direction, and the last states of all passes.
func (g *GRU) Run(x, h *autograd.Var) (y, last *autograd.Var) {
	y, states := g.run("GRU", x, []*autograd.Var{h}, []int{g.Hidden}, gru)
	return y, states[0]
}

func gru(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var) {
	r.Bias = optional(p.BiasHH)
	y, h := autograd.GRU(autograd.Linear(x, p.WeightIH.Var(), optional(p.BiasIH)), first[0], r)
	return y, []*autograd.Var{h}
}

// A way takes a sequence, (L, N, in), through one pass: to what comes out at each element, (L, N,
// features), and the last states, (N, features).
type way func(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var)

// run goes through all passes, with as many features in each kind of state as sizes say.
func (r *Recurrent) run(what string, x *autograd.Var, first []*autograd.Var, sizes []int,
	through way) (y *autograd.Var, last []*autograd.Var) {
	single := len(x.Shape()) == 2
	x, first = r.batched(what, x, first, sizes)
	ends := make([][]*autograd.Var, len(first))
	for i := 0; i < len(r.Passes); i += r.directions() {
		var outs []*autograd.Var
		for d := range r.directions() {
			states := make([]*autograd.Var, len(first))
			for k := range states {
				states[k] = autograd.Select(first[k], 0, i+d)
			}
			p := r.Passes[i+d]
			out, end := through(p, x, states, autograd.Recurrence{Weight: p.WeightHH.Var(), Backwards: d == 1})
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
func (r *Recurrent) batched(what string, x *autograd.Var, first []*autograd.Var, sizes []int) (*autograd.Var,
	[]*autograd.Var) {
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
	states := make([]*autograd.Var, len(first))
	for k, s := range first {
		shape := []int{len(r.Passes), x.Shape()[1], sizes[k]}
		if s == nil {
			states[k] = autograd.Const(x.T().NewZeros(x.T().DType(), shape...))
			continue
		}
		if single && len(s.Shape()) == 2 {
			s = autograd.Unsqueeze(s, 1)
		}
		if states[k] = s; !slices.Equal(s.Shape(), shape) {
			misuse("%s with first %s of shape %v: they are %v", what, [...]string{"states", "cells"}[k],
				s.Shape(), shape)
		}
	}
	return x, states
}

func init() {
	wire.RegisterType[*LSTM]("nn.LSTM")
	wire.RegisterType[*GRU]("nn.GRU")
}
