package optim

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

func init() {
	codec.Custom((*SGD).marshal, (*SGD).unmarshal)
	codec.Custom((*Adam).marshal, (*Adam).unmarshal)
	codec.Custom((*RMSprop).marshal, (*RMSprop).unmarshal)
	codec.Custom((*Adagrad).marshal, (*Adagrad).unmarshal)
}

// encodedOptimizer is the wire form of an optimizer: options, parameters and, if shared, the state.
type encodedOptimizer[O any] struct {
	Options O
	Shared  bool
	Slots   []slot
}

// marshal encodes an optimizer with options o. It encodes the state only if it is shared.
func marshal[O any](e *codec.Encoder, c *core, o O) error {
	slots := slices.Clone(c.slots)
	for i := range slots {
		if !c.shared {
			slots[i].Steps, slots[i].State = nil, nil
		}
	}
	return codec.Encode(e, encodedOptimizer[O]{o, c.shared, slots})
}

// unmarshal decodes the output of marshal into c. The caller must bind c to the returned options.
// The error wraps [codec.ErrFormat] if the options are out of range or the state does not match the
// parameters.
func unmarshal[O any, P interface {
	*O
	options
}](d *codec.Decoder, c *core) (o P, err error) {
	o = new(O)
	p, err := codec.Decode[encodedOptimizer[O]](d)
	if err != nil {
		return o, err
	}
	*o = p.Options
	if problem := o.problem(); problem != "" {
		return o, fmt.Errorf("read optimizer: %s: %w", problem, codec.ErrFormat)
	}
	*c = core{slots: p.Slots, shared: p.Shared}
	for _, s := range c.slots {
		if stateCount, _ := o.stateCount(); !s.isValid(p.Shared, stateCount) {
			return o, fmt.Errorf("read optimizer: state does not match its parameters: %w", codec.ErrFormat)
		}
	}
	return o, nil
}

// isValid reports whether a decoded slot is valid: it has a parameter and, if shared, as many state
// tensors as the options require, with matching dtype and shape.
func (s slot) isValid(shared bool, states int) bool {
	if s.Param == nil || (s.Steps != nil) != shared {
		return false
	}
	if !shared {
		return len(s.State) == 0
	}
	if len(s.State) != states || s.Steps.DType() != tensor.Int64 || s.Steps.Numel() != 1 || !s.Steps.IsContiguous() {
		return false
	}
	for _, t := range s.State {
		if t == nil || t.DType() != s.Param.T.DType() || !slices.Equal(t.Shape(), s.Param.T.Shape()) ||
			!t.IsContiguous() {
			return false
		}
	}
	return true
}

// options are implemented by a pointer to the options of each optimizer.
type options interface {
	problem() string // describes an option that is out of range, or ""
	// stateCount returns the number of state tensors of a parameter, and the initial value of their
	// elements.
	stateCount() (n int, start float64)
	// descent returns the description of a step for a device.
	descent() device.Descent
	describeClass() class // describes the layout of PyTorch's state dict
	// setRate sets the learning rate. setMomentum sets the momentum, and reports whether the
	// optimizer has one.
	setRate(rate float64)
	setMomentum(momentum float64) bool
}
