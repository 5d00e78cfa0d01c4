package data

import "github.com/shoal-mp/shoal/internal/wire"

// An Any holds a value of an interface type T, such as another Dataset, in a field of a Dataset or
// a Stream that is sent to worker processes. The type of the value is registered by
// wire.RegisterType.
type Any[T any] struct{ Value T }

// MarshalWire writes the value with the name of its type.
func (b *Any[T]) MarshalWire(e *wire.Encoder) error { return encodeAny(e, b.Value) }

// UnmarshalWire is the counterpart of MarshalWire.
func (b *Any[T]) UnmarshalWire(d *wire.Decoder) (err error) {
	b.Value, err = decodeAny[T](d)
	return err
}
