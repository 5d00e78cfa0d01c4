package optim

import (
	"cmp"
	"math"
	"slices"
)

// Schedule computes the learning rate of each epoch, or of each step if Follow is called once a
// step. It has no state: a program that resumes at epoch 7 calls Follow with 7. The rates equal
// those computed by the class with the same name in torch.optim.lr_scheduler. For other functions
// use [LambdaLR].
//
//	for epoch := range epochs {
//		optim.Follow(sgd, epoch, schedule)
//		train(sgd)
//	}
type Schedule interface {
	rate(epoch int) float64
}

// cycler is a Schedule that may also change the momentum.
type cycler interface {
	// momentum returns the momentum of an epoch; ok is false if the momentum must stay unchanged.
	momentum(epoch int) (m float64, ok bool)
}

// LR returns the learning rate of an epoch. It panics with an error that wraps [tensor.ErrMisuse]
// if a field of s is out of range, such as a Size of 0.
func LR(s Schedule, epoch int) float64 { return s.rate(epoch) }

// Follow sets the learning rate of an optimizer of this package, or of Groups of them, to the
// schedule's rate for an epoch. If the schedule cycles the momentum, Follow sets it too: Momentum
// of [SGD] and [RMSprop], or the first of the Betas of [Adam]. The caller must pass one schedule
// for all groups, or one for each group. Follow panics with an error that wraps
// [tensor.ErrMisuse] for another number of schedules, if o is of another package, if it has no
// momentum to cycle, or if a field of a schedule is out of range.
func Follow(o Optimizer, epoch int, schedules ...Schedule) {
	members := membersOf(o)
	if n := len(schedules); n != 1 && n != len(members) {
		misuse("Follow: %d groups: got %d schedules, want one for all or one for each", len(members), n)
	}
	for i, m := range members {
		s := schedules[min(i, len(schedules)-1)]
		m.options.setRate(s.rate(epoch))
		if c, ok := s.(cycler); ok {
			if x, ok := c.momentum(epoch); ok && !m.options.setMomentum(x) {
				misuse("Follow: %T cycles the momentum, but %s has none", s, m.name)
			}
		}
	}
}

// StepLR multiplies the learning rate by Gamma every Size epochs.
type StepLR struct {
	LR    float64 // learning rate of epoch 0
	Size  int     // epochs between reductions; must be at least 1
	Gamma float64 // factor of each reduction
}

func (s StepLR) rate(epoch int) float64 {
	requirePositive("StepLR", "Size", s.Size)
	return s.LR * math.Pow(s.Gamma, float64(epoch/s.Size))
}

// MultiStepLR multiplies the learning rate by Gamma at each epoch in Milestones.
type MultiStepLR struct {
	LR         float64 // learning rate of epoch 0
	Milestones []int   // epochs in any order; an epoch that is listed twice counts twice
	Gamma      float64
}

func (s MultiStepLR) rate(epoch int) float64 {
	passed := 0
	for _, m := range s.Milestones {
		if m <= epoch {
			passed++
		}
	}
	return s.LR * math.Pow(s.Gamma, float64(passed))
}

// ExponentialLR multiplies the learning rate by Gamma every epoch.
type ExponentialLR struct {
	LR    float64 // learning rate of epoch 0
	Gamma float64
}

func (s ExponentialLR) rate(epoch int) float64 { return s.LR * math.Pow(s.Gamma, float64(epoch)) }

// ConstantLR multiplies the learning rate by Factor for the first Epochs epochs.
type ConstantLR struct {
	LR     float64 // learning rate after Epochs
	Factor float64 // between 0 and 1
	Epochs int     // must be at least 1
}

func (s ConstantLR) rate(epoch int) float64 {
	requirePositive("ConstantLR", "Epochs", s.Epochs)
	if epoch < s.Epochs {
		return s.LR * s.Factor
	}
	return s.LR
}

// LinearLR multiplies the learning rate by a factor that goes linearly from Start to End in Epochs
// epochs, and then stays at End. With End 1 it is a warm-up.
type LinearLR struct {
	LR         float64 // learning rate that is multiplied
	Start, End float64 // first and last factor
	Epochs     int     // must be at least 1
}

func (s LinearLR) rate(epoch int) float64 {
	requirePositive("LinearLR", "Epochs", s.Epochs)
	return s.LR * (s.Start + (s.End-s.Start)*float64(min(epoch, s.Epochs))/float64(s.Epochs))
}

// PolynomialLR lowers the learning rate to 0 in Epochs epochs: it is LR · (1 - epoch/Epochs)^Power.
type PolynomialLR struct {
	LR     float64 // learning rate of epoch 0
	Epochs int     // must be at least 1
	Power  float64 // 1 is linear
}

func (s PolynomialLR) rate(epoch int) float64 {
	requirePositive("PolynomialLR", "Epochs", s.Epochs)
	return s.LR * math.Pow(1-float64(min(epoch, s.Epochs))/float64(s.Epochs), s.Power)
}

