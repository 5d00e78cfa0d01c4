package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

func sigma(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// plainSteps calls do for each number of a state, in the order of the steps, with what comes before
// and where it is among states (L, N, H). gate returns what the state before gives to a gate, of so
// many.
func plainSteps(r kernel.Recurrence, gates int, w, h, states []float64,
	do func(element, n, j int, last float64, gate func(g int) float64)) {
	for step := range r.L {
		t, before := step, h
		if r.Backwards {
			t = r.L - 1 - step
		}
		if step > 0 {
			from := t - 1
			if r.Backwards {
				from = t + 1
			}
			before = states[from*r.N*r.H:]
		}
		for n := range r.N {
			for j := range r.H {
				do(t, n, j, before[n*r.H+j],
					func(g int) float64 { return dot(before[n*r.H:][:r.H], w[(g*r.H+j)*r.H:]) })
			}
		}
	}
}

// plainLSTM returns states and cells, (L, N, H).
func plainLSTM(r kernel.Recurrence, given, w, h, c []float64) (states, cells []float64) {
	states, cells = make([]float64, r.L*r.N*r.H), make([]float64, r.L*r.N*r.H)
	cell := slices.Clone(c)
	plainSteps(r, 4, w, h, states, func(t, n, j int, _ float64, gate func(g int) float64) {
		x := func(g int) float64 { return given[(t*r.N+n)*4*r.H+g*r.H+j] + gate(g) }
		at := n*r.H + j
		cell[at] = sigma(x(1))*cell[at] + sigma(x(0))*math.Tanh(x(2))
		cells[t*r.N*r.H+at] = cell[at]
		states[t*r.N*r.H+at] = sigma(x(3)) * math.Tanh(cell[at])
	})
	return states, cells
}

// plainGRU returns states, (L, N, H).
func plainGRU(r kernel.Recurrence, given, w, b, h []float64) []float64 {
	states := make([]float64, r.L*r.N*r.H)
	plainSteps(r, 3, w, h, states, func(t, n, j int, last float64, gate func(g int) float64) {
		x := func(g int) float64 { return given[(t*r.N+n)*3*r.H+g*r.H+j] }
		own := func(g int) float64 { return gate(g) + b[g*r.H+j] }
		reset, update := sigma(x(0)+own(0)), sigma(x(1)+own(1))
		states[(t*r.N+n)*r.H+j] = (1-update)*math.Tanh(x(2)+reset*own(2)) + update*last
	})
	return states
}

func drawRecurrence(t *rapid.T, most int) kernel.Recurrence {
	size := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	return kernel.Recurrence{L: size("elements", 4), N: size("examples", most), H: size("hidden", most),
		Backwards: rapid.Bool().Draw(t, "backwards")}
}

func checkRecurrent[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	r := drawRecurrence(t, 40)
	size := r.L * r.N * r.H
	h, c, b := noise[F](1, r.N*r.H), noise[F](2, r.N*r.H), noise[F](3, 3*r.H)
	given, w := noise[F](4, 4*size), noise[F](5, 4*r.H*r.H)
	if rapid.IntRange(0, 9).Draw(t, "a NaN of ten") == 0 {
		given[0] = F(math.NaN())
	}
	states, cells := make([]F, size), make([]F, size)
	kernel.LSTM(r, given, w, h, c, make([]F, 4*size), states, cells, nil)
	wantStates, wantCells := plainLSTM(r, widen(given), widen(w), widen(h), widen(c))
	near(t, "states of an LSTM", states, wantStates, 10)
	near(t, "cells of an LSTM", cells, wantCells, 10)
	given, w = given[:3*size], w[:3*r.H*r.H]
	kernel.GRU(r, given, w, b, h, make([]F, 3*size), make([]F, size), states, nil)
	near(t, "states of a GRU", states, plainGRU(r, widen(given), widen(w), widen(b), widen(h)), 10)
}

func TestRecurrencesAreTheirFormulas(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkRecurrent[float32]))
	t.Run("float64", rapid.MakeCheck(checkRecurrent[float64]))
}

func TestTheGradientsOfAnLSTMAreItsSlopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		r := drawRecurrence(t, 4)
		size := r.L * r.N * r.H
		given, w, h, c := noise[float64](1, 4*size), noise[float64](2, 4*r.H*r.H), noise[float64](3, r.N*r.H),
			noise[float64](4, r.N*r.H)
		dy, dlast := noise[float64](5, size), noise[float64](6, r.N*r.H)
		gates, states, cells := make([]float64, 4*size), make([]float64, size), make([]float64, size)
		kernel.LSTM(r, given, w, h, c, gates, states, cells, nil)
		dgiven, dw, dh, dc := make([]float64, len(given)), make([]float64, len(w)), make([]float64, len(h)),
			slices.Clone(dlast)
		kernel.LSTMBackward(r, w, h, c, gates, states, cells, dy, dh, dc, dgiven, dw, nil)
		loss := func() float64 {
			states, cells := plainLSTM(r, given, w, h, c)
			last := cells[(r.L-1)*r.N*r.H:]
			if r.Backwards {
				last = cells[:r.N*r.H]
			}
			return dot(states, dy) + dot(last, dlast)
		}
		slope(t, "given", given, dgiven, loss)
		slope(t, "w", w, dw, loss)
		slope(t, "h", h, dh, loss)
		slope(t, "c", c, dc, loss)
	})
}

