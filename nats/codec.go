package nats

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Note [Payload] A value in a message is
//
//	length of the head, 4 bytes | head | bytes of the blocks
//
// with the head of package crossing. A value that is too large for a message is in chunks, and the
// message says which:
//
//	largeMark, 4 bytes | length of a chunk, 8 bytes | length of the head, 8 bytes | id
//
// Its chunks are the head, and then the bytes of each block. No chunk has bytes of two of these, so
// each is written from where it lies, and copied to where it belongs.
const (
	lengthSize = 4
	largeMark  = 1 << 31
	largeSize  = lengthSize + 8 + 8
)

// An outgoing is a value as bytes. The value is held until done.
type outgoing struct {
	enc  wire.Encoder
	head []byte
	load [][]byte
	size int
	body []byte // memory for the next value
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// encode writes a value. The caller calls done in any case.
func encode[T any](plan *wire.Plan[T], v T) (*outgoing, error) {
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

// done says what became of the value. Nobody may use o any more.
func (o *outgoing) done(sent bool) {
	o.enc.Done(sent)
	o.head, o.load = nil, nil
	outgoings.Put(o)
}

// mostKept is the most memory that is kept for the next value.
const mostKept = 1 << 20

// payloads are memory for messages. A large one is cleared by the runtime when it is new.
var payloads sync.Pool

// payload returns a value that fits into a message, in memory that release takes back.
func (o *outgoing) payload() []byte {
	if b, ok := payloads.Get().(*[]byte); ok && cap(*b) >= o.size {
		return o.append((*b)[:0])
	}
	return o.append(make([]byte, 0, o.size))
}

// release takes back what payload returned, once the message is stored.
func (w *write) release() {
	b := w.m.Data
	w.m.Data = nil
	payloads.Put(&b)
}

// append writes a value that fits into a message.
func (o *outgoing) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(o.head)))
	b = append(b, o.head...)
	for _, l := range o.load {
		b = append(b, l...)
	}
	return b
}

// A large is what a message says of a value in chunks.
type large struct {
	id   string
	size uint64 // of a chunk
	head uint64 // length of the head
}

func (l large) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, largeMark)
	b = binary.LittleEndian.AppendUint64(b, l.size)
	b = binary.LittleEndian.AppendUint64(b, l.head)
	return append(b, l.id...)
}

// largeOf reads what a message says of a value in chunks; ok is false for another one.
func largeOf(b []byte) (l large, ok bool, err error) {
	if len(b) < lengthSize {
		return l, false, fmt.Errorf("%w: a message of %d bytes", wire.ErrFormat, len(b))
	}
	if binary.LittleEndian.Uint32(b) != largeMark {
		return l, false, nil
	}
	const mostHead, mostChunk, mostID = 1 << 30, 1 << 30, 64
	if len(b) > largeSize {
		l = large{string(b[largeSize:]), binary.LittleEndian.Uint64(b[lengthSize:]),
			binary.LittleEndian.Uint64(b[lengthSize+8:])}
	}
	if l.size == 0 || l.size > mostChunk || l.head == 0 || l.head > mostHead || len(l.id) > mostID || !plain(l.id) {
		return l, false, fmt.Errorf("%w: a value in chunks, of %d bytes each, that it does not name", wire.ErrFormat, l.size)
	}
	return l, true, nil
}

// pieces are the parts of some bytes, of a chunk each.
func pieces(b []byte, size int) (all [][]byte) {
	for len(b) > size {
		all, b = append(all, b[:size]), b[size:]
	}
	if len(b) > 0 {
		all = append(all, b)
	}
	return all
}

// pieces are the chunks of a value.
func (o *outgoing) pieces(size int) [][]byte {
	all := pieces(o.head, size)
	for _, part := range o.load {
		all = append(all, pieces(part, size)...)
	}
	return all
}

// decode reads a value that is a message.
func decode[T any](plan *wire.Plan[T], b []byte) (v T, err error) {
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-lengthSize) {
		return v, fmt.Errorf("%w: a head of %d bytes in a message of %d", wire.ErrFormat, n, len(b))
	}
	head, rest := b[lengthSize:lengthSize+n], b[lengthSize+n:]
	m, parts, err := crossing.Open(head)
	if err != nil {
		return v, err
	}
	for _, p := range parts {
		if len(p) > len(rest) {
			crossing.Release(m.Blocks)
			return v, fmt.Errorf("%w: a message of %d bytes ends too early", wire.ErrFormat, len(b))
		}
		rest = rest[copy(p, rest):]
	}
	if len(rest) > 0 {
		crossing.Release(m.Blocks)
		return v, fmt.Errorf("%w: %d bytes after the last block", wire.ErrFormat, len(rest))
	}
	return crossing.Decode(plan, m)
}

// keep has a value live until here.
func keep[T any](v T) { runtime.KeepAlive(v) }

// plain reports whether a name can be a part of a subject.
func plain(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return name != ""
}
