package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// An attended is what a plain attention is given, in double precision, and what it makes of it.
type attended struct {
	kernel.Attention
	q, k, v, dy         []float64
	bias                func(head, query int) []float64 // nil: none
	out, dq, dk, dv, db []float64                       // db is (Heads, Q, K)
}

// plainly computes an attention and its gradients by the book, a query at a time.
func (a *attended) plainly() {
	a.out, a.dq, a.dk = make([]float64, a.Heads*a.Q*a.V), make([]float64, len(a.q)), make([]float64, len(a.k))
	a.dv, a.db = make([]float64, len(a.v)), make([]float64, a.Heads*a.Q*a.K)
	for h := range a.Heads {
		for i := range a.Q {
			weights := a.weights(h, i)
			q, dy := a.q[(h*a.Q+i)*a.D:][:a.D], a.dy[(h*a.Q+i)*a.V:][:a.V]
			slopes, along := make([]float64, a.K), 0.0
			for j, w := range weights {
				v := a.v[(h*a.K+j)*a.V:][:a.V]
				slopes[j] = dot(v, dy)
				along += w * slopes[j]
				for c := range v {
					a.out[(h*a.Q+i)*a.V+c] += w * v[c]
					a.dv[(h*a.K+j)*a.V+c] += w * dy[c]
				}
			}
			for j, w := range weights {
				d := w * (slopes[j] - along)
				a.db[(h*a.Q+i)*a.K+j] = d
				for c := range q {
					a.dq[(h*a.Q+i)*a.D+c] += a.Scale * d * a.k[(h*a.K+j)*a.D+c]
					a.dk[(h*a.K+j)*a.D+c] += a.Scale * d * q[c]
				}
			}
		}
	}
}

// weights are those of a query's keys, zeros if it sees none.
func (a *attended) weights(h, i int) []float64 {
	w, top := make([]float64, a.K), math.Inf(-1)
	for j := range w {
		w[j] = a.Scale * dot(a.q[(h*a.Q+i)*a.D:][:a.D], a.k[(h*a.K+j)*a.D:])
		if a.bias != nil {
			w[j] += a.bias(h, i)[j]
		}
		if a.Causal && j > i {
			w[j] = math.Inf(-1)
		}
		top = max(top, w[j])
	}
	if math.IsInf(top, -1) {
		return make([]float64, a.K)
	}
	sum := 0.0
	for j := range w {
		w[j] = math.Exp(w[j] - top)
		sum += w[j]
	}
	for j := range w {
		w[j] /= sum
	}
	return w
}

// A biased is a mask whose rows heads or queries may share.
type biased[F kernel.Float] struct {
	values      []F
	head, query int // how far apart rows are
}

func (b *biased[F]) rows() func(head, query int) []F {
	if b == nil {
		return nil
	}
	return func(head, query int) []F { return b.values[head*b.head+query*b.query:] }
}

func drawBias[F kernel.Float](t *rapid.T, a kernel.Attention) *biased[F] {
	b := &biased[F]{query: a.K, head: a.K * a.Q}
	switch rapid.SampledFrom([]string{"none", "full", "of queries", "of heads", "of keys"}).Draw(t, "bias") {
	case "none":
		return nil
	case "of queries":
		b.head = 0
	case "of heads":
		b.query, b.head = 0, a.K
	case "of keys":
		b.query, b.head = 0, 0
	}
	b.values = noise[F](5, max(1, a.Heads*a.Q)*a.K)
	hidden := rapid.SampledFrom([]int{0, 2, 3, 1}).Draw(t, "hidden") // one of so many; 1: all
	for i := range b.values {
		if hidden > 0 && (i*7919)%hidden == 0 {
			b.values[i] = F(math.Inf(-1))
		}
	}
	return b
}

