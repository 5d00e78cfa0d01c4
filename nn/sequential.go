package nn

import (
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
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
	codec.Custom((*Sequential).marshal, (*Sequential).unmarshal)
	codec.RegisterType[*PReLU]("nn.PReLU")
	codec.RegisterType[*GroupNorm]("nn.GroupNorm")
	codec.RegisterType[*BatchNorm1d]("nn.BatchNorm1d")
	codec.RegisterType[*Conv1d]("nn.Conv1d")
	codec.RegisterType[*Linear]("nn.Linear")
	codec.RegisterType[*Conv2d]("nn.Conv2d")
	codec.RegisterType[*MaxPool2d]("nn.MaxPool2d")
	codec.RegisterType[*AvgPool2d]("nn.AvgPool2d")
	codec.RegisterType[*BatchNorm2d]("nn.BatchNorm2d")
	codec.RegisterType[*LayerNorm]("nn.LayerNorm")
	codec.RegisterType[*Embedding]("nn.Embedding")
	codec.RegisterType[*Dropout]("nn.Dropout")
	codec.RegisterType[*Dropout2d]("nn.Dropout2d")
	codec.RegisterType[*Sequential]("nn.Sequential")
}

// marshal writes the list of the layers. The error wraps wire.ErrUnknownType where a layer's
// type is not registered, and wire.ErrFormat where a layer is nil.
func (s *Sequential) marshal(e *codec.Encoder) error {
	layers := make([]any, len(s.Layers))
	for i, l := range s.Layers {
		if isNil(l) {
			return fmt.Errorf("send layer %d of a Sequential, which is nil: %w", i, codec.ErrFormat)
		}
		layers[i] = l
	}
	return codec.Encode(e, layers)
}

// unmarshal reads what marshal wrote.
func (s *Sequential) unmarshal(d *codec.Decoder) error {
	layers, err := codec.Decode[[]any](d)
	if err != nil {
		return err
	}
	s.Layers = make([]Layer, len(layers))
	for i, l := range layers {
		var ok bool
		if s.Layers[i], ok = l.(Layer); !ok {
			return fmt.Errorf("read layer %d of a Sequential, which is a %T: %w", i, l, codec.ErrFormat)
		}
		if isNil(l) {
			return fmt.Errorf("read layer %d of a Sequential, which is a nil %T: %w", i, l, codec.ErrFormat)
		}
	}
	return nil
}

// isNil says whether a layer is none: Forward would end its caller with it.
func isNil(layer any) bool {
	v := reflect.ValueOf(layer)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
