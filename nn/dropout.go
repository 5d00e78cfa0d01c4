package nn

import (
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Dropout layer sets elements to zero in training, which is the mode until Eval (Srivastava and
// others, 2014).
type Dropout struct {
	Mode

	P float64 // probability that an element is dropped

	// Generator makes the random numbers; nil is the default generator. It does not travel: a
	// worker that receives a layer draws from its own default generator.
	Generator *tensor.Generator `wire:"-" torch:"-"`
}

// Forward returns x with elements set to zero and the others multiplied by 1/(1-P) in training, and
// x itself in evaluation.
func (d *Dropout) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout(x, d.P, d.Generator, !d.Off)
}

// A Dropout2d layer sets whole channels to zero in training, each with probability P.
type Dropout2d Dropout

// Forward takes x (N, C, H, W).
func (d *Dropout2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout2d(x, d.P, d.Generator, !d.Off)
}

// A Mode says whether a layer is in training or in evaluation. A layer that distinguishes them
// embeds a Mode. The zero Mode is training.
type Mode struct {
	Off bool // the layer is in evaluation; Eval sets it, and Train clears it
}

// Train switches to training, or to evaluation if on is false. The functions [Train] and [Eval]
// call it for each part of a module.
func (m *Mode) Train(on bool) { m.Off = !on }

// Train sets all layers of m to training. The mode is a field of the layers: it travels with them,
// and goroutines that share a module share its mode.
func Train(m Module) { setTraining(m, true) }

// Eval sets all layers of m to evaluation: Dropout drops nothing, and BatchNorm2d uses its running
// statistics.
func Eval(m Module) { setTraining(m, false) }

func setTraining(m Module, on bool) {
	walk(reflect.ValueOf(m), "", func(_ string, v any) bool {
		if l, ok := v.(interface{ Train(on bool) }); ok {
			l.Train(on)
		}
		return true
	})
}
