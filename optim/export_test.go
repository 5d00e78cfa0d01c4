package optim

import (
	"sync/atomic"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Parcel is what an SGD is sent as.
type Parcel = encodedOptimizer[SGDOptions]

// Slots returns one slot.
func Slots(p *autograd.Param, steps *tensor.Tensor, state ...*tensor.Tensor) []slot {
	return []slot{{p, steps, state}}
}

func coreOf(o Optimizer) *core {
	switch o := o.(type) {
	case *SGD:
		return &o.core
	case *Adam:
		return &o.core
	case *Adagrad:
		return &o.core
	}
	return &o.(*RMSprop).core
}

// ParamsOf returns the parameters of o.
func ParamsOf(o Optimizer) (params []*autograd.Param) {
	for _, s := range coreOf(o).slots {
		params = append(params, s.Param)
	}
	return params
}

// StepsOf returns how many steps the parameters of o have taken, those that have taken one.
func StepsOf(o Optimizer) (steps []int64) {
	for _, s := range coreOf(o).slots {
		if s.Steps != nil {
			steps = append(steps, atomic.LoadInt64(&tensor.Data[int64](s.Steps)[0]))
		}
	}
	return steps
}
