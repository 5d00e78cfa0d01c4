package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Recurrence contains the weights that carry a state from one element of a sequence to the next.
type Recurrence struct {
	Weight *Var // (gates·hidden, states): maps a state to its contribution to the next gates
	Bias   *Var // GRU only: (gates·hidden), or nil; add the bias of an LSTM to its gates
	// Proj is the projection of an LSTM, (states, hidden): it maps a hidden vector to a state with
	// fewer features. If it is nil, states equals hidden.
	Proj      *Var
	Backwards bool // process the sequence from the last element to the first
}

// LSTM runs N sequences of length L through long short-term memory (Hochreiter and Schmidhuber,
// 1997). gates, (L, N, 4·hidden), contains the inputs of the gates: input, forget, cell and output.
// h, (N, states), and c, (N, hidden), contain the initial states and cells. LSTM returns the states
// after each element, (L, N, states), and the last states and cells. r.Bias must be nil. On the
// host it is one kernel, unless r.Proj is set.
func LSTM(gates, h, c *Var, r Recurrence) (y, lastH, lastC *Var) {
	if r.Bias != nil {
		misuse(tensor.ErrMisuse, "LSTM: got Bias, want nil: add it to gates")
	}
	r.check("LSTM", 4, gates, h)
	if n, hidden := gates.t.Dim(1), gates.t.Dim(2)/4; !sameShape(c.Shape(), []int{n, hidden}) {
		misuse(tensor.ErrShape, "LSTM of gates %v: got initial cells %v, want %v",
			gates.Shape(), c.Shape(), []int{n, hidden})
	}
	if gates.isOnDevice() || r.Proj != nil || gates.t.Numel() == 0 {
		return r.plainLSTM(gates, h, c)
	}
	l := gates.t.Dim(0)
	all := kernelByDType("LSTM", gates, lstm[float32], lstm[float64])(r, gates, h, c).setRecompute(func(v *Var) *Var {
		r := Recurrence{Weight: v.inputs[3], Backwards: v.note.backwards}
		y, _, c := r.plainLSTM(v.inputs[0], v.inputs[1], v.inputs[2])
		return Cat(0, y, Unsqueeze(c, 0))
	})
	y = Narrow(all, 0, 0, l)
	return y, Select(y, 0, r.lastIndex(l)), Select(all, 0, l)
}

// GRU runs N sequences of length L through gated recurrent units (Cho et al., 2014). gates, (L, N,
// 3·hidden), contains the inputs of the gates: reset, update and new. h, (N, hidden), contains the
// initial states. GRU returns the states after each element, (L, N, hidden), and the last states,
// (N, hidden). r.Proj must be nil. On the host it is one kernel.
func GRU(gates, h *Var, r Recurrence) (y, last *Var) {
	if r.Proj != nil {
		misuse(tensor.ErrMisuse, "GRU: got Proj, want nil: only LSTM supports projections")
	}
	r.check("GRU", 3, gates, h)
	if gates.isOnDevice() || gates.t.Numel() == 0 {
		y = r.plainGRU(gates, h)
	} else {
		y = kernelByDType("GRU", gates, gru[float32], gru[float64])(r, gates, h).setRecompute(func(v *Var) *Var {
			r := Recurrence{Weight: v.inputs[2], Bias: v.inputAt(3), Backwards: v.note.backwards}
			return r.plainGRU(v.inputs[0], v.inputs[1])
		})
	}
	return y, Select(y, 0, r.lastIndex(gates.t.Dim(0)))
}

func (r Recurrence) check(op string, count int, gates, h *Var) {
	requireDims(op, "gate inputs (L, N, gates·hidden)", gates, 3)
	if l, wide := gates.t.Dim(0), gates.t.Dim(2); l == 0 || wide == 0 || wide%count != 0 {
		misuse(tensor.ErrShape, "%s: got gates %v, want (L, N, %d·hidden) with at least 1 element",
			op, gates.Shape(), count)
	}
	n, hidden := gates.t.Dim(1), gates.t.Dim(2)/count
	states := hidden
	if p := r.Proj; p != nil {
		if p.t.Dims() != 2 || p.t.Dim(1) != hidden {
			misuse(tensor.ErrShape, "%s of gates %v: got projection %v, want (states, %d)",
				op, gates.Shape(), p.Shape(), hidden)
		}
		states = p.t.Dim(0)
	}
	if !sameShape(h.Shape(), []int{n, states}) {
		misuse(tensor.ErrShape, "%s of gates %v: got initial states %v, want %v",
			op, gates.Shape(), h.Shape(), []int{n, states})
	}
	if !sameShape(r.Weight.Shape(), []int{count * hidden, states}) {
		misuse(tensor.ErrShape, "%s of gates %v: got weights %v, want %v", op, gates.Shape(), r.Weight.Shape(),
			[]int{count * hidden, states})
	}
	checkBias(op, r.Bias, count*hidden)
}

// lastIndex returns the index of the element that is processed last in a sequence of length l.
func (r Recurrence) lastIndex(l int) int {
	if r.Backwards {
		return 0
	}
	return l - 1
}

func (r Recurrence) kernelParams(gates *Var, count int) kernel.Recurrence {
	return kernel.Recurrence{L: gates.t.Dim(0), N: gates.t.Dim(1), H: gates.t.Dim(2) / count, Backwards: r.Backwards}
}

