package nn

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Pass holds the parameters of one layer in one direction. They have PyTorch's names with Suffix
// appended: weight_ih_l0, bias_hh_l1_reverse.
type Pass struct {
	WeightIH *autograd.Param // (gates·hidden, in)
	// (gates·hidden, states), where states is hidden, or PyTorch's proj_size with WeightHR
	WeightHH *autograd.Param
	BiasIH   *autograd.Param // (gates·hidden), or nil, like BiasHH
	BiasHH   *autograd.Param // (gates·hidden)
	// (states, hidden), the projection of a projected LSTM, where states is PyTorch's proj_size; or
	// nil
	WeightHR *autograd.Param
	Suffix   string // _l0, for example
}

func (p *Pass) nameSuffix() string { return p.Suffix }

// Recurrent holds the fields that [LSTM] and [GRU] share.
type Recurrent struct {
	Mode

	// Passes has the passes of the first layer, forward and, if Bidirectional, backward. The passes
	// of the second layer follow, and so on.
	Passes []*Pass `nn:"-"`

	Hidden        int     // features of a state; for a projected LSTM features of a cell
	Bidirectional bool    // each layer also runs backwards, and its outputs are concatenated
	BatchFirst    bool    // sequences are (N, L, features), instead of (L, N, features)
	P             float64 // dropout probability of the outputs of each layer except the last

	Generator *tensor.Generator `wire:"-" torch:"-"` // as [Dropout.Generator]
}

// LSTM is a stack of long short-term memory layers (Hochreiter and Schmidhuber, 1997).
type LSTM struct{ Recurrent }

// GRU is a stack of gated recurrent unit layers. See Cho et al., 2014,
// https://arxiv.org/abs/1406.1078.
type GRU struct{ Recurrent }

// RecurrentOptions configure [NewLSTM] and [NewGRU]. The zero value means one layer that runs
// forward. Other properties, such as BatchFirst, are fields of [Recurrent] that may be set
// afterwards.
type RecurrentOptions struct {
	// Layers is the number of layers. The default is 1.
	Layers int

	// Bidirectional makes each layer run backwards as well, and concatenates both outputs.
	Bidirectional bool

	// Projection is PyTorch's proj_size: the states of an LSTM are projected from hidden to this
	// number of features, which must be less than hidden. Its cells have hidden features. The
	// default, 0, means no projection. It must be 0 for a GRU.
	Projection int
}

// NewLSTM returns a Float32 LSTM from in to hidden features. Parameters are initialised as in
// PyTorch, with random numbers from g, or from the default generator if g is nil. NewLSTM panics
// with an error that wraps [tensor.ErrArgument] if a size is less than 1 or an option is out of
// range.
func NewLSTM(in, hidden int, g *tensor.Generator, opts RecurrentOptions) *LSTM {
	l := &LSTM{newRecurrent("NewLSTM", 4, in, hidden, hidden-1, g, opts)}
	if opts.Projection > 0 {
		for _, p := range l.Passes {
			p.WeightHR = uniformParam("weight_hr", hidden, g, opts.Projection, hidden)
		}
	}
	return l
}

// NewGRU returns a Float32 GRU from in to hidden features. Parameters are initialised as in
// PyTorch, with random numbers from g, or from the default generator if g is nil. NewGRU panics
// with an error that wraps [tensor.ErrArgument] if a size is less than 1 or an option is out of
// range.
func NewGRU(in, hidden int, g *tensor.Generator, opts RecurrentOptions) *GRU {
	return &GRU{newRecurrent("NewGRU", 3, in, hidden, 0, g, opts)}
}

// newRecurrent returns a stack of layers with the given number of gates. maxProjection is the
// greatest Projection that is allowed. newRecurrent panics with [tensor.ErrArgument] if a size or
// an option is out of range.
func newRecurrent(what string, gates, in, hidden, maxProjection int, g *tensor.Generator,
	opts RecurrentOptions) Recurrent {
	layers := cmp.Or(opts.Layers, 1)
	checkSizes(what, in, hidden, layers)
	if p := opts.Projection; p < 0 || p > maxProjection {
		misuse(tensor.ErrArgument, "%s: got Projection %d, want 0 to %d", what, p, maxProjection)
	}
	states := cmp.Or(opts.Projection, hidden)
	r := Recurrent{Hidden: hidden, Bidirectional: opts.Bidirectional}
	for l := range layers {
		for d := range r.directionCount() {
			suffix := "_l" + strconv.Itoa(l)
			if d == 1 {
				suffix += "_reverse"
			}
			r.Passes = append(r.Passes, &Pass{uniformParam("weight_ih", hidden, g, gates*hidden, in),
				uniformParam("weight_hh", hidden, g, gates*hidden, states),
				uniformParam("bias_ih", hidden, g, gates*hidden), uniformParam("bias_hh", hidden, g, gates*hidden),
				nil, suffix})
		}
		in = states * r.directionCount()
	}
	return r
}

