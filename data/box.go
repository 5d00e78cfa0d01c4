package data

import "github.com/shoal-mp/shoal/wire"

// A Box is a value of an interface type, whose own type was given to Register, as a field of a Dataset or a Stream that can cross.
type Box[T any] struct{ It T }

// MarshalWire writes the value with the name of its type.
func (b *Box[T]) MarshalWire(e *wire.Encoder) error { return encodeAny(e, b.It) }

// UnmarshalWire is the counterpart of MarshalWire.
func (b *Box[T]) UnmarshalWire(d *wire.Decoder) (err error) {
	b.It, err = decodeAny[T](d)
	return err
}

// Workers that are processes return these.
func init() {
	wire.RegisterError("data.ErrRecords", ErrRecords)
	wire.RegisterError("data.ErrNoImages", ErrNoImages)
	wire.RegisterError("data.ErrTar", ErrTar)
}
