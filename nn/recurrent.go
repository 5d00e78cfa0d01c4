package nn

import (
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Pass has the parameters of one layer in one direction. Their names are PyTorch's with a suffix:
// weight_ih_l0, bias_hh_l1_reverse.
type Pass struct {
	WeightIH *autograd.Param // (gates·hidden, in)
	// (gates·hidden, states), where states is hidden, or fewer with WeightHR
	WeightHH *autograd.Param
	BiasIH   *autograd.Param // (gates·hidden), or nil, as BiasHH
	BiasHH   *autograd.Param // (gates·hidden)
	// (states, hidden) of a projected LSTM, where states is PyTorch's proj_size; or nil
	WeightHR *autograd.Param
	Suffix   string // such as _l0
}

func (p *Pass) nameSuffix() string { return p.Suffix }

// A Recurrent has the fields that an LSTM and a GRU share.
type Recurrent struct {
	Mode

	// the passes of the first layer, forwards and (if Bidirectional) backwards, then those of the
	// second layer and so on
	Passes []*Pass `nn:"-"`

	Hidden        int     // features of a state
	Bidirectional bool    // each layer also reads a sequence backwards, and returns both states
	BatchFirst    bool    // sequences are (N, L, features), not (L, N, features)
	P             float64 // probability that an output of a layer but the last is dropped in training

	Generator *tensor.Generator `wire:"-" torch:"-"` // as that of a Dropout
}

// An LSTM has layers of long short-term memory (Hochreiter and Schmidhuber, 1997).
type LSTM struct{ Recurrent }

// A GRU has layers of gated recurrent units (Cho and others, 2014).
type GRU struct{ Recurrent }

// NewLSTM returns a Float32 LSTM of several layers from in to hidden features. It is initialised as
// PyTorch's, with numbers from g, or from the default generator if g is nil.
func NewLSTM(in, hidden, layers int, bidirectional bool, g *tensor.Generator) *LSTM {
	return &LSTM{newRecurrent("NewLSTM", 4, in, hidden, hidden, layers, bidirectional, g)}
}

// NewProjectedLSTM returns an LSTM whose states are projected from hidden to proj features, which
// are fewer: PyTorch's proj_size. Its cells have hidden features. The other arguments are those of
// NewLSTM.
func NewProjectedLSTM(in, hidden, proj, layers int, bidirectional bool, g *tensor.Generator) *LSTM {
	checkSizes("NewProjectedLSTM", proj)
	if proj >= hidden {
		misuse(tensor.ErrArgument, "NewProjectedLSTM from %d features to %d: they become fewer", hidden, proj)
	}
	l := &LSTM{newRecurrent("NewProjectedLSTM", 4, in, hidden, proj, layers, bidirectional, g)}
	for _, p := range l.Passes {
		p.WeightHR = uniform("weight_hr", hidden, g, proj, hidden)
	}
	return l
}

// NewGRU returns a Float32 GRU of several layers from in to hidden features. It is initialised as
// PyTorch's, with numbers from g, or from the default generator if g is nil.
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

// Forward returns the last layer's states after each element of x, beginning with states and cells
// of zeros. The shapes are those of Run.
func (l *LSTM) Forward(x *autograd.Var) *autograd.Var {
	y, _, _ := l.Run(x, nil, nil)
	return y
}

// Forward returns the last layer's states after each element of x, beginning with states of zeros.
// The shapes are those of Run.
func (g *GRU) Forward(x *autograd.Var) *autograd.Var {
	y, _ := g.Run(x, nil)
	return y
}

// Run takes sequences x and the first states h and cells c. x is (L, N, in), or (N, L, in) with
// BatchFirst, or (L, in) without a batch. h and c are (passes, N, hidden), or (passes, hidden)
// without a batch, or nil for zeros. Run returns the last layer's states after each element, (L, N,
// directions·hidden) in the form of x, and the last states and cells of all passes, in the form of
// h and c. In a projected LSTM states have proj features instead of hidden.
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

// Run takes sequences x and the first states h. x is (L, N, in), or (N, L, in) with BatchFirst, or
// (L, in) without a batch. h is (passes, N, hidden), or (passes, hidden) without a batch, or nil
// for zeros. Run returns the last layer's states after each element, (L, N, directions·hidden) in
// the form of x, and the last states of all passes, in the form of h.
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
		misuse(tensor.ErrShape, "%s of shape %v: it takes sequences of at least one element of %d features, with or without a batch", what, s, in)
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
			misuse(tensor.ErrShape, "%s with first %s of shape %v: they are %v", what, [...]string{"states", "cells"}[k],
				s.Shape(), shape)
		}
	}
	return x, states
}

func init() {
	codec.RegisterType[*LSTM]("nn.LSTM")
	codec.RegisterType[*GRU]("nn.GRU")
}
