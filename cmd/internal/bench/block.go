package bench

import (
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A block is one reference to a block of shared memory. Its receiver has a reference of its own and
// releases it.
type block struct{ shm.Handle }

// MarshalWire lets a block be part of a message.
func (b block) MarshalWire(e *wire.Encoder) error {
	e.Block(b.Handle)
	return e.Err()
}

// UnmarshalWire is the counterpart of MarshalWire.
func (b *block) UnmarshalWire(d *wire.Decoder) (err error) {
	b.Handle, err = d.Block()
	return err
}
