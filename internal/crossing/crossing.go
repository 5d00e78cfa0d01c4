package crossing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
)

// A Block describes one block of a message: either its number, which is known to the receiver, or
// [Copied] and the span of the bytes that follow the message.
type Block struct {
	Number uint64
	codec.Span
}

// Copied is the number of a block that is sent as a copy.
const Copied = math.MaxUint64

const (
	countSize = 4
	blockSize = 24
	maxBytes  = 1 << 48 // size of a block; addresses have at most 48 bits
)

// Send sends a message in a frame of the given kind, followed by the bytes of the copied blocks.
// blocks describes each block of m, in the same order. The caller must hold the blocks of m
// until Send returns. Send blocks while the receiver does not read. It may be called from
// several goroutines. It returns the errors of [Head] and of [link.Conn.Send], which closes the
// stream after a partial frame.
func Send(ctx context.Context, conn *link.Conn, kind byte, m codec.Message, blocks []Block) error {
	head, load, err := Head(m, blocks)
	if err != nil {
		return err
	}
	return conn.Send(ctx, kind, head, load...)
}

// Head returns the encoding of a message without the bytes of the copied blocks, and slices of
// these bytes in the sender's memory. blocks describes each block of m, in the same order. The
// caller must hold the blocks while it uses the slices. The error wraps codec.ErrFormat if a
// span is outside its block, or is the domain's error for a block that this process does not
// hold.
func Head(m codec.Message, blocks []Block) (head []byte, load [][]byte, err error) {
	head = binary.LittleEndian.AppendUint32(make([]byte, 0, countSize+blockSize*len(blocks)+len(m.Body)),
		uint32(len(blocks)))
	for i, b := range blocks {
		for _, n := range [...]uint64{b.Number, b.Begin, b.End} {
			head = binary.LittleEndian.AppendUint64(head, n)
		}
		if b.Number != Copied || b.End == 0 {
			continue
		}
		bytes, err := spanBytes(m.Blocks[i], b.Span)
		if err != nil {
			return nil, nil, err
		}
		load = append(load, bytes)
	}
	return append(head, m.Body...), load, nil
}

// Copies returns descriptions of the blocks of a message, all of them as copies. ok is false if a
// block cannot be copied, because a copy would have another meaning. The error means that the
// message is malformed.
func Copies(m codec.Message) (blocks []Block, ok bool, err error) {
	spans, good, err := codec.Spans(m)
	if err != nil {
		return nil, false, err
	}
	for i, s := range spans {
		if !good[i] {
			return nil, false, nil
		}
		blocks = append(blocks, Block{Copied, s})
	}
	return blocks, true, nil
}

// spanBytes returns the bytes of a span of a block. The error wraps codec.ErrFormat if the span is
// outside the block.
func spanBytes(h arena.Handle, s codec.Span) ([]byte, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	b, err := d.Bytes(h)
	if err == nil && (s.Begin > s.End || s.End > uint64(len(b))) {
		err = fmt.Errorf("%w: bytes %d to %d are outside of a block of %d bytes", codec.ErrFormat, s.Begin,
			s.End, len(b))
	}
	if err != nil {
		return nil, err
	}
	return b[s.Begin:s.End], nil
}

// Recv waits for a message in a frame of the given kind. The caller owns one reference to each
// copied block, in m.Blocks, and must pass them to an object or to [Release]. For the other
// blocks, m.Blocks is 0, and the caller must look up their numbers in blocks.
//
// If there is no memory for a copy, Recv skips the message and returns the domain's error. It
// closes the stream if a message is malformed; the error wraps codec.ErrFormat. Recv also
// returns the errors of [link.Conn.RecvLoad].
func Recv(ctx context.Context, conn *link.Conn, kind byte) (m codec.Message, blocks []Block, err error) {
	_, body, load, err := conn.RecvLoad(ctx, func(got byte, body []byte) (link.Load, int64, error) {
		if got != kind {
			return nil, 0, fmt.Errorf("%w: frame has kind %d, want %d", codec.ErrFormat, got, kind)
		}
		table, _, err := parseTable(body)
		if err != nil {
			return nil, 0, err
		}
		return allocCopies(table)
	})
	if err != nil {
		if errors.Is(err, codec.ErrFormat) {
			conn.Close() // the start of the next frame is unknown
		}
		if host := conn.Host(); host != "" && !errors.Is(err, link.ErrClosed) {
			err = fmt.Errorf("from %s: %w", host, err)
		}
		return m, nil, err
	}
	blocks, m.Body, _ = parseTable(body)
	if c, ok := load.(*copies); ok {
		m.Blocks = c.handles
	} else {
		m.Blocks = make([]arena.Handle, len(blocks))
	}
	return m, blocks, nil
}

// Check verifies that the copied blocks of a message contain all bytes that the message refers to.
// place maps the index of a block in m to its index in blocks. The error wraps codec.ErrFormat.
func Check(m codec.Message, blocks []Block, place func(i int) (k int)) error {
	if len(m.Blocks) == 0 {
		return nil
	}
	spans, ok, err := codec.Spans(m)
	if err != nil {
		return err
	}
	for i, s := range spans {
		b := blocks[place(i)]
		switch {
		case b.Number != Copied:
		case !ok[i]:
			return fmt.Errorf("%w: copied block belongs to neither a tensor nor a Memory", codec.ErrFormat)
		case s.End != 0 && (s.Begin < b.Begin || s.End > b.End):
			return fmt.Errorf("%w: need bytes %d to %d of a block, received only %d to %d", codec.ErrFormat,
				s.Begin, s.End, b.Begin, b.End)
		}
	}
	return nil
}

