package wire

import (
	"math"

	"github.com/shoal-mp/shoal/internal/shm"
)

// A Message crosses a process boundary. It is bytes, and the blocks to which the bytes refer by
// index.
//
// A message in a queue holds one reference of each entry of Blocks. The entries are distinct,
// however many values in Body share a block. An Encoder makes messages and a Decoder reads them.
type Message struct {
	Body   []byte       // MessagePack, see PROTOCOL.md
	Blocks []shm.Handle // at most MaxBlocks, none of them 0
	Given  []shm.Handle // those of Blocks whose reference the message takes, once it is sent
}

// MaxBlocks is how many distinct blocks one message can carry.
const MaxBlocks = 1 << 16

// Limits bound what an Encoder writes and a Decoder reads. The zero value means the defaults.
type Limits struct {
	Depth int // how deep values may nest by pointers, slices, maps, interfaces and Marshalers; default 100
	Bytes int // length of Message.Body; default 64 MiB
}

const (
	defaultDepth = 100
	defaultBytes = 64 << 20
)

func (l Limits) depth() int {
	if l.Depth > 0 {
		return l.Depth
	}
	return defaultDepth
}

// bytes is at most the longest string for which MessagePack has a header, so no length needs a
// second check.
func (l Limits) bytes() int {
	if l.Bytes > 0 {
		return int(min(int64(l.Bytes), math.MaxUint32))
	}
	return defaultBytes
}

// A Marshaler writes itself as exactly one MessagePack value, which must not be nil. A type with
// MarshalWire needs UnmarshalWire as well. Both may be methods of the value or of the pointer.
type Marshaler interface {
	MarshalWire(e *Encoder) error
}

// An Unmarshaler reads what its type's MarshalWire wrote, into its zero value. It may take blocks
// from d (see Decoder.Block) that it has to give back if a later part of the message is malformed.
// It says so with d.OnDone.
type Unmarshaler interface {
	UnmarshalWire(d *Decoder) error
}

// Blocks takes blocks out of a message, for a Decoder.
//
// The receiver of a message owns one reference of each block in its table. Take returns the i-th
// handle together with a reference of its own. The Decoder calls Take once for each use. So an
// implementation retains the block on every call, or hands over the message's reference on the
// first one. i is always within the table.
type Blocks interface {
	Take(i int) (shm.Handle, error)
}
