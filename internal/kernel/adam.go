package kernel

import "math"

// AdamStep holds the parameters of one step of torch.optim.Adam (Kingma and Ba, 2014,
// https://arxiv.org/abs/1412.6980).
type AdamStep struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	Decoupled             bool  // apply the weight decay to parameters instead of gradients: AdamW
	N                     int64 // number of this step, from 1
}

// Adam updates p by the gradients g. It also updates mean and square, the moving averages of the
// gradients and of their squares. All slices must be at least as long as p.
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
	if workers := elementWorkers(len(p), stepCost); workers > 1 {
		shared := adamLoop[F]{rate, root, fresh1, keep2, fresh2, F(s.Eps), decay, shrink, p, g, mean, square}
		runElements(workers, len(p), func(lo, hi int) { shared.update(lo, hi) })
		return
	}
	all := adamLoop[F]{rate, root, fresh1, keep2, fresh2, F(s.Eps), decay, shrink, p, g, mean, square}
	all.update(0, len(p))
}

// stepCost is the cost of an element in a step of an optimizer, which reads and writes several
// slices, in operations.
const stepCost = 12

// adamLoop holds the arguments of the loop of [Adam].
type adamLoop[F Float] struct {
	rate, root, fresh1, keep2, fresh2, eps, decay, shrink F
	p, g, mean, square                                    []F
}

func (a *adamLoop[F]) update(lo, hi int) {
	p, g, mean, square := a.p[lo:hi], a.g[lo:hi], a.mean[lo:hi], a.square[lo:hi]
	for i, n := range shortPieces(len(p)) {
		loopsFor[F]().adam(n, &p[i], &g[i], &mean[i], &square[i], a.rate, a.root, a.fresh1, a.keep2, a.fresh2, a.eps,
			a.decay, a.shrink)
	}
}

// AMSGrad updates p like [Adam], but divides by the largest of the mean squares so far, which
// it keeps in largest. All slices must be at least as long as p.
func AMSGrad[F Float](s AdamStep, p, g, mean, square, largest []F) {
	if workers := elementWorkers(len(p), costly); workers > 1 {
		runElements(workers, len(p), func(lo, hi int) {
			amsgrad(s, p[lo:hi], g[lo:hi], mean[lo:hi], square[lo:hi], largest[lo:hi])
		})
	} else {
		amsgrad(s, p, g, mean, square, largest)
	}
}

func amsgrad[F Float](s AdamStep, p, g, mean, square, largest []F) {
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

// RMSpropStep holds the parameters of one step of torch.optim.RMSprop without momentum and
// centering.
type RMSpropStep struct{ LR, Alpha, Eps, WeightDecay float64 }

// RMSprop updates p by the gradients g, and square, the moving average of the squared gradients. g
// and square must be at least as long as p.
func RMSprop[F Float](s RMSpropStep, p, g, square []F) {
	rmspropStep(F(s.LR), F(s.Alpha), F(1-s.Alpha), F(s.Eps), F(s.WeightDecay), p, g, square)
}

func rmspropStep[F Float](rate, kept, fresh, eps, decay F, p, g, square []F) {
	if workers := elementWorkers(len(p), stepCost); workers > 1 {
		runElements(workers, len(p), func(lo, hi int) {
			rmspropPieces(rate, kept, fresh, eps, decay, p[lo:hi], g[lo:hi], square[lo:hi])
		})
	} else {
		rmspropPieces(rate, kept, fresh, eps, decay, p, g, square)
	}
}

func rmspropPieces[F Float](rate, kept, fresh, eps, decay F, p, g, square []F) {
	g, square = g[:len(p)], square[:len(p)]
	for i, n := range shortPieces(len(p)) {
		loopsFor[F]().rmsprop(n, &p[i], &g[i], &square[i], rate, kept, fresh, eps, decay)
	}
}

// AdagradStep holds the parameters of one step of torch.optim.Adagrad. LR must be the learning rate
// of this step, after decay.
type AdagradStep struct{ LR, Eps, WeightDecay float64 }

// Adagrad updates p by the gradients g, and sum, the sum of the squared gradients. g and sum
// must be at least as long as p. It is [RMSprop] with both averaging factors equal to 1.
func Adagrad[F Float](s AdagradStep, p, g, sum []F) {
	rmspropStep(F(s.LR), 1, 1, F(s.Eps), F(s.WeightDecay), p, g, sum)
}
