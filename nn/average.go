package nn

import (
	"errors"

	"github.com/shoal-mp/shoal/tensor"
)

// Average sets each parameter and buffer of m to its mean over several states, for workers that
// train separately and synchronise periodically.
//
// The mean of integers, such as a number of batches, is truncated towards 0. The states may include
// State(m). Names, shapes and dtypes must match as for [Load]; otherwise Average returns the error
// of Load and leaves m unchanged. Without states it does nothing.
func Average(m Module, states ...map[string]*tensor.Tensor) error {
	own := State(m)
	var problems []error
	for _, state := range states {
		problems = append(problems, compareStates(own, state, sameDType))
	}
	if err := errors.Join(problems...); err != nil || len(states) == 0 {
		return err
	}
	for name, t := range own {
		sum := t.NewZeros(accumulationDType(t.DType()), t.Shape()...)
		for _, state := range states {
			sum.AddInPlace(t.NewEmpty(sum.DType(), t.Shape()...).CopyFrom(state[name]))
		}
		t.CopyFrom(sum.DivInPlace(tensor.Full(sum.DType(), float64(len(states)))).To(t.DType()))
	}
	return nil
}

// accumulationDType returns the dtype in which elements of dt are accumulated: Float32 for
// Float32, and otherwise Float64.
func accumulationDType(dt tensor.DType) tensor.DType {
	if dt == tensor.Float32 {
		return dt
	}
	return tensor.Float64
}