func TestTheGradientsOfAGRUAreItsSlopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		r := drawRecurrence(t, 4)
		size := r.L * r.N * r.H
		given, w, b, h := noise[float64](1, 3*size), noise[float64](2, 3*r.H*r.H), noise[float64](3, 3*r.H),
			noise[float64](4, r.N*r.H)
		dy := noise[float64](5, size)
		gates, fresh, states := make([]float64, 3*size), make([]float64, size), make([]float64, size)
		kernel.GRU(r, given, w, b, h, gates, fresh, states, nil)
		dgiven, dw, db, dh := make([]float64, len(given)), make([]float64, len(w)), make([]float64, len(b)),
			make([]float64, len(h))
		kernel.GRUBackward(r, w, h, gates, fresh, states, dy, dh, dgiven, dw, db, nil)
		loss := func() float64 { return dot(plainGRU(r, given, w, b, h), dy) }
		slope(t, "given", given, dgiven, loss)
		slope(t, "w", w, dw, loss)
		slope(t, "b", b, db, loss)
		slope(t, "h", h, dh, loss)
	})
}

// The loops in assembly are those in Go: the gradients in float32, which the slopes above say
// nothing of.
func TestTheGradientsOfRecurrencesAreTheSameOnEachLevel(t *testing.T) {
	r := kernel.Recurrence{L: 3, N: 5, H: 29}
	size := r.L * r.N * r.H
	type all [][]float64
	run := func() (found all) {
		given, w, h, c, b := noise[float32](1, 4*size), noise[float32](2, 4*r.H*r.H),
			noise[float32](3, r.N*r.H), noise[float32](4, r.N*r.H), noise[float32](5, 3*r.H)
		dy, gates, states, cells := noise[float32](6, size), make([]float32, 4*size), make([]float32, size),
			make([]float32, size)
		dgiven, dw, dh, dc, db := make([]float32, 4*size), make([]float32, len(w)), make([]float32, len(h)),
			make([]float32, len(c)), make([]float32, len(b))
		kernel.LSTM(r, given, w, h, c, gates, states, cells, nil)
		kernel.LSTMBackward(r, w, h, c, gates, states, cells, dy, dh, dc, dgiven, dw, nil)
		for _, x := range [][]float32{states, cells, dh, dc, dgiven, dw} {
			found = append(found, widen(x))
		}
		kernel.GRU(r, given, w, b, h, gates, cells, states, nil)
		kernel.GRUBackward(r, w, h, gates, cells, states, dy, dh, dgiven, dw, db, nil)
		for _, x := range [][]float32{states, dh, dgiven[:3*size], dw, db} {
			found = append(found, widen(x))
		}
		return found
	}
	restore := kernel.Use("portable")
	want := run()
	restore()
	onEachLevel(t, func(t *testing.T) {
		for i, x := range run() {
			for j, v := range x {
				if !(math.Abs(v-want[i][j]) <= 1e-5*(1+math.Abs(want[i][j]))) {
					t.Fatalf("result %d, element %d is %v, want %v", i, j, v, want[i][j])
				}
			}
		}
	})
}

func TestRecurrencesAreTheSameWithAnyNumberOfThreads(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		r := kernel.Recurrence{L: 3, N: 40, H: 64}
		size := r.L * r.N * r.H
		given, w, h := noise[float32](1, 4*size), noise[float32](2, 4*r.H*r.H), noise[float32](3, r.N*r.H)
		run := func(threads int) [][]float32 {
			defer kernel.SetThreads(kernel.Threads())
			kernel.SetThreads(threads)
			gates, states, cells := make([]float32, 4*size), make([]float32, size), make([]float32, size)
			dgiven, dw, dh, dc := make([]float32, 4*size), make([]float32, len(w)), make([]float32, len(h)),
				make([]float32, len(h))
			kernel.LSTM(r, given, w, h, h, gates, states, cells, nil)
			kernel.LSTMBackward(r, w, h, h, gates, states, cells, states, dh, dc, dgiven, dw, nil)
			found := [][]float32{slices.Clone(states), cells, slices.Clone(dgiven), slices.Clone(dw),
				slices.Clone(dh), dc}
			kernel.GRU(r, given, w, nil, h, gates, cells, states, nil)
			kernel.GRUBackward(r, w, h, gates, cells, states, states, dh, dgiven, dw, nil, nil)
			return append(found, states, dgiven, dw, dh)
		}
		want := run(1)
		for threads := 2; threads <= 5; threads++ {
			if got := run(threads); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%d threads compute other numbers", threads)
			}
		}
	})
}
