package nn

import (
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Dropout is a layer that sets random elements to zero in training mode, which is the mode until
// [Eval]. See Srivastava et al., Dropout, 2014, https://jmlr.org/papers/v15/srivastava14a.html.
type Dropout struct {
	Mode

	P float64 // probability that an element is dropped

	// Generator is the source of random numbers; nil is the default generator. It is not sent with
	// the layer: a worker that receives the layer draws from its own default generator.
	Generator *tensor.Generator `wire:"-" torch:"-"`
}

// Forward returns x in evaluation mode. In training mode it returns a copy of x with each element
// set to zero with probability P, and the other elements multiplied by 1/(1-P).
func (d *Dropout) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout(x, d.P, d.Generator, !d.Off)
}

// Dropout2d is a layer that sets whole channels to zero in training mode, each with probability P.
type Dropout2d Dropout

// Forward returns x, which must be (N, C, H, W), with channels dropped in training mode.
func (d *Dropout2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout2d(x, d.P, d.Generator, !d.Off)
}

// Mode holds the training or evaluation mode of a layer. A layer that behaves differently in the
// two modes embeds a Mode. The zero Mode is training.
type Mode struct {
	Off bool // evaluation mode; set by Eval, cleared by Train
}

// Train switches to training mode, or to evaluation mode if on is false. The functions [Train] and
// [Eval] call it for each layer of a module.
func (m *Mode) Train(on bool) { m.Off = !on }

// Train sets all layers of m to training mode. The mode is a field of each layer: it is sent with
// the layer, and goroutines that share a module share its mode.
func Train(m Module) { setTraining(m, true) }

// Eval sets all layers of m to evaluation mode: Dropout drops nothing, and BatchNorm2d uses its
// running statistics.
func Eval(m Module) { setTraining(m, false) }

func setTraining(m Module, on bool) {
	walk(reflect.ValueOf(m), "", func(_ string, v any) bool {
		if l, ok := v.(interface{ Train(on bool) }); ok {
			l.Train(on)
		}
		return true
	})
}
