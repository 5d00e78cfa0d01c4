package kernel

// Recurrence is the geometry of a recurrent layer: N sequences of L elements, and states of H
// numbers.
type Recurrence struct {
	L, N, H   int
	Backwards bool // from the last element to the first
}

// elementIndex returns the index in the sequence of the element that the given step, from 0,
// processes.
func (r Recurrence) elementIndex(step int) int {
	if r.Backwards {
		return r.L - 1 - step
	}
	return step
}

// workerCount returns the number of goroutines that are worthwhile for one element of all
// sequences.
func (r Recurrence) workerCount() int {
	const cost = 64 // operations per number of a state
	return workerCount(r.N, r.N*r.H*cost)
}

// elementPart returns the part of x (L, N, gates·H) for the element with index t.
func elementPart[F Float](r Recurrence, x []F, t, gates int) []F {
	size := r.N * gates * r.H
	return x[t*size:][:size]
}

// previousState returns the part of x (L, N, H) for the previous step, or first (N, H) at step 0.
func previousState[F Float](r Recurrence, x, first []F, step int) []F {
	if step == 0 {
		return first
	}
	return elementPart(r, x, r.elementIndex(step-1), 1)
}

// LSTM runs a long short-term memory layer (Hochreiter and Schmidhuber, 1997) over all
// sequences. given (L, N, 4·H) holds the contributions of the elements to the gates, in the
// order input, forget, cell, output. w (4·H, H) holds the recurrent weights, and h and c (N, H)
// the initial states and cells. LSTM overwrites gates (L, N, 4·H) with the activations, and
// states and cells (L, N, H) with the states and cells after each element.
func LSTM[F Float](r Recurrence, given, w, h, c, gates, states, cells []F, scratch *Scratch) {
	weights := factorOf(true, 4*r.H, r.H, w, r.H, borrowSlice[F](scratch, filters, packedSize(4*r.H, r.H)), scratch)
	copyElements(gates, given[:r.L*r.N*4*r.H])
	for step := range r.L {
		t := r.elementIndex(step)
		open, last := elementPart(r, gates, t, 4), previousState(r, cells, c, step)
		weights.multiplyParallel(r.N, previousState(r, states, h, step), true, open)
		next, state := elementPart(r, cells, t, 1), elementPart(r, states, t, 1)
		if parts := r.workerCount(); parts > 1 {
			runRanges(parts, r.N, func(_, lo, hi int) { lstmStep(r, lo, hi, open, last, next, state) })
		} else {
			lstmStep(r, 0, r.N, open, last, next, state)
		}
	}
}

// lstmStep computes a step of an LSTM for sequences lo to hi-1. open holds the inputs of the
// gates, which it overwrites with the activations, and last the cells of the previous step. It
// overwrites next, the cells, and state.
func lstmStep[F Float](r Recurrence, lo, hi int, open, last, next, state []F) {
	for n := lo; n < hi; n++ {
		g, at := open[n*4*r.H:][:4*r.H], n*r.H
		for j, m := range shortPieces(r.H) {
			loopsFor[F]().lstm(m, &g[j], &g[r.H+j], &g[2*r.H+j], &g[3*r.H+j], &last[at+j], &next[at+j], &state[at+j])
		}
	}
}

// LSTMBackward computes the gradients of [LSTM] from its arguments and results and from dstates,
// the gradient of states. On entry dh and dc (N, H) must hold further gradients of the last states
// and cells, or zeros. They are replaced by the gradients of h and c. dgiven is overwritten. dw is
// added to; it may be nil.
func LSTMBackward[F Float](r Recurrence, w, h, c, gates, states, cells, dstates, dh, dc, dgiven, dw []F,
	scratch *Scratch) {
	weights := factorOf(false, r.H, 4*r.H, w, r.H, borrowSlice[F](scratch, filters, packedSize(r.H, 4*r.H)), scratch)
	copyElements(dgiven, gates[:r.L*r.N*4*r.H])
	for step := r.L - 1; step >= 0; step-- {
		t := r.elementIndex(step)
		d, last, next := elementPart(r, dgiven, t, 4), previousState(r, cells, c, step), elementPart(r, cells, t, 1)
		Add(dh, elementPart(r, dstates, t, 1), dh)
		if parts := r.workerCount(); parts > 1 {
			runRanges(parts, r.N, func(_, lo, hi int) { lstmStepBackward(r, lo, hi, d, last, next, dh, dc) })
		} else {
			lstmStepBackward(r, 0, r.N, d, last, next, dh, dc)
		}
		weights.multiplyParallel(r.N, d, false, dh)
	}
	addWeights(r, 4, dgiven, states, h, dw)
}

func lstmStepBackward[F Float](r Recurrence, lo, hi int, d, last, next, dh, dc []F) {
	for n := lo; n < hi; n++ {
		d, at := d[n*4*r.H:][:4*r.H], n*r.H
		for j, m := range shortPieces(r.H) {
			loopsFor[F]().lstmBackward(m, &d[j], &d[r.H+j], &d[2*r.H+j], &d[3*r.H+j], &last[at+j], &next[at+j],
				&dh[at+j], &dc[at+j])
		}
	}
}