// parseTable decodes the table in front of a body. The body aliases b. The error wraps
// codec.ErrFormat.
func parseTable(b []byte) (blocks []Block, body []byte, err error) {
	if len(b) < countSize {
		return nil, nil, fmt.Errorf("%w: message has only %d bytes", codec.ErrFormat, len(b))
	}
	n, b := int64(binary.LittleEndian.Uint32(b)), b[countSize:]
	if n > codec.MaxBlocks || n*blockSize > int64(len(b)) {
		return nil, nil, fmt.Errorf("%w: message of %d bytes announces %d blocks", codec.ErrFormat, len(b), n)
	}
	var all uint64
	for range n {
		next := func() (v uint64) { v, b = binary.LittleEndian.Uint64(b), b[8:]; return v }
		x := Block{next(), codec.Span{Begin: next(), End: next()}}
		if x.Number != Copied && x.Span != (codec.Span{}) || x.Begin > x.End || x.End > maxBytes {
			return nil, nil, fmt.Errorf("%w: invalid range %d to %d of a block", codec.ErrFormat, x.Begin, x.End)
		}
		if all += x.End; all > maxBytes {
			return nil, nil, fmt.Errorf("%w: blocks exceed %d bytes", codec.ErrFormat, uint64(maxBytes))
		}
		blocks = append(blocks, x)
	}
	return blocks, b, nil
}

// Open decodes the result of [Head] for a message with copied blocks only, and allocates the
// copies. The caller owns one reference to each block in m.Blocks, and must fill parts, in order,
// with the bytes that follow the head. The message aliases the memory of head. The error wraps
// codec.ErrFormat, or is the domain's error if there is no memory for the copies. After an error no
// block is allocated.
func Open(head []byte) (m codec.Message, parts [][]byte, err error) {
	blocks, body, err := parseTable(head)
	if err != nil {
		return m, nil, err
	}
	m.Body = body
	for _, b := range blocks {
		if b.Number != Copied {
			return m, nil, fmt.Errorf("%w: block %d is not part of the message", codec.ErrFormat, b.Number)
		}
	}
	load, _, err := allocCopies(blocks)
	if err != nil || load == nil {
		return m, nil, err
	}
	c := load.(*copies)
	m.Blocks = c.handles
	if err := Check(m, blocks, func(i int) int { return i }); err != nil {
		c.Drop()
		return codec.Message{}, nil, err
	}
	return m, c.parts, nil
}

// A taker gives the message's own reference of a block to the first object that takes it, and
// retains the block for each further object.
type taker struct {
	d     *arena.Domain
	m     codec.Message
	taken []bool
}

// Take implements codec.Blocks.
func (t *taker) Take(i int) (arena.Handle, error) {
	h := t.m.Blocks[i]
	if t.taken[i] {
		if err := t.d.Retain(h); err != nil {
			return 0, err
		}
	}
	t.taken[i] = true
	return h, nil
}

// Decode decodes the value of a message with copied blocks only. It takes over the message's
// references: it releases the blocks that the value does not take, and all of them if it fails.
func Decode[T any](plan *codec.Plan[T], m codec.Message) (v T, err error) {
	var d codec.Decoder
	var t taker
	if len(m.Blocks) == 0 {
		d.Reset(m, nil)
	} else {
		domain, err := arena.Default()
		if err != nil {
			return v, err
		}
		t = taker{domain, m, make([]bool, len(m.Blocks))}
		d.Reset(m, &t)
	}
	v, err = plan.Decode(&d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	for i, h := range t.m.Blocks {
		if !t.taken[i] {
			t.d.Release(h)
		}
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// copies contains the copied blocks of a message that is being received. It implements link.Load.
type copies struct {
	d       *arena.Domain
	handles []arena.Handle // 0 for a block that is not copied
	parts   [][]byte
}

// allocCopies allocates the copied blocks of a table. The load is nil if there are none. If
// allocCopies returns an error, the second result is the number of bytes to skip; otherwise it is
// 0.
func allocCopies(table []Block) (link.Load, int64, error) {
	var size int64
	any := false
	for _, b := range table {
		size += int64(b.End - b.Begin)
		any = any || b.Number == Copied
	}
	if !any {
		return nil, 0, nil
	}
	d, err := arena.Default()
	if err != nil {
		return nil, size, err
	}
	c := &copies{d: d, handles: make([]arena.Handle, len(table))}
	for i, b := range table {
		if b.Number != Copied {
			continue
		}
		if c.handles[i], err = d.Alloc(int(b.End)); err != nil {
			c.Drop()
			return nil, size, fmt.Errorf("copy %d bytes into shared memory: %w", size, err)
		}
		bytes, err := d.Bytes(c.handles[i])
		if err != nil {
			c.Drop()
			return nil, size, err
		}
		c.parts = append(c.parts, bytes[b.Begin:b.End])
	}
	return c, 0, nil
}

// Parts implements link.Load.
func (c *copies) Parts() [][]byte { return c.parts }

// Drop implements link.Load.
func (c *copies) Drop() { Release(c.handles) }

// Release releases the copied blocks of a message that was not decoded. Zero handles are ignored.
func Release(handles []arena.Handle) {
	d, err := arena.Default()
	if err != nil {
		return // without a domain there are no copies
	}
	for _, h := range handles {
		if h != 0 {
			d.Release(h)
		}
	}
}
