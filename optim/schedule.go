package optim

import "math"

// A Schedule says the learning rate of each epoch. It has no state: who resumes at epoch 7 begins with At(7).
//
//	for epoch := range epochs {
//		sgd.LR = schedule.At(epoch)
//		train(sgd)
//	}
type Schedule interface {
	At(epoch int) float64
}

// StepLR multiplies the learning rate by Gamma every Size epochs, as torch.optim.lr_scheduler.StepLR.
type StepLR struct {
	LR    float64 // at first
	Size  int     // at least 1
	Gamma float64
}

// At returns the learning rate of an epoch.
func (s StepLR) At(epoch int) float64 {
	if s.Size < 1 {
		misuse("StepLR with steps of %d epochs: they are at least 1", s.Size)
	}
	return s.LR * math.Pow(s.Gamma, float64(epoch/s.Size))
}

// CosineAnnealing lowers the learning rate to Min in Epochs epochs along half a wave of the cosine, as
// torch.optim.lr_scheduler.CosineAnnealingLR; if it goes on, the wave does.
type CosineAnnealing struct {
	LR     float64 // at first
	Epochs int     // at least 1
	Min    float64
}

// At returns the learning rate of an epoch.
func (c CosineAnnealing) At(epoch int) float64 {
	if c.Epochs < 1 {
		misuse("CosineAnnealing over %d epochs: they are at least 1", c.Epochs)
	}
	return c.Min + (c.LR-c.Min)*(1+math.Cos(math.Pi*float64(epoch)/float64(c.Epochs)))/2
}