func (r *Recurrent) directionCount() int {
	if r.Bidirectional {
		return 2
	}
	return 1
}

// Forward returns the last layer's states after each element of x. The initial states and cells are
// zeros. The shapes are as for [LSTM.Run].
func (l *LSTM) Forward(x *autograd.Var) *autograd.Var {
	y, _, _ := l.Run(x, nil, nil)
	return y
}

// Forward returns the last layer's states after each element of x. The initial states are zeros.
// The shapes are as for [GRU.Run].
func (g *GRU) Forward(x *autograd.Var) *autograd.Var {
	y, _ := g.Run(x, nil)
	return y
}

// Run computes the LSTM for sequences x with initial states h and cells c.
//
// x must be (L, N, in), or (N, L, in) with BatchFirst, or (L, in) if unbatched, with L at least 1.
// h and c must be (passes, N, hidden), or (passes, hidden) if unbatched; nil means zeros. Run
// returns the last layer's states after each element, (L, N, directions·hidden) in the layout of x,
// and the final states and cells of all passes, in the layout of h and c. In a projected LSTM
// states have proj features instead of hidden. Run panics with an error that wraps
// [tensor.ErrShape] if a shape does not match.
func (l *LSTM) Run(x, h, c *autograd.Var) (y, lastH, lastC *autograd.Var) {
	y, last := l.runLayers("LSTM", x, []*autograd.Var{h, c}, []int{l.Passes[0].WeightHH.T.Dim(1), l.Hidden}, runLSTM)
	return y, last[0], last[1]
}

func runLSTM(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var) {
	bias := varOrNil(p.BiasIH)
	if bias != nil && p.BiasHH != nil {
		bias = autograd.Add(bias, p.BiasHH.Var())
	}
	r.Proj = varOrNil(p.WeightHR)
	y, h, c := autograd.LSTM(autograd.Linear(x, p.WeightIH.Var(), bias), first[0], first[1], r)
	return y, []*autograd.Var{h, c}
}

// Run computes the GRU for sequences x with initial states h.
//
// x must be (L, N, in), or (N, L, in) with BatchFirst, or (L, in) if unbatched, with L at least 1.
// h must be (passes, N, hidden), or (passes, hidden) if unbatched; nil means zeros. Run returns the
// last layer's states after each element, (L, N, directions·hidden) in the layout of x, and the
// final states of all passes, in the layout of h. It panics with an error that wraps
// [tensor.ErrShape] if a shape does not match.
func (g *GRU) Run(x, h *autograd.Var) (y, last *autograd.Var) {
	y, states := g.runLayers("GRU", x, []*autograd.Var{h}, []int{g.Hidden}, runGRU)
	return y, states[0]
}

func runGRU(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var) {
	r.Bias = varOrNil(p.BiasHH)
	y, h := autograd.GRU(autograd.Linear(x, p.WeightIH.Var(), varOrNil(p.BiasIH)), first[0], r)
	return y, []*autograd.Var{h}
}

// A way runs sequences x, (L, N, in), through one pass. first contains the initial states, (N,
// features), of each kind: the states and, for an LSTM, the cells. r contains the weights of the
// states, and the direction. A way returns the outputs, (L, N, features), and the final states,
// as in first.
type way func(p *Pass, x *autograd.Var, first []*autograd.Var, r autograd.Recurrence) (y *autograd.Var,
	last []*autograd.Var)

// runLayers computes all layers, with one call of through for each pass. first contains the
// initial states of all passes of each kind; nil means zeros. sizes contains the number of
// features of each kind. runLayers returns the outputs of the last layer and the final states, in
// the layouts of x and of first. It panics with [tensor.ErrShape] if a shape does not match.
func (r *Recurrent) runLayers(what string, x *autograd.Var, first []*autograd.Var, sizes []int,
	through way) (y *autograd.Var, last []*autograd.Var) {
	single := len(x.Shape()) == 2
	x, first = r.batchInputs(what, x, first, sizes)
	ends := make([][]*autograd.Var, len(first))
	for i := 0; i < len(r.Passes); i += r.directionCount() {
		var outs []*autograd.Var
		for d := range r.directionCount() {
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
		if i+r.directionCount() < len(r.Passes) {
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

// batchInputs returns x as (L, N, in), and all initial states as (passes, N, features), with
// zeros for nil ones. It panics with [tensor.ErrShape] if a shape does not match.
func (r *Recurrent) batchInputs(what string, x *autograd.Var, first []*autograd.Var, sizes []int) (*autograd.Var,
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
		misuse(tensor.ErrShape, "%s: got shape %v, want sequences of at least 1 element with %d features, with or "+
			"without a batch",
			what, s, in)
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
			misuse(tensor.ErrShape, "%s: got initial %s of shape %v, want %v",
				what, [...]string{"states", "cells"}[k],
				s.Shape(), shape)
		}
	}
	return x, states
}

func init() {
	codec.RegisterType[*LSTM]("nn.LSTM")
	codec.RegisterType[*GRU]("nn.GRU")
}
