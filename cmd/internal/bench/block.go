package bench

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A block is one reference to a block of shared memory. Its receiver has a reference of its own and
// releases it.
type block struct{ arena.Handle }

// MarshalWire lets a block be part of a message.
func (b block) MarshalWire(e *codec.Encoder) error {
	e.Block(b.Handle)
	return e.Err()
}

// UnmarshalWire is the counterpart of MarshalWire.
func (b *block) UnmarshalWire(d *codec.Decoder) (err error) {
	b.Handle, err = d.Block()
	return err
}
