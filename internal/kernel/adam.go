package kernel

import "math"

// An AdamStep is the numbers of a step of torch.optim.Adam.
type AdamStep struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	Decoupled             bool  // the decay shrinks parameters instead of entering their gradients: AdamW
	N                     int64 // of the step, from 1 on
}

// Adam takes a step with gradients g: it changes p and its moments, the mean of the gradients and
// that of their squares.
func Adam[F Float](s AdamStep, p, g, mean, square []F) {
	g, mean, square = g[:len(p)], mean[:len(p)], square[:len(p)]
	n := float64(s.N)
	rate := F(s.LR / (1 - math.Pow(s.Beta1, n)))
	root := F(1 / math.Sqrt(1-math.Pow(s.Beta2, n)))
	fresh1, keep2, fresh2 := F(1-s.Beta1), F(s.Beta2), F(1-s.Beta2)
	decay, shrink := F(s.WeightDecay), F(0)
	if s.Decoupled {
		decay, shrink = 0, F(s.LR*s.WeightDecay)
	}
	for i, n := range short(len(p)) {
		inner[F]().adam(n, &p[i], &g[i], &mean[i], &square[i], rate, root, fresh1, keep2, fresh2, F(s.Eps),
			decay, shrink)
	}
}

// AMSGrad takes a step as Adam does, with the largest of the mean squares so far in the place of
// the mean square.
func AMSGrad[F Float](s AdamStep, p, g, mean, square, largest []F) {
	g, mean, square, largest = g[:len(p)], mean[:len(p)], square[:len(p)], largest[:len(p)]
	n := float64(s.N)
	rate := F(s.LR / (1 - math.Pow(s.Beta1, n)))
	root := F(1 / math.Sqrt(1-math.Pow(s.Beta2, n)))
	decay, shrink := F(s.WeightDecay), F(0)
	if s.Decoupled {
		decay, shrink = 0, F(s.LR*s.WeightDecay)
	}
	for i := range p {
		g := g[i] + decay*p[i]
		mean[i] += F(1-s.Beta1) * (g - mean[i])
		square[i] = F(s.Beta2)*square[i] + F(1-s.Beta2)*g*g
		largest[i] = max(largest[i], square[i])
		p[i] -= shrink*p[i] + rate*mean[i]/(F(math.Sqrt(float64(largest[i])))*root+F(s.Eps))
	}
}

// An RMSpropStep is the numbers of a step of torch.optim.RMSprop, without momentum and not
// centered.
type RMSpropStep struct{ LR, Alpha, Eps, WeightDecay float64 }

// RMSprop takes a step with gradients g: it changes p and square, the mean of the squares of the
// gradients.
func RMSprop[F Float](s RMSpropStep, p, g, square []F) {
	g, square = g[:len(p)], square[:len(p)]
	for i, n := range short(len(p)) {
		inner[F]().rmsprop(n, &p[i], &g[i], &square[i], F(s.LR), F(s.Alpha), F(1-s.Alpha), F(s.Eps), F(s.WeightDecay))
	}
}

// An AdagradStep is the numbers of a step of torch.optim.Adagrad; LR is that of this step.
type AdagradStep struct{ LR, Eps, WeightDecay float64 }

// Adagrad takes a step with gradients g: it changes p and sum, the sum of the squares of the
// gradients. It is RMSprop that keeps and adds all.
func Adagrad[F Float](s AdagradStep, p, g, sum []F) {
	g, sum = g[:len(p)], sum[:len(p)]
	for i, n := range short(len(p)) {
		inner[F]().rmsprop(n, &p[i], &g[i], &sum[i], F(s.LR), 1, 1, F(s.Eps), F(s.WeightDecay))
	}
}
