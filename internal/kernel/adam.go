package kernel

import "math"

// An AdamStep is the numbers of a step of torch.optim.Adam.
type AdamStep struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	Decoupled             bool  // the decay shrinks parameters instead of entering their gradients: AdamW
	N                     int64 // of the step, from 1 on
}

// Adam takes a step with gradients g: it changes p and its moments, the mean of the gradients and that of their squares.
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
		inner[F]().adam(n, &p[i], &g[i], &mean[i], &square[i], rate, root, fresh1, keep2, fresh2, F(s.Eps), decay, shrink)
	}
}

// An RMSpropStep is the numbers of a step of torch.optim.RMSprop, without momentum and not centered.
type RMSpropStep struct{ LR, Alpha, Eps, WeightDecay float64 }

// RMSprop takes a step with gradients g: it changes p and square, the mean of the squares of the gradients.
func RMSprop[F Float](s RMSpropStep, p, g, square []F) {
	g, square = g[:len(p)], square[:len(p)]
	for i, n := range short(len(p)) {
		inner[F]().rmsprop(n, &p[i], &g[i], &square[i], F(s.LR), F(s.Alpha), F(1-s.Alpha), F(s.Eps), F(s.WeightDecay))
	}
}
