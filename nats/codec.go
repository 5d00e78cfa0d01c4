package nats

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
)

// Note [Payload] The payload of a value in one message is
//
//	length of the head, 4 bytes | head | bytes of the blocks
//
// with the head as defined by package crossing. A value that is too large for one message is stored
// in chunks, and its message references them:
//
//	largeMark, 4 bytes | length of a chunk, 8 bytes | length of the head, 8 bytes | id
//
// The chunks contain the head and then each block in turn. A chunk never spans the head and a
// block, or two blocks, so each chunk is sent from its source and received into its destination
// without an intermediate copy.
const (
	lengthSize = 4
	largeMark  = 1 << 31
	largeSize  = lengthSize + 8 + 8
)

// An outgoing is an encoded value. The value must stay alive until [outgoing.releaseValue].
type outgoing struct {
	enc  codec.Encoder
	head []byte
	load [][]byte
	size int
	body []byte // buffer reused for the next value
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// encode encodes v. The result is never nil. The caller must call [outgoing.releaseValue], even
// if encode returns an error. It returns [ErrShared] if v cannot be copied.
func encode[T any](plan *codec.Plan[T], v T) (*outgoing, error) {
	o := outgoings.Get().(*outgoing)
	o.enc.ByValue = true
	o.enc.Reset(o.body)
	err := plan.Encode(&o.enc, v)
	if err != nil {
		return o, err
	}
	m := o.enc.Message()
	if cap(m.Body) <= mostKept {
		o.body = m.Body
	}
	blocks, ok, err := crossing.Copies(m)
	if err != nil {
		return o, err
	}
	if !ok {
		return o, ErrShared
	}
	o.head, o.load, err = crossing.Head(m, blocks)
	o.size = lengthSize + len(o.head)
	for _, l := range o.load {
		o.size += len(l)
	}
	return o, err
}

// releaseValue releases the encoded value; sent reports whether it was stored. The caller must not
// use o afterwards.
func (o *outgoing) releaseValue(sent bool) {
	o.enc.Done(sent)
	o.head, o.load = nil, nil
	outgoings.Put(o)
}

// mostKept is the largest buffer, in bytes, that is kept for reuse.
const mostKept = 1 << 20

// payloads pools message buffers, because the runtime must zero each newly allocated large buffer.
var payloads sync.Pool

// encodePayload returns the encoded value in a pooled buffer. The value must fit into one message.
// The caller must return the buffer with [write.release].
func (o *outgoing) encodePayload() []byte {
	if b, ok := payloads.Get().(*[]byte); ok && cap(*b) >= o.size {
		return o.appendPayload((*b)[:0])
	}
	return o.appendPayload(make([]byte, 0, o.size))
}

// release returns the message's buffer to the pool. It must not be called before the message is
// stored.
func (w *write) release() {
	b := w.m.Data
	w.m.Data = nil
	payloads.Put(&b)
}

// appendPayload appends the payload of a value that fits into one message to b and returns the
// extended slice. See Note [Payload].
func (o *outgoing) appendPayload(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(o.head)))
	b = append(b, o.head...)
	for _, l := range o.load {
		b = append(b, l...)
	}
	return b
}

// A large is the message payload that references a value in chunks.
type large struct {
	id   string
	size uint64 // length of a chunk, in bytes
	head uint64 // length of the head, in bytes
}

func (l large) appendReference(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, largeMark)
	b = binary.LittleEndian.AppendUint64(b, l.size)
	b = binary.LittleEndian.AppendUint64(b, l.head)
	return append(b, l.id...)
}

// largeOf parses a payload that references chunks. ok is false if the payload contains the value
// itself. It returns an error that wraps [wire.ErrFormat] for a malformed payload.
func largeOf(b []byte) (l large, ok bool, err error) {
	if len(b) < lengthSize {
		return l, false, fmt.Errorf("%w: message has %d bytes, want at least 4", codec.ErrFormat, len(b))
	}
	if binary.LittleEndian.Uint32(b) != largeMark {
		return l, false, nil
	}
	const mostHead, mostChunk, mostID = 1 << 30, 1 << 30, 64
	if len(b) > largeSize {
		l = large{string(b[largeSize:]), binary.LittleEndian.Uint64(b[lengthSize:]),
			binary.LittleEndian.Uint64(b[lengthSize+8:])}
	}
	if l.size == 0 || l.size > mostChunk || l.head == 0 || l.head > mostHead || len(l.id) > mostID || !isToken(l.id) {
		return l, false, fmt.Errorf("%w: invalid reference to a value in chunks of %d bytes", codec.ErrFormat, l.size)
	}
	return l, true, nil
}

// splitPieces splits b into slices of at most size bytes, which share the memory of b. An empty
// b has none.
func splitPieces(b []byte, size int) (all [][]byte) {
	for len(b) > size {
		all, b = append(all, b[:size]), b[size:]
	}
	if len(b) > 0 {
		all = append(all, b)
	}
	return all
}

// splitPieces returns the chunks of the value, of at most size bytes each. They are valid until
// [outgoing.releaseValue].
func (o *outgoing) splitPieces(size int) [][]byte {
	all := splitPieces(o.head, size)
	for _, part := range o.load {
		all = append(all, splitPieces(part, size)...)
	}
	return all
}

// decode decodes the payload of a value in one message. [largeOf] must have accepted b and found
// no reference. The caller must close the shared memory that the value holds. The error wraps
// [codec.ErrFormat] if b is malformed.
func decode[T any](plan *codec.Plan[T], b []byte) (v T, err error) {
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-lengthSize) {
		return v, fmt.Errorf("%w: head has %d bytes, its message %d", codec.ErrFormat, n, len(b))
	}
	head, rest := b[lengthSize:lengthSize+n], b[lengthSize+n:]
	m, parts, err := crossing.Open(head)
	if err != nil {
		return v, err
	}
	for _, p := range parts {
		if len(p) > len(rest) {
			crossing.Release(m.Blocks)
			return v, fmt.Errorf("%w: message of %d bytes is truncated", codec.ErrFormat, len(b))
		}
		rest = rest[copy(p, rest):]
	}
	if len(rest) > 0 {
		crossing.Release(m.Blocks)
		return v, fmt.Errorf("%w: %d bytes after the last block", codec.ErrFormat, len(rest))
	}
	return crossing.Decode(plan, m)
}

// keepAlive keeps v reachable until the call.
func keepAlive[T any](v T) { runtime.KeepAlive(v) }

// isToken reports whether a name consists of letters, digits, - and _, so that it can be used as a
// token of a subject.
func isToken(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return name != ""
}
