package nn

import (
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Sequential applies layers one after another. In the names of parameters the layers are 0, 1 and
// so on.
//
// A Sequential travels if all of its layers do: those of this package, and others whose pointer
// type is registered by wire.RegisterType.
type Sequential struct {
	Layers []Layer `nn:"-"`
}

// NewSequential returns a Sequential of the layers.
func NewSequential(layers ...Layer) *Sequential { return &Sequential{layers} }

// Forward passes x to the first layer, its output to the second layer and so on.
func (s *Sequential) Forward(x *autograd.Var) *autograd.Var {
	for _, l := range s.Layers {
		x = l.Forward(x)
	}
	return x
}

// Layers travel in an any, which arrives as the type that was sent.
func init() {
	wire.Custom((*Sequential).marshal, (*Sequential).unmarshal)
	wire.RegisterType[*PReLU]("nn.PReLU")
	wire.RegisterType[*GroupNorm]("nn.GroupNorm")
	wire.RegisterType[*BatchNorm1d]("nn.BatchNorm1d")
	wire.RegisterType[*Conv1d]("nn.Conv1d")
	wire.RegisterType[*Linear]("nn.Linear")
	wire.RegisterType[*Conv2d]("nn.Conv2d")
	wire.RegisterType[*MaxPool2d]("nn.MaxPool2d")
	wire.RegisterType[*AvgPool2d]("nn.AvgPool2d")
	wire.RegisterType[*BatchNorm2d]("nn.BatchNorm2d")
	wire.RegisterType[*LayerNorm]("nn.LayerNorm")
	wire.RegisterType[*Embedding]("nn.Embedding")
	wire.RegisterType[*Dropout]("nn.Dropout")
	wire.RegisterType[*Dropout2d]("nn.Dropout2d")
	wire.RegisterType[*Sequential]("nn.Sequential")
}

// marshal writes the list of the layers. The error wraps wire.ErrUnknownType where a layer's
// type is not registered, and wire.ErrFormat where a layer is nil.
func (s *Sequential) marshal(e *wire.Encoder) error {
	layers := make([]any, len(s.Layers))
	for i, l := range s.Layers {
		if isNil(l) {
			return fmt.Errorf("send layer %d of a Sequential, which is nil: %w", i, wire.ErrFormat)
		}
		layers[i] = l
	}
	return wire.Encode(e, layers)
}

// unmarshal reads what marshal wrote.
func (s *Sequential) unmarshal(d *wire.Decoder) error {
	layers, err := wire.Decode[[]any](d)
	if err != nil {
		return err
	}
	s.Layers = make([]Layer, len(layers))
	for i, l := range layers {
		var ok bool
		if s.Layers[i], ok = l.(Layer); !ok {
			return fmt.Errorf("read layer %d of a Sequential, which is a %T: %w", i, l, wire.ErrFormat)
		}
		if isNil(l) {
			return fmt.Errorf("read layer %d of a Sequential, which is a nil %T: %w", i, l, wire.ErrFormat)
		}
	}
	return nil
}

// isNil says whether a layer is none: Forward would end its caller with it.
func isNil(layer any) bool {
	v := reflect.ValueOf(layer)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
