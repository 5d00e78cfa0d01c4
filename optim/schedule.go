package optim

import (
	"cmp"
	"math"
	"slices"
)

// A Schedule says the learning rate of each epoch, or of each step if it is asked at each step. It
// has no state: a program that resumes at epoch 7 goes on with epoch 7. Its numbers are those of
// the schedule of the same name in torch.optim.lr_scheduler. [LambdaLR] is the one of a user's own.
//
//	for epoch := range epochs {
//		optim.Follow(sgd, epoch, schedule)
//		train(sgd)
//	}
type Schedule interface {
	rate(epoch int) float64
}

// A cycler is a Schedule that may change the momentum as well.
type cycler interface {
	// momentum returns the momentum of an epoch; ok is false where it stays as it is.
	momentum(epoch int) (m float64, ok bool)
}

// LR returns the learning rate that a schedule says of an epoch.
func LR(s Schedule, epoch int) float64 { return s.rate(epoch) }

// Follow gives an optimizer of this package, or Groups of them, the learning rate of an epoch, and
// the momentum where the schedule cycles it: SGD's and RMSprop's Momentum, or the first of Adam's
// Betas. There is one schedule for all groups, or one for each. It panics if o is of another
// package, or has no momentum that could be cycled.
func Follow(o Optimizer, epoch int, schedules ...Schedule) {
	members := membersOf(o)
	if n := len(schedules); n != 1 && n != len(members) {
		misuse("Follow of %d groups with %d schedules: one for all, or one for each", len(members), n)
	}
	for i, m := range members {
		s := schedules[min(i, len(schedules)-1)]
		m.options.follow(s.rate(epoch))
		if c, ok := s.(cycler); ok {
			if x, ok := c.momentum(epoch); ok && !m.options.cycle(x) {
				misuse("Follow of %T with %s: it has no momentum to be cycled", s, m.name)
			}
		}
	}
}

// StepLR multiplies the learning rate by Gamma every Size epochs.
type StepLR struct {
	LR    float64 // at first
	Size  int     // at least 1
	Gamma float64
}

func (s StepLR) rate(epoch int) float64 {
	positive("StepLR", "Size", s.Size)
	return s.LR * math.Pow(s.Gamma, float64(epoch/s.Size))
}

// MultiStepLR multiplies the learning rate by Gamma at each of the epochs in Milestones.
type MultiStepLR struct {
	LR         float64 // at first
	Milestones []int   // in any order; an epoch that is there twice counts twice
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
	LR    float64 // at first
	Gamma float64
}

func (s ExponentialLR) rate(epoch int) float64 { return s.LR * math.Pow(s.Gamma, float64(epoch)) }

// ConstantLR multiplies the learning rate by Factor for the first Epochs epochs.
type ConstantLR struct {
	LR     float64 // after them
	Factor float64 // between 0 and 1
	Epochs int     // at least 1
}

func (s ConstantLR) rate(epoch int) float64 {
	positive("ConstantLR", "Epochs", s.Epochs)
	if epoch < s.Epochs {
		return s.LR * s.Factor
	}
	return s.LR
}

// LinearLR multiplies the learning rate by a factor that goes from Start to End in Epochs epochs,
// and stays there: with End 1, a warm-up.
type LinearLR struct {
	LR         float64 // which the factors multiply
	Start, End float64 // factors
	Epochs     int     // at least 1
}

func (s LinearLR) rate(epoch int) float64 {
	positive("LinearLR", "Epochs", s.Epochs)
	return s.LR * (s.Start + (s.End-s.Start)*float64(min(epoch, s.Epochs))/float64(s.Epochs))
}

// PolynomialLR lowers the learning rate to 0 in Epochs epochs, by a power of what is left of them.
type PolynomialLR struct {
	LR     float64 // at first
	Epochs int     // at least 1
	Power  float64 // 1 is a straight line
}

func (s PolynomialLR) rate(epoch int) float64 {
	positive("PolynomialLR", "Epochs", s.Epochs)
	return s.LR * math.Pow(1-float64(min(epoch, s.Epochs))/float64(s.Epochs), s.Power)
}

