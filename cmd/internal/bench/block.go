package bench

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A block is a reference to a block of shared memory. The receiver of a message with a block gets
// its own reference and must release it.
type block struct{ arena.Handle }

// MarshalWire encodes b as part of a message.
func (b block) MarshalWire(e *codec.Encoder) error {
	e.Block(b.Handle)
	return e.Err()
}

// UnmarshalWire decodes a block encoded by MarshalWire.
func (b *block) UnmarshalWire(d *codec.Decoder) (err error) {
	b.Handle, err = d.Block()
	return err
}