// CosineAnnealing lowers the learning rate from LR to Min in Epochs epochs along half a cosine
// wave, like CosineAnnealingLR. After Epochs the wave continues.
type CosineAnnealing struct {
	LR     float64 // learning rate of epoch 0
	Epochs int     // must be at least 1
	Min    float64 // minimum learning rate
}

func (s CosineAnnealing) rate(epoch int) float64 {
	requirePositive("CosineAnnealing", "Epochs", s.Epochs)
	return interpolateCosine(s.LR, s.Min, float64(epoch)/float64(s.Epochs))
}

// CosineAnnealingWarmRestarts lowers the learning rate to Min along half a cosine wave and then
// restarts at LR. The first wave takes Epochs epochs. Each following wave is Mult times as long as
// the one before. See Loshchilov and Hutter, SGDR, 2017, https://arxiv.org/abs/1608.03983.
type CosineAnnealingWarmRestarts struct {
	LR     float64 // learning rate at the beginning of each wave
	Epochs int     // epochs of the first wave; must be at least 1
	Mult   int     // growth factor of the waves; 0 means 1
	Min    float64 // learning rate at the end of each wave
}

func (s CosineAnnealingWarmRestarts) rate(epoch int) float64 {
	requirePositive("CosineAnnealingWarmRestarts", "Epochs", s.Epochs)
	if s.Mult < 0 {
		misuse("CosineAnnealingWarmRestarts: Mult %d: want at least 1", s.Mult)
	}
	at, length := s.wavePosition(epoch)
	return interpolateCosine(s.LR, s.Min, float64(at)/float64(length))
}

// wavePosition returns the position of an epoch in its cycle, from one restart to the next, and
// the length of this cycle, both in epochs.
func (s CosineAnnealingWarmRestarts) wavePosition(epoch int) (at, length int) {
	length = s.Epochs
	if s.Mult <= 1 {
		return epoch % length, length
	}
	for epoch >= length {
		epoch -= length
		if length > math.MaxInt/s.Mult {
			return epoch, math.MaxInt
		}
		length *= s.Mult
	}
	return epoch, length
}

// OneCycleLR raises the learning rate from MaxLR/DivFactor to MaxLR, and then lowers it far below
// the first rate. Follow must be called with the number of the step instead of the epoch. Nil
// pointers, and 0 for a divisor, select PyTorch's defaults. See Smith and Topin, Super-Convergence,
// 2018, https://arxiv.org/abs/1708.07120.
type OneCycleLR struct {
	MaxLR          float64
	Steps          int      // steps of the whole cycle, at least 2; later steps have the last rate
	PctStart       *float64 // fraction of the steps that raise the rate; nil means 0.3
	DivFactor      float64  // the first rate is MaxLR / DivFactor; 0 means 25
	FinalDivFactor float64  // the last rate is MaxLR / DivFactor / FinalDivFactor; 0 means 1e4
	Linear         bool     // linear instead of cosine
	ThreePhase     bool     // fall to the first rate as fast as the rise, then to the last

	CycleMomentum             bool     // cycle the momentum inversely to the learning rate, see Follow
	BaseMomentum, MaxMomentum *float64 // minimum and maximum momentum; nil means 0.85 and 0.95
}

func (s OneCycleLR) rate(step int) float64 {
	return s.interpolatePhase(step, func(p phase) (from, to float64) { return p.from, p.to })
}

func (s OneCycleLR) momentum(step int) (float64, bool) {
	if !s.CycleMomentum {
		return 0, false
	}
	base, most := valueOr(s.BaseMomentum, 0.85), valueOr(s.MaxMomentum, 0.95)
	bound := func(low bool) float64 {
		if low {
			return base
		}
		return most
	}
	return s.interpolatePhase(step, func(p phase) (from, to float64) { return bound(p.falling), bound(p.rising) }), true
}

// interpolatePhase interpolates between the bounds of the phase that contains step: the values
// that bounds returns for its beginning and its end. It panics with [tensor.ErrMisuse] if s.Steps
// is less than 2.
func (s OneCycleLR) interpolatePhase(step int, bounds func(p phase) (from, to float64)) float64 {
	if s.Steps < 2 {
		misuse("OneCycleLR: Steps %d: want at least 2", s.Steps)
	}
	phases := s.phaseList()
	at, begin := float64(min(step, s.Steps-1)), 0.0
	i := 0
	for ; i < len(phases)-1 && at > phases[i].end; i++ {
		begin = phases[i].end
	}
	from, to := bounds(phases[i])
	done := (at - begin) / (phases[i].end - begin)
	if s.Linear {
		return from + (to-from)*done
	}
	return interpolateCosine(from, to, done)
}

func (s OneCycleLR) initialRate() float64 { return s.MaxLR / cmp.Or(s.DivFactor, 25) }
func (s OneCycleLR) finalRate() float64   { return s.initialRate() / cmp.Or(s.FinalDivFactor, 1e4) }

