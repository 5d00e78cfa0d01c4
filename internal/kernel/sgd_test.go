package kernel_test

import (
	"math"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// step is torch.optim.SGD's formula for one element.
func step(p, g, buf, lr, momentum, dampening, decay float64, nesterov, first bool) (float64, float64) {
	d := g + decay*p
	if momentum != 0 {
		if first {
			buf = d
		} else {
			buf = momentum*buf + (1-dampening)*d
		}
		if nesterov {
			d += momentum * buf
		} else {
			d = buf
		}
	}
	return p - lr*d, buf
}

func checkSGD[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	n := rapid.IntRange(0, 40).Draw(t, "n")
	some := rapid.SampledFrom([]F{0, 0.25, 0.5, 0.875})
	lr, momentum, dampening, decay := some.Draw(t, "lr"), some.Draw(t, "momentum"), some.Draw(t, "dampening"),
		some.Draw(t, "decay")
	nesterov := rapid.Bool().Draw(t, "nesterov")
	p := noise[F](rapid.Uint64().Draw(t, "p"), n)
	atomic, buf, bufAtomic := append([]F{}, p...), noise[F](1, n), noise[F](2, n)
	want, wantBuf := widen(p), make([]float64, n)
	if momentum == 0 {
		buf, bufAtomic = nil, nil
	}
	for i := range 3 {
		g := noise[F](uint64(i+3), n)
		for j := range want {
			want[j], wantBuf[j] = step(want[j], float64(g[j]), wantBuf[j], float64(lr), float64(momentum),
				float64(dampening), float64(decay), nesterov, i == 0)
		}
		kernel.SGD(p, g, buf, lr, momentum, dampening, decay, nesterov, i == 0)
		kernel.SGDAtomic(atomic, g, bufAtomic, lr, momentum, dampening, decay, nesterov, i == 0)
	}
	near(t, "p", p, want, 4)
	near(t, "p by atomic steps", atomic, want, 4)
	if momentum != 0 {
		near(t, "buf", buf, wantBuf, 4)
		near(t, "buf by atomic steps", bufAtomic, wantBuf, 4)
	}
}

func TestThreeStepsOfSGDAreItsFormula(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkSGD[float32]))
	t.Run("float64", rapid.MakeCheck(checkSGD[float64]))
}

func checkAdam[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	n := rapid.IntRange(0, 70).Draw(t, "n")
	some := rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.875})
	s := kernel.AdamStep{LR: some.Draw(t, "lr"), Beta1: some.Draw(t, "beta1"), Beta2: some.Draw(t, "beta2"),
		Eps: 0.125, WeightDecay: some.Draw(t, "decay"),
		Decoupled: rapid.Bool().Draw(t, "decoupled")}
	p := noise[F](rapid.Uint64().Draw(t, "p"), n)
	mean, square := make([]F, n), make([]F, n)
	want, wantMean, wantSquare := widen(p), make([]float64, n), make([]float64, n)
	for s.N = 1; s.N <= 3; s.N++ {
		g := noise[F](uint64(s.N), n)
		for i, g := range widen(g) {
			if s.Decoupled {
				want[i] -= s.LR * s.WeightDecay * want[i]
			} else {
				g += s.WeightDecay * want[i]
			}
			wantMean[i] = s.Beta1*wantMean[i] + (1-s.Beta1)*g
			wantSquare[i] = s.Beta2*wantSquare[i] + (1-s.Beta2)*g*g
			m, v := wantMean[i]/(1-math.Pow(s.Beta1, float64(s.N))), wantSquare[i]/(1-math.Pow(s.Beta2, float64(s.N)))
			want[i] -= s.LR * m / (math.Sqrt(v) + s.Eps)
		}
		kernel.Adam(s, p, g, mean, square)
	}
	near(t, "p", p, want, 20)
	near(t, "mean", mean, wantMean, 4)
	near(t, "square", square, wantSquare, 4)
}

func TestThreeStepsOfAdamAreItsFormula(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkAdam[float32]))
	t.Run("float64", rapid.MakeCheck(checkAdam[float64]))
}

func checkRMSprop[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	n := rapid.IntRange(0, 70).Draw(t, "n")
	some := rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.875})
	s := kernel.RMSpropStep{LR: some.Draw(t, "lr"), Alpha: some.Draw(t, "alpha"), Eps: 0.125,
		WeightDecay: some.Draw(t, "decay")}
	p, square := noise[F](rapid.Uint64().Draw(t, "p"), n), make([]F, n)
	want, wantSquare := widen(p), make([]float64, n)
	for step := range uint64(3) {
		g := noise[F](step, n)
		for i, g := range widen(g) {
			g += s.WeightDecay * want[i]
			wantSquare[i] = s.Alpha*wantSquare[i] + (1-s.Alpha)*g*g
			want[i] -= s.LR * g / (math.Sqrt(wantSquare[i]) + s.Eps)
		}
		kernel.RMSprop(s, p, g, square)
	}
	near(t, "p", p, want, 20)
	near(t, "square", square, wantSquare, 4)
}

func TestThreeStepsOfRMSpropAreItsFormula(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkRMSprop[float32]))
	t.Run("float64", rapid.MakeCheck(checkRMSprop[float64]))
}

// together calls do on several goroutines at once, often.
func together(times int, do func()) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range times {
				do()
			}
		})
	}
	all.Wait()
}

func checkNoStepIsLost[F kernel.Float](t *testing.T) {
	const times = 500
	p, g := make([]F, 3), []F{1, -2, 3}
	together(times, func() { kernel.SGDAtomic(p, g, nil, 0.5, 0, 0, 0, false, false) })
	together(times, func() { kernel.AxpyAtomic(1, g, p) })
	for i, v := range p {
		if want := g[i] * 4 * times / 2; v != want {
			t.Errorf("p[%d] = %v, want %v", i, v, want)
		}
	}
}

func TestNoAtomicStepIsLost(t *testing.T) {
	t.Run("float32", checkNoStepIsLost[float32])
	t.Run("float64", checkNoStepIsLost[float64])
}

func TestSetThreadsNeedsOne(t *testing.T) {
	if panics(func() { kernel.SetThreads(0) }) == nil {
		t.Fatal("no threads were accepted")
	}
}
