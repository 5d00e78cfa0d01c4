package nn

import (
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Dropout layer drops elements while it trains. It trains until Eval is called, as in PyTorch.
type Dropout struct {
	Mode

	P float64 // the probability to be dropped

	// Generator is where random numbers come from. It stays in its process: a worker that receives
	// a layer draws from its default generator, as every layer does without one; it seeds that with
	// tensor.ManualSeed, or sets another.
	Generator *tensor.Generator `wire:"-" torch:"-"`
}

// Forward returns x with elements dropped and the others enlarged, or x itself outside of training.
func (d *Dropout) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout(x, d.P, d.Generator, !d.Off)
}

// A Dropout2d layer drops whole channels while it trains.
type Dropout2d Dropout

// Forward takes x (N, C, H, W).
func (d *Dropout2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Dropout2d(x, d.P, d.Generator, !d.Off)
}

// A Mode says how a layer behaves that does something else in training than afterwards. A layer
// embeds it; the zero value is training.
type Mode struct {
	Off bool // set by Eval: the layer behaves as it does when it is used
}

// Train switches the behaviour of training on or off: [Train] and [Eval] call it on each part of a
// module.
func (m *Mode) Train(on bool) { m.Off = !on }

// Train sets all layers of m to how they behave in training. The mode is part of the layers, so
// that it travels with them; goroutines that share a module share it.
func Train(m Module) { setTraining(m, true) }

// Eval sets all layers of m to how they behave when they are used: Dropout passes everything on.
func Eval(m Module) { setTraining(m, false) }

func setTraining(m Module, on bool) {
	walk(reflect.ValueOf(m), "", func(_ string, v any) bool {
		if l, ok := v.(interface{ Train(on bool) }); ok {
			l.Train(on)
		}
		return true
	})
}
