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

// A parcel is how an optimizer travels: numbers, parameters, and the state if it is shared.
type parcel[O any] struct {
	Options O
	Shared  bool
	Slots   []slot
}

// marshal writes an optimizer with options o.
func marshal[O any](e *codec.Encoder, c *core, o O) error {
	slots := slices.Clone(c.slots)
	for i := range slots {
		if !c.shared {
			slots[i].Steps, slots[i].State = nil, nil
		}
	}
	return codec.Encode(e, parcel[O]{o, c.shared, slots})
}

// unmarshal reads what marshal wrote, into a core that is to be bound to the options.
func unmarshal[O any, P interface {
	*O
	options
}](d *codec.Decoder, c *core) (o P, err error) {
	o = new(O)
	p, err := codec.Decode[parcel[O]](d)
	if err != nil {
		return o, err
	}
	*o = p.Options
	if problem := o.problem(); problem != "" {
		return o, fmt.Errorf("read an optimizer: %s: %w", problem, codec.ErrFormat)
	}
	*c = core{slots: p.Slots, shared: p.Shared}
	for _, s := range c.slots {
		if states, _ := o.states(); !s.fits(p.Shared, states) {
			return o, fmt.Errorf("read an optimizer whose state does not fit its parameters: %w", codec.ErrFormat)
		}
	}
	return o, nil
}

// fits reports whether a slot that arrived can be used.
func (s slot) fits(shared bool, states int) bool {
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

// options are the numbers of an optimizer.
type options interface {
	problem() string // with them; empty if there is none
	// states returns how many tensors of state a parameter has, and what their elements are at
	// first.
	states() (n int, start float64)
	// descent is a step as a device takes it.
	descent() device.Descent
	class() class // how PyTorch's state dict has them
	// follow sets the learning rate, and cycle the momentum; it reports whether there is one.
	follow(rate float64)
	cycle(momentum float64) bool
}
