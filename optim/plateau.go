package optim

import "math"

// ReduceLROnPlateau lowers a learning rate when a measure has stopped getting better, as PyTorch's class
// of that name does. The zero value of a field but LR stands for PyTorch's default, and [Zero] for 0. It
// keeps the best measure; to resume, store the struct.
//
//	plateau := &optim.ReduceLROnPlateau{LR: 0.1}
//	for range epochs {
//		train(sgd)
//		sgd.LR = plateau.Step(validate())
//	}
type ReduceLROnPlateau struct {
	LR        float64 // now
	Maximize  bool    // a larger measure is better
	Factor    float64 // which multiplies LR, 0.1; less than 1
	Patience  float64 // how many epochs in a row may be no better, 10
	Threshold float64 // better is what is better than the best times 1 ∓ this, 1e-4
	Absolute  bool    // better is what is better than the best by Threshold
	Cooldown  int     // how many epochs after a reduction do not count
	MinLR     float64 // LR does not go below it
	Eps       float64 // a reduction by less is left out, 1e-8

	Best float64 // the best measure so far, an infinity where all were NaN
	// Epochs, Bad and Cooling count the measures so far, those in a row that were no better, and the
	// epochs of a cooldown that are left.
	Epochs, Bad, Cooling int
}

// Step takes the measure of an epoch, and returns the learning rate of the next.
func (r *ReduceLROnPlateau) Step(measure float64) float64 {
	if f := or(r.Factor, 0.1); !(f >= 0 && f < 1) {
		misuse("ReduceLROnPlateau: Factor is %v, and is at least 0 and less than 1", f)
	}
	if r.Epochs == 0 {
		r.Best = math.Inf(1)
		if r.Maximize {
			r.Best = math.Inf(-1)
		}
	}
	r.Bad++
	if r.better(measure) {
		r.Best, r.Bad = measure, 0
	}
	r.Epochs++
	if r.Cooling > 0 {
		r.Cooling--
		r.Bad = 0
	}
	if float64(r.Bad) > or(r.Patience, 10) {
		lower := max(r.LR*or(r.Factor, 0.1), r.MinLR)
		if r.LR-lower > or(r.Eps, 1e-8) {
			r.LR = lower
		}
		r.Cooling, r.Bad = r.Cooldown, 0
	}
	return r.LR
}

// better compares a measure with the best. NaN is never better.
func (r *ReduceLROnPlateau) better(measure float64) bool {
	best, margin := r.Best, or(r.Threshold, 1e-4)
	switch {
	case r.Maximize && r.Absolute:
		return measure > best+margin
	case r.Maximize:
		return measure > best*(1+margin)
	case r.Absolute:
		return measure < best-margin
	}
	return measure < best*(1-margin)
}