// CosineAnnealing lowers the learning rate to Min in Epochs epochs along half a wave of the cosine,
// as CosineAnnealingLR does; if it goes on, the wave does.
type CosineAnnealing struct {
	LR     float64 // at first
	Epochs int     // at least 1
	Min    float64
}

func (s CosineAnnealing) rate(epoch int) float64 {
	positive("CosineAnnealing", "Epochs", s.Epochs)
	return cosine(s.LR, s.Min, float64(epoch)/float64(s.Epochs))
}

// CosineAnnealingWarmRestarts lowers the learning rate to Min along half a wave of the cosine, and
// begins again at LR: Loshchilov and Hutter, SGDR, 2017. The first wave is Epochs long, each that
// follows Mult times as long as the one before it.
type CosineAnnealingWarmRestarts struct {
	LR     float64 // at the beginning of a wave
	Epochs int     // of the first wave, at least 1
	Mult   int     // 0 stands for 1
	Min    float64
}

func (s CosineAnnealingWarmRestarts) rate(epoch int) float64 {
	positive("CosineAnnealingWarmRestarts", "Epochs", s.Epochs)
	if s.Mult < 0 {
		misuse("CosineAnnealingWarmRestarts: Mult is %d, and is at least 1", s.Mult)
	}
	at, length := s.wave(epoch)
	return cosine(s.LR, s.Min, float64(at)/float64(length))
}

