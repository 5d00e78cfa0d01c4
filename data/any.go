package data

import "github.com/shoal-mp/shoal/internal/codec"

// An Any holds a value of an interface type T, such as another [Dataset], in a field of a Dataset
// or Stream that is sent to worker processes. The dynamic type of the value must be registered with
// wire.RegisterType.
type Any[T any] struct{ Value T }

// A traveler encodes and decodes itself. [Any] implements it.
type traveler interface {
	marshal(e *codec.Encoder) error
	unmarshal(d *codec.Decoder) error
}

func init() { codec.CustomMethods(traveler.marshal, traveler.unmarshal) }

// marshal writes the value with the name of its type.
func (b *Any[T]) marshal(e *codec.Encoder) error { return encodeAny(e, b.Value) }

// unmarshal reads a value written by marshal. The error wraps [codec.ErrFormat] if the value is
// not a T.
func (b *Any[T]) unmarshal(d *codec.Decoder) (err error) {
	b.Value, err = decodeAny[T](d)
	return err
}
