package data

import "github.com/shoal-mp/shoal/internal/wire"

// An Any is a value of an interface type, whose own type was given to Register, as a field of a
// Dataset or a Stream that can cross.
type Any[T any] struct{ Value T }

// MarshalWire writes the value with the name of its type.
func (b *Any[T]) MarshalWire(e *wire.Encoder) error { return encodeAny(e, b.Value) }

// UnmarshalWire is the counterpart of MarshalWire.
func (b *Any[T]) UnmarshalWire(d *wire.Decoder) (err error) {
	b.Value, err = decodeAny[T](d)
	return err
}