func checkAttention[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	size := func(name string, most int) int {
		return rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, most)).Draw(t, name)
	}
	a := kernel.Attention{Heads: rapid.IntRange(0, 3).Draw(t, "heads"), Q: size("queries", 140),
		K: size("keys", 270), D: size("features", 40), V: size("values", 40),
		Scale: rapid.Float64Range(0.1, 2).Draw(t, "scale"), Causal: rapid.Bool().Draw(t, "causal")}
	q, k, v := noise[F](1, a.Heads*a.Q*a.D), noise[F](2, a.Heads*a.K*a.D), noise[F](3, a.Heads*a.K*a.V)
	dy, bias := noise[F](4, a.Heads*a.Q*a.V), drawBias[F](t, a)
	if len(k) > 0 && !a.Causal && rapid.IntRange(0, 9).Draw(t, "a NaN of ten") == 0 {
		k[len(k)-1] = F(math.NaN())
	}
	want := attended{Attention: a, q: widen(q), k: widen(k), v: widen(v), dy: widen(dy)}
	if bias != nil {
		want.bias = (&biased[float64]{widen(bias.values), bias.head, bias.query}).rows()
	}
	want.plainly()
	out, logs := slices.Repeat([]F{9}, len(want.out)), make([]float64, a.Heads*a.Q)
	kernel.Attend(a, q, k, v, bias.rows(), out, logs)
	near(t, "outputs", out, want.out, 4)
	dq, dk, dv, db := slices.Repeat([]F{9}, len(q)), slices.Repeat([]F{9}, len(k)),
		slices.Repeat([]F{9}, len(v)), make([]F, len(want.db))
	var take func(head, query, key int, d []F)
	if rapid.Bool().Draw(t, "of the bias, too") {
		take = func(head, query, key int, d []F) { copy(db[(head*a.Q+query)*a.K+key:], d) }
	}
	kernel.AttendBackward(a, q, k, v, bias.rows(), out, logs, dy, dq, dk, dv, take)
	near(t, "gradients of queries", dq, want.dq, 20)
	near(t, "gradients of keys", dk, want.dk, 20)
	near(t, "gradients of values", dv, want.dv, 20)
	if take != nil {
		near(t, "gradients of the bias", db, want.db, 20)
	}
}

func TestAttentionIsWhatTheBookSays(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkAttention[float32]))
	t.Run("float64", rapid.MakeCheck(checkAttention[float64]))
}

func TestAttentionIsTheSameWithAnyNumberOfThreads(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		a := kernel.Attention{Heads: 5, Q: 70, K: 140, D: 24, V: 20, Scale: 0.2, Causal: true}
		q, k, v, dy := noise[float32](1, a.Heads*a.Q*a.D), noise[float32](2, a.Heads*a.K*a.D),
			noise[float32](3, a.Heads*a.K*a.V), noise[float32](4, a.Heads*a.Q*a.V)
		run := func(threads int) [][]float32 {
			defer kernel.SetThreads(kernel.Threads())
			kernel.SetThreads(threads)
			out, logs := make([]float32, len(dy)), make([]float64, a.Heads*a.Q)
			dq, dk, dv := make([]float32, len(q)), make([]float32, len(k)), make([]float32, len(v))
			kernel.Attend(a, q, k, v, nil, out, logs)
			kernel.AttendBackward(a, q, k, v, nil, out, logs, dy, dq, dk, dv, nil)
			return [][]float32{out, dq, dk, dv}
		}
		want := run(1)
		for threads := 2; threads <= 5; threads++ {
			if got := run(threads); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%d threads compute other numbers", threads)
			}
		}
	})
}

// Scores that are too large for an exponential, in one block of keys and in another.
func TestAttentionToHugeScoresDoesNotOverflow(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		a := kernel.Attention{Heads: 1, Q: 1, K: 300, D: 1, V: 1, Scale: 1}
		k, v := make([]float32, a.K), make([]float32, a.K)
		k[5], k[290], v[290] = 1000, 2000, 3
		out, logs := make([]float32, 1), make([]float64, 1)
		if kernel.Attend(a, []float32{1}, k, v, nil, out, logs); out[0] != 3 || logs[0] != 2000 {
			t.Errorf("%v, and %v as its logarithm", out, logs)
		}
	})
}
