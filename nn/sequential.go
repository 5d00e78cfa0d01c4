package nn

import (
	"fmt"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Sequential applies layers one after another. In the names of parameters the layers are 0, 1 and
// so on.
//
// A Sequential can be sent to other processes if all of its layers can: layers of this package, and
// others with a pointer type that is registered by wire.RegisterType.
type Sequential struct {
	Layers []Layer `nn:"-"`
}

// NewSequential returns a Sequential of the layers, which must not be nil.
func NewSequential(layers ...Layer) *Sequential { return &Sequential{layers} }

// Forward passes x to the first layer, its output to the second layer, and so on.
func (s *Sequential) Forward(x *autograd.Var) *autograd.Var {
	for _, l := range s.Layers {
		x = l.Forward(x)
	}
	return x
}

// Layers are sent as any, so their types must be registered to be decoded as the type that was
// sent.
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

// marshal encodes the list of layers. The error wraps [codec.ErrUnknownType] if the type of a layer
// is not registered, and [codec.ErrFormat] if a layer is nil.
func (s *Sequential) marshal(e *codec.Encoder) error {
	layers := make([]any, len(s.Layers))
	for i, l := range s.Layers {
		if isNil(l) {
			return fmt.Errorf("send Sequential: layer %d is nil: %w", i, codec.ErrFormat)
		}
		layers[i] = l
	}
	return codec.Encode(e, layers)
}

// unmarshal decodes the output of marshal. The error wraps [codec.ErrFormat] if an element is not a
// [Layer] or is nil.
func (s *Sequential) unmarshal(d *codec.Decoder) error {
	layers, err := codec.Decode[[]any](d)
	if err != nil {
		return err
	}
	s.Layers = make([]Layer, len(layers))
	for i, l := range layers {
		var ok bool
		if s.Layers[i], ok = l.(Layer); !ok {
			return fmt.Errorf("read Sequential: layer %d: got %T, want a Layer: %w", i, l, codec.ErrFormat)
		}
		if isNil(l) {
			return fmt.Errorf("read Sequential: layer %d is a nil %T: %w", i, l, codec.ErrFormat)
		}
	}
	return nil
}

// isNil reports whether layer is nil or a nil pointer; its Forward would crash.
func isNil(layer any) bool {
	v := reflect.ValueOf(layer)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
