package crossing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Block describes a block of a message. It has a number that the receiver knows, or Copied and
// the span of the bytes that follow the message.
type Block struct {
	Number uint64
	wire.Span
}

// Copied is the number of a block that the receiver copies.
const Copied = math.MaxUint64

func init() { // a gateway returns these errors to a client that has sent too much
	wire.RegisterError("shm.ErrNoSpace", shm.ErrNoSpace)
	wire.RegisterError("shm.ErrTooLarge", shm.ErrTooLarge)
}

const (
	countSize = 4
	blockSize = 24
	maxBytes  = 1 << 48 // of a block; no address is larger
)

// Send sends a message in a frame of some kind. The caller holds its blocks until Send returns.
// Send waits while the receiver does not read.
func Send(ctx context.Context, conn *link.Conn, kind byte, m wire.Message, blocks []Block) error {
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, countSize+blockSize*len(blocks)+len(m.Body)),
		uint32(len(blocks)))
	var load [][]byte
	for i, b := range blocks {
		for _, n := range [...]uint64{b.Number, b.Begin, b.End} {
			head = binary.LittleEndian.AppendUint64(head, n)
		}
		if b.Number != Copied || b.End == 0 {
			continue
		}
		bytes, err := bytesOf(m.Blocks[i], b.Span)
		if err != nil {
			return err
		}
		load = append(load, bytes)
	}
	return conn.Send(ctx, kind, append(head, m.Body...), load...)
}

func bytesOf(h shm.Handle, s wire.Span) ([]byte, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	b, err := d.Bytes(h)
	if err == nil && (s.Begin > s.End || s.End > uint64(len(b))) {
		err = fmt.Errorf("%w: bytes %d to %d of a block of %d", wire.ErrFormat, s.Begin, s.End, len(b))
	}
	if err != nil {
		return nil, err
	}
	return b[s.Begin:s.End], nil
}

// Recv receives a message in a frame of that kind, and waits for it until ctx ends. The caller has
// one reference of each copied block, in m.Blocks. It finds the numbers of the others in blocks.
//
// If there is no room for a copy, Recv passes the message over and returns the domain's error. A
// malformed message ends the stream.
func Recv(ctx context.Context, conn *link.Conn, kind byte) (m wire.Message, blocks []Block, err error) {
	_, body, load, err := conn.RecvLoad(ctx, func(got byte, body []byte) (link.Load, int64, error) {
		if got != kind {
			return nil, 0, fmt.Errorf("%w: a frame of kind %d, not %d", wire.ErrFormat, got, kind)
		}
		table, _, err := parse(body)
		if err != nil {
			return nil, 0, err
		}
		return room(table)
	})
	if err != nil {
		if errors.Is(err, wire.ErrFormat) {
			conn.Close() // the begin of the next frame is unknown
		}
		if host := conn.Host(); host != "" && !errors.Is(err, link.ErrClosed) {
			err = fmt.Errorf("from %s: %w", host, err)
		}
		return m, nil, err
	}
	blocks, m.Body, _ = parse(body)
	if c, ok := load.(*copies); ok {
		m.Blocks = c.handles
	} else {
		m.Blocks = make([]shm.Handle, len(blocks))
	}
	return m, blocks, nil
}

// Check returns an error, ErrFormat, unless the bytes that a message uses of its copied blocks are
// among those that came. place returns the index in blocks of a block of the message.
func Check(m wire.Message, blocks []Block, place func(i int) (k int)) error {
	if len(m.Blocks) == 0 {
		return nil
	}
	spans, ok, err := wire.Spans(m)
	if err != nil {
		return err
	}
	for i, s := range spans {
		b := blocks[place(i)]
		switch {
		case b.Number != Copied:
		case !ok[i]:
			return fmt.Errorf("%w: a copied block that is neither a tensor's nor a Memory's", wire.ErrFormat)
		case s.End != 0 && (s.Begin < b.Begin || s.End > b.End):
			return fmt.Errorf("%w: bytes %d to %d of a block of which %d to %d came", wire.ErrFormat,
				s.Begin, s.End, b.Begin, b.End)
		}
	}
	return nil
}

// parse reads the table in front of a body.
func parse(b []byte) (blocks []Block, body []byte, err error) {
	if len(b) < countSize {
		return nil, nil, fmt.Errorf("%w: a message of %d bytes", wire.ErrFormat, len(b))
	}
	n, b := int64(binary.LittleEndian.Uint32(b)), b[countSize:]
	if n > wire.MaxBlocks || n*blockSize > int64(len(b)) {
		return nil, nil, fmt.Errorf("%w: a message of %d bytes with %d blocks", wire.ErrFormat, len(b), n)
	}
	var all uint64
	for range n {
		next := func() (v uint64) { v, b = binary.LittleEndian.Uint64(b), b[8:]; return v }
		x := Block{next(), wire.Span{Begin: next(), End: next()}}
		if x.Number != Copied && x.Span != (wire.Span{}) || x.Begin > x.End || x.End > maxBytes {
			return nil, nil, fmt.Errorf("%w: bytes %d to %d of a block", wire.ErrFormat, x.Begin, x.End)
		}
		if all += x.End; all > maxBytes {
			return nil, nil, fmt.Errorf("%w: blocks of more than %d bytes", wire.ErrFormat, uint64(maxBytes))
		}
		blocks = append(blocks, x)
	}
	return blocks, b, nil
}

// copies are the copied blocks of a message that is under way.
type copies struct {
	d       *shm.Domain
	handles []shm.Handle // 0 for a block that is not copied
	parts   [][]byte
}

// room allocates the copies that a table asks for.
func room(table []Block) (link.Load, int64, error) {
	var size int64
	any := false
	for _, b := range table {
		size += int64(b.End - b.Begin)
		any = any || b.Number == Copied
	}
	if !any {
		return nil, 0, nil
	}
	d, err := shm.Default()
	if err != nil {
		return nil, size, err
	}
	c := &copies{d: d, handles: make([]shm.Handle, len(table))}
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

// Release gives back the copies of a message that was not taken.
func Release(handles []shm.Handle) {
	d, err := shm.Default()
	if err != nil {
		return // without a domain there are no copies
	}
	for _, h := range handles {
		if h != 0 {
			d.Release(h)
		}
	}
}
