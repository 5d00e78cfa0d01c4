package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

var (
	// ErrClosed is returned when the stream is closed, by either side or by the end of a process.
	ErrClosed = fmt.Errorf("link: closed%.0w", os.ErrClosed)
	// ErrFrame is returned for a frame that is longer than the limit. The stream is closed then.
	ErrFrame = errors.New("link: frame too long")
)

// A Stream is a connection of any sort. Both net.Conn and sys.Conn are Streams.
type Stream interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// A Conn sends and receives frames:
//
//	0  length of the body, 4 bytes, little-endian
//	4  kind, 1 byte
//	5  body
//
// A load follows the body of some frames, and the body says how long it is. Its bytes are written
// from their place in the sender's memory and read to their place in the receiver's.
//
// Its methods may be called by several goroutines.
type Conn struct {
	s     Stream
	limit int
	host  string

	reading sync.Mutex
	r       *bufio.Reader
	half    *arrival // a frame whose load is not all here
	writing sync.Mutex
}

// A Load is the memory for the bytes that follow a frame.
type Load interface {
	// Parts returns the memory, in the order of the bytes.
	Parts() [][]byte
	// Drop is called, once, if not all of the bytes come.
	Drop()
}

// An Accept looks at the body of a frame and returns the memory for its load. A load that is not
// wanted is passed over. Then err says why, and skip how long the load is.
type Accept func(kind byte, body []byte) (load Load, skip int64, err error)

// An arrival is a frame, and the missing part of its load.
type arrival struct {
	kind   byte
	body   []byte
	load   Load
	parts  [][]byte // the missing part
	skip   int64
	err    error
	size   int64 // of the load
	unread int64
	paused time.Duration // how long reads have waited since the last byte
}

const frameHeader = 5

// frameTime is how long a frame may take after its first byte, and how long its load may pause.
var frameTime = 30 * time.Second

// piece is how much of a load is read before the deadline moves on.
const piece = 1 << 20

// NewConn returns a Conn over s, with bodies of at most limit bytes. Errors name the host if s has
// a method Host.
func NewConn(s Stream, limit int) *Conn {
	c := &Conn{s: s, limit: limit, r: bufio.NewReader(s)}
	if h, ok := s.(interface{ Host() string }); ok {
		c.host = h.Host()
	}
	return c
}

// Host returns the address of the other side. It is empty if the other side is on this machine.
func (c *Conn) Host() string { return c.host }

// Close ends the stream and the calls that wait on it. It drops the memory that half a frame has
// taken.
func (c *Conn) Close() error {
	err := c.s.Close()
	c.reading.Lock() // no read outlives its stream
	defer c.reading.Unlock()
	c.drop()
	return err
}

// drop lets go of a frame that stays incomplete.
func (c *Conn) drop() {
	if h := c.half; h != nil {
		c.half = nil
		if h.load != nil {
			h.load.Drop()
		}
	}
}

// Send writes a frame and its load. It waits while the other side does not read. If ctx ends before
// all is written, Send closes the stream, because half a frame is of no use.
func (c *Conn) Send(ctx context.Context, kind byte, body []byte, load ...[]byte) error {
	if len(body) > c.limit {
		return fmt.Errorf("send %d bytes, of at most %d: %w", len(body), c.limit, ErrFrame)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	defer until(ctx, c.s.SetWriteDeadline)()
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHeader+len(body)), uint32(len(body)))
	b = append(append(b, kind), body...)
	_, err := c.s.Write(b)
	for i := 0; err == nil && i < len(load); i++ {
		_, err = c.s.Write(load[i])
	}
	if err != nil {
		c.s.Close()
		return c.why(ctx, err)
	}
	return nil
}

// Await waits for the first byte of a frame, or the end of the stream. If ctx has ended, Await
// returns nil if either is there already, as far as the stream can tell.
func (c *Conn) Await(ctx context.Context) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	if err := context.Cause(ctx); err != nil && c.ready() {
		return nil
	}
	return c.await(ctx)
}

// ready reports whether there are bytes to read.
func (c *Conn) ready() bool {
	if c.r.Buffered() > 0 {
		return true
	}
	s, ok := c.s.(interface{ Readable() bool })
	return ok && s.Readable()
}

func (c *Conn) await(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if c.r.Buffered() > 0 {
		return nil
	}
	defer until(ctx, c.s.SetReadDeadline)()
	if _, err := c.r.Peek(1); err != nil {
		return c.why(ctx, err)
	}
	return nil
}

// Recv reads a frame without a load and waits for it until ctx ends. A frame that has begun is read
// to its end.
func (c *Conn) Recv(ctx context.Context) (kind byte, body []byte, err error) {
	kind, body, _, err = c.RecvLoad(ctx, func(byte, []byte) (Load, int64, error) { return nil, 0, nil })
	return kind, body, err
}

