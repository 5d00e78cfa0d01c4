package link

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

	reading turn
	r       *bufio.Reader
	half    *arrival // a frame that is not all here
	writing turn
}

// A turn is a lock for which nobody waits longer than its context lasts: the holder may wait for a
// peer that is stopped.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}: // also if ctx has ended
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

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

// An arrival is a frame of which the first byte has come.
type arrival struct {
	begun  bool // the header is read
	kind   byte
	body   []byte // what has come of it
	length int    // of the body
	ready  bool   // the body is read, and load, skip and err are what accept has made of it
	load   Load
	parts  [][]byte // the missing part of the load
	skip   int64
	err    error
	size   int64 // of the load
	unread int64
	paused time.Duration // how long reads have waited: for the header, for the body, for the next byte of the load
}

const frameHeader = 5

// frameTime is how long a frame may take after its first byte, and how long its load may pause.
var frameTime = 30 * time.Second

// piece is how much of a load is read before the deadline moves on.
const piece = 1 << 20

// NewConn returns a Conn over s, with bodies of at most limit bytes. Errors name the host if s has
// a method Host.
func NewConn(s Stream, limit int) *Conn {
	c := &Conn{s: s, limit: limit, r: bufio.NewReader(s), reading: make(turn, 1), writing: make(turn, 1)}
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
	c.reading <- struct{}{} // no read outlives its stream
	defer c.reading.give()
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

// Send writes a frame and its load. It waits while the other side does not read, and while another
// goroutine sends. If ctx ends after that and before all is written, Send closes the stream,
// because half a frame is of no use.
func (c *Conn) Send(ctx context.Context, kind byte, body []byte, load ...[]byte) error {
	if len(body) > c.limit {
		return fmt.Errorf("send %d bytes, of at most %d: %w", len(body), c.limit, ErrFrame)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := c.writing.take(ctx); err != nil {
		return err
	}
	defer c.writing.give()
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
	if err := c.reading.take(ctx); err != nil {
		return err
	}
	defer c.reading.give()
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

// Recv reads a frame without a load and waits for it until ctx ends. If ctx ends in the middle of a
// frame, the next call goes on there.
func (c *Conn) Recv(ctx context.Context) (kind byte, body []byte, err error) {
	kind, body, _, err = c.RecvLoad(ctx, func(byte, []byte) (Load, int64, error) { return nil, 0, nil })
	return kind, body, err
}

// RecvLoad reads a frame and its load, into the memory that accept returns, and waits until ctx
// ends. If ctx ends in the middle, the next call goes on there. If accept returns an error,
// RecvLoad passes the load over and returns that error, and the stream is good for the next frame.
func (c *Conn) RecvLoad(ctx context.Context, accept Accept) (kind byte, body []byte, load Load, err error) {
	if err := c.reading.take(ctx); err != nil {
		return 0, nil, nil, err
	}
	defer c.reading.give()
	if c.half == nil {
		if err := c.await(ctx); err != nil {
			return 0, nil, nil, err
		}
		c.half = new(arrival)
	}
	h := c.half
	if !h.ready {
		if err := c.readHeader(ctx, h); err != nil {
			return 0, nil, nil, err
		}
		if err := c.readBody(ctx, h); err != nil {
			return 0, nil, nil, err
		}
		h.ask(accept)
	}
	if err := c.readLoad(ctx); err != nil {
		return 0, nil, nil, err
	}
	c.half = nil
	return h.kind, h.body, h.load, h.err
}

// ask has accept say where the load goes.
func (h *arrival) ask(accept Accept) {
	h.ready, h.paused = true, 0
	if h.load, h.skip, h.err = accept(h.kind, h.body); h.load != nil {
		h.parts = slices.Clone(h.load.Parts())
		for _, p := range h.parts {
			h.size += int64(len(p))
		}
	}
	h.size += h.skip
	h.unread = h.size
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
		n, err := c.timed(ctx, h, func() (int, error) { return io.ReadFull(c.r, p) })
		if n > 0 {
			h.paused = 0
		}
		h.unread -= int64(n)
		if len(h.parts) > 0 {
			h.parts[0] = h.parts[0][n:]
		}
		if err == nil {
			continue
		}
		if ended(ctx, err) {
			return context.Cause(ctx)
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if !late || n == 0 {
			return c.cut(h, err)
		}
	}
	return nil
}

// timed has read wait as long as the frame may still take. The caller lets ctx end the read. For a
// receiver that polls, the waits of all its calls add up.
func (c *Conn) timed(ctx context.Context, h *arrival, read func() (int, error)) (int, error) {
	begin := time.Now()
	// first the deadline, then the look at ctx: a later end of ctx sets the deadline later
	c.s.SetReadDeadline(begin.Add(max(frameTime-h.paused, time.Millisecond)))
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	n, err := read()
	h.paused += time.Since(begin)
	return n, err
}

// ended reports whether the end of ctx, and no other, has ended a read.
func ended(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return cause != nil && (err == cause || errors.Is(err, os.ErrDeadlineExceeded))
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

// readHeader reads the header of a frame, unless it has been read.
func (c *Conn) readHeader(ctx context.Context, h *arrival) error {
	if h.begun {
		return nil
	}
	if c.r.Buffered() < frameHeader {
		peek := func() (int, error) { _, err := c.r.Peek(frameHeader); return 0, err }
		if _, err := c.wait(ctx, h, peek); err != nil {
			return err
		}
	}
	header, err := c.r.Peek(frameHeader)
	if err != nil {
		return c.broken(err)
	}
	n := int64(binary.LittleEndian.Uint32(header))
	if n > int64(c.limit) {
		c.drop()
		c.s.Close()
		return fmt.Errorf("receive %d bytes, of at most %d: %w", n, c.limit, ErrFrame)
	}
	h.begun, h.paused, h.length, h.kind = true, 0, int(n), header[frameHeader-1]
	c.r.Discard(frameHeader)
	h.body = make([]byte, 0, min(h.length, c.r.Buffered()))
	return nil
}

// readBody reads the missing part of a body, which grows as its bytes arrive, and not to its
// announced length at once.
func (c *Conn) readBody(ctx context.Context, h *arrival) error {
	for len(h.body) < h.length {
		have := len(h.body)
		h.body = slices.Grow(h.body, min(h.length-have, max(have, bytes.MinRead)))
		room := h.body[have:min(cap(h.body), h.length)]
		var n int
		var err error
		if c.r.Buffered() > 0 {
			n, err = c.r.Read(room)
		} else {
			n, err = c.wait(ctx, h, func() (int, error) { return c.r.Read(room) })
		}
		h.body = h.body[:have+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// wait has read wait for more of a header or of a body.
func (c *Conn) wait(ctx context.Context, h *arrival, read func() (int, error)) (int, error) {
	defer c.s.SetReadDeadline(time.Time{})
	defer until(ctx, c.s.SetReadDeadline)()
	n, err := c.timed(ctx, h, read)
	switch {
	case err == nil || n > 0: // if it is the end, the next read says so
		return n, nil
	case ended(ctx, err):
		return 0, context.Cause(ctx)
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return 0, c.broken(err)
}

// broken ends a stream within a frame.
func (c *Conn) broken(err error) error {
	c.drop()
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