// lstm returns the states at each element, followed by the last cells: (L+1, N, hidden).
func lstm[F kernel.Float](r Recurrence, gates, h, c *Var) *Var {
	w, k := r.Weight, r.kernelParams(gates, 4)
	y := newResult("LSTM", gates.t.DType(), []int{k.L + 1, k.N, k.H}, gates, h, c, w)
	ht, ct, wt := h.contiguousTensor(), c.contiguousTensor(), w.contiguousTensor()
	open := y.scope.newEmpty(nil, y.t.DType(), []int{k.L, k.N, 4 * k.H})
	cells := y.scope.newEmpty(nil, y.t.DType(), []int{k.L, k.N, k.H})
	states := data[F](y.t)[:k.L*k.N*k.H]
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	kernel.LSTM(k, data[F](gates.contiguousTensor()), data[F](wt), data[F](ht), data[F](ct), data[F](open), states,
		data[F](cells), scratch)
	copy(data[F](y.t)[len(states):], data[F](cells)[r.lastIndex(k.L)*k.N*k.H:])
	keepAlive(gates, h, c, w)
	y.note.backwards = r.Backwards
	return y.saveIfNeeded(y.t, ht, ct, wt, open, cells).
		setDerivatives(kernelByDType(y.op, y, lstmBackward[float32], lstmBackward[float64]), nil)
}

func lstmBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	gates, h, c, w := y.inputs[0], y.inputs[1], y.inputs[2], y.inputs[3]
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	k := Recurrence{Backwards: y.note.backwards}.kernelParams(gates, 4)
	dgates, dh, dc := y.scope.newEmpty(nil, dy.DType(), gates.Shape()), h.newEmptyLike().Zero(), c.newEmptyLike()
	of := func(i int) []F { return data[F](y.saved[i].t) }
	n := k.L * k.N * k.H
	copy(data[F](dc), data[F](dy)[n:])
	kernel.LSTMBackward(k, of(3), of(1), of(2), of(4), of(0)[:n], of(5), data[F](dy)[:n],
		data[F](dh), data[F](dc), data[F](dgates), sumOf[F](w), scratch)
	gates.addGradient(dgates)
	h.addGradient(dh)
	c.addGradient(dc)
}

func gru[F kernel.Float](r Recurrence, gates, h *Var) *Var {
	w, b, k := r.Weight, r.Bias, r.kernelParams(gates, 3)
	y := newResult("GRU", gates.t.DType(), []int{k.L, k.N, k.H}, gates, h, w, b)
	ht, wt := h.contiguousTensor(), w.contiguousTensor()
	open := y.scope.newEmpty(nil, y.t.DType(), gates.Shape())
	fresh := y.scope.newEmpty(nil, y.t.DType(), y.Shape())
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	kernel.GRU(k, data[F](gates.contiguousTensor()), data[F](wt), dataOf[F](denseOf(b)), data[F](ht), data[F](open),
		data[F](fresh), data[F](y.t), scratch)
	keepAlive(gates, h, w, b)
	y.note.backwards = r.Backwards
	return y.saveIfNeeded(y.t, ht, wt, open, fresh).
		setDerivatives(kernelByDType(y.op, y, gruBackward[float32], gruBackward[float64]), nil)
}

func gruBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	gates, h, w, b := y.inputs[0], y.inputs[1], y.inputs[2], y.inputAt(3)
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	k := Recurrence{Backwards: y.note.backwards}.kernelParams(gates, 3)
	dgates, dh := y.scope.newEmpty(nil, dy.DType(), gates.Shape()), h.newEmptyLike()
	of := func(i int) []F { return data[F](y.saved[i].t) }
	kernel.GRUBackward(k, of(2), of(1), of(3), of(4), of(0), data[F](dy),
		data[F](dh), data[F](dgates), sumOf[F](w), sumOf[F](b), scratch)
	gates.addGradient(dgates)
	h.addGradient(dh)
}

// plainLSTM computes an LSTM from other operations.
func (r Recurrence) plainLSTM(gates, h, c *Var) (y, lastH, lastC *Var) {
	y = r.runSteps(gates, func(x *Var) *Var {
		g := Split(Add(x, Linear(h, r.Weight, nil)), c.t.Dim(1), 1)
		c = Add(Mul(Sigmoid(g[1]), c), Mul(Sigmoid(g[0]), Tanh(g[2])))
		h = Mul(Sigmoid(g[3]), Tanh(c))
		if r.Proj != nil {
			h = Linear(h, r.Proj, nil)
		}
		return h
	})
	return y, h, c
}

// plainGRU computes a GRU from other operations.
func (r Recurrence) plainGRU(gates, h *Var) *Var {
	return r.runSteps(gates, func(x *Var) *Var {
		from, own := Split(x, h.t.Dim(1), 1), Split(Linear(h, r.Weight, r.Bias), h.t.Dim(1), 1)
		reset, update := Sigmoid(Add(from[0], own[0])), Sigmoid(Add(from[1], own[1]))
		fresh := Tanh(Add(from[2], Mul(reset, own[2])))
		h = Add(fresh, Mul(update, Sub(h, fresh)))
		return h
	})
}

// runSteps calls step with the gate inputs of each element, in the order of processing, and
// returns the resulting states in the order of the sequence.
func (r Recurrence) runSteps(gates *Var, step func(x *Var) *Var) *Var {
	states := make([]*Var, gates.t.Dim(0))
	for i := range states {
		at := i
		if r.Backwards {
			at = len(states) - 1 - i
		}
		states[at] = step(Select(gates, 0, at))
	}
	return Stack(0, states...)
}