// RecvLoad reads a frame and its load, into the memory that accept returns, and waits until ctx
// ends. If ctx ends in the middle of a load, the next call goes on there. If accept returns an
// error, RecvLoad passes the load over and returns that error, and the stream is good for the next
// frame.
func (c *Conn) RecvLoad(ctx context.Context, accept Accept) (kind byte, body []byte, load Load, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.half == nil {
		if kind, body, err = c.frame(ctx); err != nil {
			return 0, nil, nil, err
		}
		h := &arrival{kind: kind, body: body}
		if h.load, h.skip, h.err = accept(kind, body); h.load != nil {
			h.parts = slices.Clone(h.load.Parts())
			for _, p := range h.parts {
				h.size += int64(len(p))
			}
		}
		h.size += h.skip
		h.unread = h.size
		c.half = h
	}
	if err := c.readLoad(ctx); err != nil {
		return 0, nil, nil, err
	}
	h := c.half
	c.half = nil
	return h.kind, h.body, h.load, h.err
}

// readLoad reads the missing part of c.half, piece by piece.
func (c *Conn) readLoad(ctx context.Context) error {
	h := c.half
	if h.unread == 0 {
		return nil
	}
	defer c.s.SetReadDeadline(time.Time{})
	defer until(ctx, c.s.SetReadDeadline)()
	var waste []byte
	for h.unread > 0 {
		for len(h.parts) > 0 && len(h.parts[0]) == 0 {
			h.parts = h.parts[1:]
		}
		if len(h.parts) == 0 && waste == nil {
			waste = make([]byte, min(h.skip, 64<<10))
		}
		p := waste
		if len(h.parts) > 0 {
			p = h.parts[0]
		}
		p = p[:min(int64(len(p)), piece, h.unread)]
		// First the deadline, then the look at ctx: a later end of ctx sets the deadline later. For
		// a receiver that polls, the waits of all its calls add up.
		begin := time.Now()
		c.s.SetReadDeadline(begin.Add(max(frameTime-h.paused, time.Millisecond)))
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := io.ReadFull(c.r, p)
		if h.paused += time.Since(begin); n > 0 {
			h.paused = 0
		}
		h.unread -= int64(n)
		if len(h.parts) > 0 {
			h.parts[0] = h.parts[0][n:]
		}
		if err == nil {
			continue
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if cause := context.Cause(ctx); cause != nil && late {
			return cause
		}
		if !late || n == 0 {
			return c.cut(h, err)
		}
	}
	return nil
}

// cut ends a stream in the middle of a load, which is dropped.
func (c *Conn) cut(h *arrival, err error) error {
	c.drop()
	c.s.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %d of %d bytes came%s, and no more for %v: is the sender stopped, or the network down? %w",
			ErrClosed, h.size-h.unread, h.size, from(c.host), frameTime, err)
	}
	return fmt.Errorf("%w: cut off after %d of %d bytes%s: the sender is gone; dial again: %w %w",
		ErrClosed, h.size-h.unread, h.size, from(c.host), io.ErrUnexpectedEOF, err)
}

func from(host string) string {
	if host == "" {
		return ""
	}
	return " from " + host
}

// frame reads a frame, not its load.
func (c *Conn) frame(ctx context.Context) (kind byte, body []byte, err error) {
	if err := c.await(ctx); err != nil {
		return 0, nil, err
	}
	if c.r.Buffered() < frameHeader {
		c.s.SetReadDeadline(time.Now().Add(frameTime))
		defer c.s.SetReadDeadline(time.Time{})
	}
	var h [frameHeader]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return 0, nil, c.broken(err)
	}
	n := int64(binary.LittleEndian.Uint32(h[:]))
	if n > int64(c.limit) {
		c.s.Close()
		return 0, nil, fmt.Errorf("receive %d bytes, of at most %d: %w", n, c.limit, ErrFrame)
	}
	if int64(c.r.Buffered()) < n {
		c.s.SetReadDeadline(time.Now().Add(frameTime))
		defer c.s.SetReadDeadline(time.Time{})
	}
	// The body grows as its bytes arrive, and not to its announced length at once.
	body, err = io.ReadAll(io.LimitReader(c.r, n))
	if err == nil && int64(len(body)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, c.broken(err)
	}
	return h[4], body, nil
}

// broken ends a stream within a frame.
func (c *Conn) broken(err error) error {
	c.s.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("a frame has begun and did not end within %v: %w", frameTime, err)
	}
	return fmt.Errorf("%w%s: %w", ErrClosed, from(c.host), err)
}

// why returns the cause of ctx if ctx has ended a read or a write, and otherwise the end of the
// stream.
func (c *Conn) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // TLS says so of an end without an alert, between frames as well
		err = io.EOF
	}
	return fmt.Errorf("%w%s: %w", ErrClosed, from(c.host), err)
}

// until lets ctx end a read or write by a deadline. The returned function takes the deadline back.
func until(ctx context.Context, setDeadline func(time.Time) error) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		setDeadline(time.Unix(1, 0))
		close(set)
	})
	return func() {
		if !stop() {
			<-set
			setDeadline(time.Time{})
		}
	}
}