// wave returns how far an epoch is in its wave, and how long that is.
func (s CosineAnnealingWarmRestarts) wave(epoch int) (at, length int) {
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

// OneCycleLR raises the learning rate from MaxLR/DivFactor to MaxLR, and lowers it far below where
// it began: Smith and Topin, Super-Convergence, 2018. It is asked at each step, not at each epoch.
// Nil, or 0 where a rate would be divided by it, stands for PyTorch's default.
type OneCycleLR struct {
	MaxLR          float64
	Steps          int      // of the whole cycle, at least 2; at a later step the rate is that of the last
	PctStart       *float64 // the share of steps that raise it; nil: 0.3
	DivFactor      float64  // 0: 25
	FinalDivFactor float64  // the last rate is MaxLR / DivFactor / FinalDivFactor; 0: 1e4
	Linear         bool     // along straight lines instead of the cosine
	ThreePhase     bool     // lower to where it began in as many steps as it rose, and then to the end

	CycleMomentum             bool     // the momentum falls where the rate rises, and rises where it falls, see Follow
	BaseMomentum, MaxMomentum *float64 // the least and the largest; nil: 0.85 and 0.95
}

func (s OneCycleLR) rate(step int) float64 {
	return s.along(step, func(p phase) (from, to float64) { return p.from, p.to })
}

func (s OneCycleLR) momentum(step int) (float64, bool) {
	if !s.CycleMomentum {
		return 0, false
	}
	base, most := or(s.BaseMomentum, 0.85), or(s.MaxMomentum, 0.95)
	bound := func(low bool) float64 {
		if low {
			return base
		}
		return most
	}
	return s.along(step, func(p phase) (from, to float64) { return bound(p.falling), bound(p.rising) }), true
}

// along returns where a step is on its way between the bounds of its phase.
func (s OneCycleLR) along(step int, bounds func(p phase) (from, to float64)) float64 {
	if s.Steps < 2 {
		misuse("OneCycleLR: Steps is %d, and is at least 2", s.Steps)
	}
	phases := s.phases()
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
	return cosine(from, to, done)
}

func (s OneCycleLR) first() float64 { return s.MaxLR / cmp.Or(s.DivFactor, 25) }
func (s OneCycleLR) last() float64  { return s.first() / cmp.Or(s.FinalDivFactor, 1e4) }

// A phase goes from one rate to another, and ends with a step. The momentum is the least at the
// rate's peak, with which a phase begins or ends.
type phase struct {
	end, from, to   float64
	falling, rising bool // from the peak; to the peak
}

func (s OneCycleLR) phases() []phase {
	rise, end := or(s.PctStart, 0.3)*float64(s.Steps), float64(s.Steps-1)
	up := phase{end: rise - 1, from: s.first(), to: s.MaxLR, rising: true}
	if s.ThreePhase {
		return []phase{up, {end: 2*rise - 2, from: s.MaxLR, to: s.first(), falling: true},
			{end: end, from: s.first(), to: s.last()}}
	}
	return []phase{up, {end: end, from: s.MaxLR, to: s.last(), falling: true}}
}

// CyclicLR lets the learning rate go up and down between LR and MaxLR: Smith, Cyclical Learning
// Rates, 2017. It is asked at each step.
type CyclicLR struct {
	LR, MaxLR float64
	Up        int      // steps from LR to MaxLR, at least 1
	Down      int      // and back; 0 stands for Up
	Halve     bool     // each cycle rises half as far as the one before: the mode triangular2
	Gamma     *float64 // the rise is multiplied by it every step: the mode exp_range; nil: 1

	CycleMomentum             bool     // the momentum falls where the rate rises, and rises where it falls, see Follow
	BaseMomentum, MaxMomentum *float64 // the least and the largest; nil: 0.8 and 0.9
}

func (s CyclicLR) rate(step int) float64 { return s.LR + (s.MaxLR-s.LR)*s.height(step) }

func (s CyclicLR) momentum(step int) (float64, bool) {
	base, most := or(s.BaseMomentum, 0.8), or(s.MaxMomentum, 0.9)
	return most - (most-base)*s.height(step), s.CycleMomentum
}

// height is how high a step is between the bounds, from 0 to 1.
func (s CyclicLR) height(step int) float64 {
	positive("CyclicLR", "Up", s.Up)
	up, down := s.Up, s.Down
	if down == 0 {
		down = up
	}
	positive("CyclicLR", "Down", down)
	cycle, at := step/(up+down), step%(up+down)
	height := float64(at) / float64(up)
	if at > up {
		height = float64(up+down-at) / float64(down)
	}
	if s.Halve {
		height /= math.Pow(2, float64(cycle))
	}
	return height * math.Pow(or(s.Gamma, 1), float64(step))
}

// LambdaLR multiplies the learning rate by what Factor says of the epoch.
type LambdaLR struct {
	LR     float64
	Factor func(epoch int) float64
}

func (s LambdaLR) rate(epoch int) float64 { return s.LR * s.Factor(epoch) }

// SequentialLR is one schedule after the other. The next begins at each of the epochs in
// Milestones, and with its own epoch 0.
type SequentialLR struct {
	Schedules  []Schedule
	Milestones []int // one fewer than schedules, rising
}

func (s SequentialLR) rate(epoch int) float64 {
	part, epoch := s.part(epoch)
	return part.rate(epoch)
}

func (s SequentialLR) momentum(epoch int) (float64, bool) {
	part, epoch := s.part(epoch)
	if c, ok := part.(cycler); ok {
		return c.momentum(epoch)
	}
	return 0, false
}

// part returns the schedule that an epoch is in, and which epoch of that it is.
func (s SequentialLR) part(epoch int) (Schedule, int) {
	if len(s.Schedules) != len(s.Milestones)+1 || !slices.IsSorted(s.Milestones) {
		misuse("SequentialLR of %d schedules with the milestones %v: they rise, and there is one fewer",
			len(s.Schedules), s.Milestones)
	}
	at, begin := 0, 0
	for at < len(s.Milestones) && epoch >= s.Milestones[at] {
		begin = s.Milestones[at]
		at++
	}
	return s.Schedules[at], epoch - begin
}

// cosine goes from one number to another along half a wave; done is the share of it that is over.
func cosine(from, to, done float64) float64 { return to + (from-to)*(1+math.Cos(math.Pi*done))/2 }

func positive(schedule, field string, n int) {
	if n < 1 {
		misuse("%s: %s is %d, and is at least 1", schedule, field, n)
	}
}