// phase is a part of the cycle that moves the rate from one value to another. The momentum is at
// its minimum when the rate is at its maximum, which is at the beginning or the end of a phase.
type phase struct {
	end, from, to   float64
	falling, rising bool // begins at the maximum rate; ends at it
}

func (s OneCycleLR) phaseList() []phase {
	rise, end := valueOr(s.PctStart, 0.3)*float64(s.Steps), float64(s.Steps-1)
	up := phase{end: rise - 1, from: s.initialRate(), to: s.MaxLR, rising: true}
	if s.ThreePhase {
		return []phase{up, {end: 2*rise - 2, from: s.MaxLR, to: s.initialRate(), falling: true},
			{end: end, from: s.initialRate(), to: s.finalRate()}}
	}
	return []phase{up, {end: end, from: s.MaxLR, to: s.finalRate(), falling: true}}
}

// CyclicLR moves the learning rate up and down between LR and MaxLR. Follow must be called with the
// number of the step instead of the epoch. See Smith, Cyclical Learning Rates, 2017,
// https://arxiv.org/abs/1506.01186.
type CyclicLR struct {
	LR, MaxLR float64
	Up        int      // steps from LR to MaxLR; must be at least 1
	Down      int      // steps from MaxLR to LR; 0 means Up
	Halve     bool     // halve the amplitude each cycle: the mode triangular2
	Gamma     *float64 // decay of the amplitude per step: the mode exp_range; nil means 1

	CycleMomentum             bool     // cycle the momentum inversely to the learning rate, see Follow
	BaseMomentum, MaxMomentum *float64 // minimum and maximum momentum; nil means 0.8 and 0.9
}

func (s CyclicLR) rate(step int) float64 { return s.LR + (s.MaxLR-s.LR)*s.ratePosition(step) }

func (s CyclicLR) momentum(step int) (float64, bool) {
	base, most := valueOr(s.BaseMomentum, 0.8), valueOr(s.MaxMomentum, 0.9)
	return most - (most-base)*s.ratePosition(step), s.CycleMomentum
}

// ratePosition returns the position of the rate between its bounds, from 0 for LR to 1 for MaxLR.
// It panics with [tensor.ErrMisuse] if Up or Down is out of range.
func (s CyclicLR) ratePosition(step int) float64 {
	requirePositive("CyclicLR", "Up", s.Up)
	up, down := s.Up, s.Down
	if down == 0 {
		down = up
	}
	requirePositive("CyclicLR", "Down", down)
	cycle, at := step/(up+down), step%(up+down)
	height := float64(at) / float64(up)
	if at > up {
		height = float64(up+down-at) / float64(down)
	}
	if s.Halve {
		height /= math.Pow(2, float64(cycle))
	}
	return height * math.Pow(valueOr(s.Gamma, 1), float64(step))
}

// LambdaLR multiplies the learning rate LR by the result of Factor.
type LambdaLR struct {
	LR     float64
	Factor func(epoch int) float64
}

func (s LambdaLR) rate(epoch int) float64 { return s.LR * s.Factor(epoch) }

// SequentialLR applies one schedule after another. At each epoch of Milestones the next schedule
// begins with its own epoch 0.
type SequentialLR struct {
	Schedules  []Schedule
	Milestones []int // epochs in ascending order, one fewer than Schedules
}

func (s SequentialLR) rate(epoch int) float64 {
	part, epoch := s.activeSchedule(epoch)
	return part.rate(epoch)
}

func (s SequentialLR) momentum(epoch int) (float64, bool) {
	part, epoch := s.activeSchedule(epoch)
	if c, ok := part.(cycler); ok {
		return c.momentum(epoch)
	}
	return 0, false
}

// activeSchedule returns the schedule that is active at an epoch, and the epoch relative to its
// beginning. It panics with [tensor.ErrMisuse] if the number or order of the Milestones is wrong.
func (s SequentialLR) activeSchedule(epoch int) (Schedule, int) {
	if len(s.Schedules) != len(s.Milestones)+1 || !slices.IsSorted(s.Milestones) {
		misuse("SequentialLR: %d schedules: got milestones %v, want an ascending list with one fewer",
			len(s.Schedules), s.Milestones)
	}
	at, begin := 0, 0
	for at < len(s.Milestones) && epoch >= s.Milestones[at] {
		begin = s.Milestones[at]
		at++
	}
	return s.Schedules[at], epoch - begin
}

// interpolateCosine interpolates from one number to another along half a cosine wave. done is in
// [0, 1].
func interpolateCosine(from, to, done float64) float64 {
	return to + (from-to)*(1+math.Cos(math.Pi*done))/2
}

func requirePositive(schedule, field string, n int) {
	if n < 1 {
		misuse("%s: %s %d: want at least 1", schedule, field, n)
	}
}
