package codec

import (
	"math"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A Message is the content that crosses a process boundary: bytes, and the blocks they refer to by
// index. An [Encoder] makes messages and a [Decoder] reads them.
//
// A message in a queue holds one reference of each entry of Blocks. The entries must be distinct,
// even if several values in Body share a block.
type Message struct {
	Body   []byte         // MessagePack, see PROTOCOL.md
	Blocks []arena.Handle // at most MaxBlocks, none of them 0
	Given  []arena.Handle // Blocks with references handed over on sending
}

// MaxBlocks is the maximum number of distinct blocks in a message.
const MaxBlocks = 1 << 16

// Limits bound the output of an Encoder and the input of a Decoder. The zero value means the
// defaults.
type Limits struct {
	Depth int // maximum nesting of pointers, slices, maps, interfaces and Marshalers; default 100
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

// bytes returns the limit of the body. It is at most the longest string that a MessagePack header
// can describe, so lengths need no second check.
func (l Limits) bytes() int {
	if l.Bytes > 0 {
		return int(min(int64(l.Bytes), math.MaxUint32))
	}
	return defaultBytes
}

// A Marshaler encodes itself. MarshalWire must write exactly one MessagePack value, which must not
// be nil. A type with MarshalWire must also have UnmarshalWire. Either may have a value or pointer
// receiver.
type Marshaler interface {
	MarshalWire(e *Encoder) error
}

// An Unmarshaler decodes itself. UnmarshalWire must read the value that MarshalWire wrote; its
// receiver is the zero value. If it takes blocks from d (see [Decoder.Block]), it must register
// their release with [Decoder.OnDone], for the case that a later part of the message is malformed.
type Unmarshaler interface {
	UnmarshalWire(d *Decoder) error
}

// Blocks takes blocks out of a message for a [Decoder].
//
// The receiver of a message owns one reference of each block in its table. Take must return the
// i-th handle with a reference of its own. The Decoder calls Take once for each use, so an
// implementation must retain the block on every call, or hand over the message's reference on the
// first one. i is always within the table.
type Blocks interface {
	Take(i int) (arena.Handle, error)
}