// GRU runs a gated recurrent unit layer (Cho et al., 2014, https://arxiv.org/abs/1406.1078) over
// all sequences. given (L, N, 3·H) holds the contributions of the elements to the gates, in the
// order reset, update, new. w (3·H, H) and b (3·H), which may be nil, are the recurrent weights and
// biases, and h (N, H) the initial states. GRU overwrites gates (L, N, 3·H) with the activations of
// the first two gates and the recurrent contribution to the third, fresh (L, N, H) with the
// activations of the third, and states (L, N, H).
func GRU[F Float](r Recurrence, given, w, b, h, gates, fresh, states []F, scratch *Scratch) {
	weights := factorOf(true, 3*r.H, r.H, w, r.H, borrowSlice[F](scratch, filters, packedSize(3*r.H, r.H)), scratch)
	for step := range r.L {
		t := r.elementIndex(step)
		x, open, last := elementPart(r, given, t, 3), elementPart(r, gates, t, 3), previousState(r, states, h, step)
		weights.multiplyParallel(r.N, last, false, open)
		if b != nil {
			AddBias(r.N, 3*r.H, open, b)
		}
		fresh, state := elementPart(r, fresh, t, 1), elementPart(r, states, t, 1)
		if parts := r.workerCount(); parts > 1 {
			runRanges(parts, r.N, func(_, lo, hi int) { gruStep(r, lo, hi, x, open, fresh, last, state) })
		} else {
			gruStep(r, 0, r.N, x, open, fresh, last, state)
		}
	}
}

// gruStep computes a step of a GRU for sequences lo to hi-1. x and open hold the contributions
// of the element and of the last state to the gates. It overwrites open, fresh and state as
// [GRU] does.
func gruStep[F Float](r Recurrence, lo, hi int, x, open, fresh, last, state []F) {
	for n := lo; n < hi; n++ {
		x, g, at := x[n*3*r.H:][:3*r.H], open[n*3*r.H:][:3*r.H], n*r.H
		for j, m := range shortPieces(r.H) {
			loopsFor[F]().gru(m, &x[j], &x[r.H+j], &x[2*r.H+j], &g[j], &g[r.H+j], &g[2*r.H+j], &fresh[at+j],
				&last[at+j], &state[at+j])
		}
	}
}

// GRUBackward computes the gradients of [GRU] from its arguments and results and from dstates, the
// gradient of states. It overwrites dh (N, H) and dgiven with the gradients of h and given. dw and
// db are added to; they may be nil.
func GRUBackward[F Float](r Recurrence, w, h, gates, fresh, states, dstates, dh, dgiven, dw, db []F, scratch *Scratch) {
	weights := factorOf(false, r.H, 3*r.H, w, r.H, borrowSlice[F](scratch, filters, packedSize(r.H, 3*r.H)), scratch)
	down := borrowSlice[F](scratch, gradients, r.L*r.N*3*r.H)
	copy(down, gates)
	clear(dh)
	for step := r.L - 1; step >= 0; step-- {
		t := r.elementIndex(step)
		dx, d, fresh, last := elementPart(r, dgiven, t, 3), elementPart(r, down, t, 3), elementPart(r, fresh, t, 1),
			previousState(r, states, h, step)
		Add(dh, elementPart(r, dstates, t, 1), dh)
		if parts := r.workerCount(); parts > 1 {
			runRanges(parts, r.N, func(_, lo, hi int) { gruStepBackward(r, lo, hi, dx, d, fresh, last, dh) })
		} else {
			gruStepBackward(r, 0, r.N, dx, d, fresh, last, dh)
		}
		weights.multiplyParallel(r.N, d, true, dh)
	}
	addWeights(r, 3, down, states, h, dw)
	if db != nil {
		ColSum(r.L*r.N, 3*r.H, down, db)
	}
}

func gruStepBackward[F Float](r Recurrence, lo, hi int, dx, d, fresh, last, dh []F) {
	for n := lo; n < hi; n++ {
		dx, d, at := dx[n*3*r.H:][:3*r.H], d[n*3*r.H:][:3*r.H], n*r.H
		for j, m := range shortPieces(r.H) {
			loopsFor[F]().gruBackward(m, &d[j], &d[r.H+j], &d[2*r.H+j], &fresh[at+j], &last[at+j], &dx[j],
				&dx[r.H+j], &dx[2*r.H+j], &dh[at+j])
		}
	}
}

// addWeights adds the gradient of the recurrent weights to dw, which may be nil. d (L, N,
// gates·H) is the gradient of the gates, and h the initial states. All steps but the first are
// one product.
func addWeights[F Float](r Recurrence, gates int, d, states, h, dw []F) {
	if dw == nil || r.L == 0 {
		return
	}
	wide, later := gates*r.H, (r.L-1)*r.N
	Gemm(true, false, wide, r.H, r.N, 1, elementPart(r, d, r.elementIndex(0), gates), wide, h, r.H, 1, dw, r.H)
	from, to := d[min(r.N*wide, len(d)):], states
	if r.Backwards {
		from, to = d, states[min(r.N*r.H, len(states)):]
	}
	Gemm(true, false, wide, r.H, later, 1, from, wide, to, r.H, 1, dw, r.H)
}
