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

	"github.com/shoal-mp/shoal/internal/sentinel"
)

var (
	// ErrClosed is returned if the stream was closed by either side or by the death of the peer.
	ErrClosed = sentinel.New("link: closed", os.ErrClosed)
	// ErrFrame is returned for a frame that exceeds the limit. The stream is closed if such a frame
	// is received; it remains usable if Send returns the error.
	ErrFrame = errors.New("link: frame too long")
)

// A Stream is a bidirectional connection. net.Conn and sys.Conn implement it.
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
// The body of a frame may be followed by a load. The body must determine the load's length. The
// load is written directly from the sender's memory and read directly into the receiver's.
//
// All methods may be called from several goroutines.
type Conn struct {
	s     Stream
	limit int
	host  string

	reading turn
	r       *bufio.Reader
	half    *arrival // partially received frame
	writing turn
}

// A turn is a lock that is acquired with a context, because its holder may be blocked by a peer
// that is stopped.
type turn chan struct{}

func (t turn) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}: // even if ctx is done
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

func (t turn) release() { <-t }

// A Load is the destination of the bytes that follow a frame.
type Load interface {
	// Parts returns the memory for the bytes, in order.
	Parts() [][]byte
	// Drop releases the memory. It is called once if the load does not arrive completely.
	Drop()
}

// An Accept function returns the memory for the load of a frame, given its body. It returns a
// nil load for a frame without one. To reject a load, it must return an error, and the load's
// length in skip. It is called once for each frame, by a goroutine in [Conn.RecvLoad].
type Accept func(kind byte, body []byte) (load Load, skip int64, err error)

// An arrival is a frame that is being received.
type arrival struct {
	begun  bool // the header was read
	kind   byte
	body   []byte // received part of the body
	length int    // length of the body
	ready  bool   // the body was read and accept was called
	load   Load
	parts  [][]byte // missing part of the load
	skip   int64
	err    error
	size   int64 // length of the load
	unread int64
	paused time.Duration // wait for the header, the body, or more of the load
}

const frameHeader = 5

// frameTime limits the time from the first byte of a frame to the end of its body, and a pause
// within its load.
var frameTime = 30 * time.Second

// piece is the number of bytes of a load after which the deadline is extended.
const piece = 1 << 20

// NewConn returns a Conn over s with bodies of at most limit bytes. The Conn owns s, and the
// caller must close the Conn. If s has a method Host, errors contain its result.
func NewConn(s Stream, limit int) *Conn {
	c := &Conn{s: s, limit: limit, r: bufio.NewReader(s), reading: make(turn, 1), writing: make(turn, 1)}
	if h, ok := s.(interface{ Host() string }); ok {
		c.host = h.Host()
	}
	return c
}

// Host returns the address of the peer. It is empty if the peer is on this machine.
func (c *Conn) Host() string { return c.host }

// Close closes the stream and wakes its blocked calls, which return an error that wraps
// [ErrClosed]. It releases the memory of a partially received frame.
func (c *Conn) Close() error {
	err := c.s.Close()
	c.reading <- struct{}{} // wait for the reader, which uses the memory of the load
	defer c.reading.release()
	c.dropFrame()
	return err
}

// dropFrame releases a partially received frame. The caller must hold c.reading.
func (c *Conn) dropFrame() {
	if h := c.half; h != nil {
		c.half = nil
		if h.load != nil {
			h.load.Drop()
		}
	}
}

// Send writes a frame and its load. It blocks while the peer does not read, and while another
// goroutine sends. It returns [ErrFrame] if the body exceeds the limit, and the cause of ctx if
// ctx is done. If ctx is done after Send has begun to write, Send closes the stream, because a
// partial frame is useless. So it does if the stream fails; the error then wraps [ErrClosed].
func (c *Conn) Send(ctx context.Context, kind byte, body []byte, load ...[]byte) error {
	if len(body) > c.limit {
		return fmt.Errorf("send %d bytes, want at most %d: %w", len(body), c.limit, ErrFrame)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := c.writing.acquire(ctx); err != nil {
		return err
	}
	defer c.writing.release()
	defer interruptOnDone(ctx, c.s.SetWriteDeadline)()
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHeader+len(body)), uint32(len(body)))
	b = append(append(b, kind), body...)
	_, err := c.s.Write(b)
	for i := 0; err == nil && i < len(load); i++ {
		_, err = c.s.Write(load[i])
	}
	if err != nil {
		c.s.Close()
		return c.endError(ctx, err)
	}
	return nil
}

// Await blocks until the first byte of a frame or the end of the stream arrives. It returns nil for
// a byte, and an error that wraps [ErrClosed] for the end. If ctx is done, Await returns its cause.
// However, if ctx is already done and a byte or the end is known to have arrived, it returns nil.
func (c *Conn) Await(ctx context.Context) error {
	if err := c.reading.acquire(ctx); err != nil {
		return err
	}
	defer c.reading.release()
	if err := context.Cause(ctx); err != nil && c.hasInput() {
		return nil
	}
	return c.awaitInput(ctx)
}

// hasInput reports whether bytes are buffered, or the stream reports that a read would not
// block.
func (c *Conn) hasInput() bool {
	if c.r.Buffered() > 0 {
		return true
	}
	s, ok := c.s.(interface{ Readable() bool })
	return ok && s.Readable()
}

func (c *Conn) awaitInput(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if c.r.Buffered() > 0 {
		return nil
	}
	defer interruptOnDone(ctx, c.s.SetReadDeadline)()
	if _, err := c.r.Peek(1); err != nil {
		return c.endError(ctx, err)
	}
	return nil
}

// Recv waits for a frame, and returns its kind and its body, which belongs to the caller. The frame
// must have no load, because Recv would read the load as the next frame. If ctx is done within a
// frame, the next call resumes there. Recv returns the errors of [Conn.RecvLoad].
func (c *Conn) Recv(ctx context.Context) (kind byte, body []byte, err error) {
	kind, body, _, err = c.RecvLoad(ctx, func(byte, []byte) (Load, int64, error) { return nil, 0, nil })
	return kind, body, err
}

// RecvLoad waits for a frame, and reads its load into the memory returned by accept. The body
// and the load belong to the caller; the load is nil if accept returned none. If ctx is done
// within a frame, RecvLoad returns the cause of ctx, and the next call resumes there; it does
// not call accept for the frame again. If accept returns an error, RecvLoad skips the load and
// returns the error; the stream remains usable.
//
// If the stream ends, the error wraps [ErrClosed]. If a frame stops arriving for 30 seconds,
// RecvLoad closes the stream and returns such an error as well. If a body exceeds the limit, it
// closes the stream and returns [ErrFrame].
func (c *Conn) RecvLoad(ctx context.Context, accept Accept) (kind byte, body []byte, load Load, err error) {
	if err := c.reading.acquire(ctx); err != nil {
		return 0, nil, nil, err
	}
	defer c.reading.release()
	if c.half == nil {
		if err := c.awaitInput(ctx); err != nil {
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
		h.acceptLoad(accept)
	}
	if err := c.readLoad(ctx); err != nil {
		return 0, nil, nil, err
	}
	c.half = nil
	return h.kind, h.body, h.load, h.err
}

// acceptLoad calls accept and stores its results in h. If accept returns an error,
// [Conn.readLoad] skips the load, and [Conn.RecvLoad] then returns the error.
func (h *arrival) acceptLoad(accept Accept) {
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

// readLoad reads the missing part of the load of c.half, piece by piece. The caller must hold
// c.reading. It returns the cause of ctx if ctx is done first; a later call resumes. After any
// other error it closes the stream; see [Conn.closeInLoad].
func (c *Conn) readLoad(ctx context.Context) error {
	h := c.half
	if h.unread == 0 {
		return nil
	}
	defer c.s.SetReadDeadline(time.Time{})
	defer interruptOnDone(ctx, c.s.SetReadDeadline)()
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
		n, err := c.readTimed(ctx, h, func() (int, error) { return io.ReadFull(c.r, p) })
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
		if isInterrupted(ctx, err) {
			return context.Cause(ctx)
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if !late || n == 0 {
			return c.closeInLoad(h, err)
		}
	}
	return nil
}

// readTimed calls read with a deadline for the rest of the frame's time. The caller must make ctx
// interrupt the read. The waits of all calls for a frame add up, because a receiver may poll with
// short contexts.
func (c *Conn) readTimed(ctx context.Context, h *arrival, read func() (int, error)) (int, error) {
	begin := time.Now()
	// The deadline must be set before ctx is checked: if ctx is done later, it sets the deadline
	// again.
	c.s.SetReadDeadline(begin.Add(max(frameTime-h.paused, time.Millisecond)))
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	n, err := read()
	h.paused += time.Since(begin)
	return n, err
}

// isInterrupted reports whether a read was interrupted by ctx, and not by another error.
func isInterrupted(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return cause != nil && (err == cause || errors.Is(err, os.ErrDeadlineExceeded))
}

// closeInLoad closes the stream after a read error within a load, and releases the load. The caller
// must hold c.reading. closeInLoad returns an error that wraps [ErrClosed] and err and tells how
// much was received. Unless err is an exceeded deadline, the error also wraps
// [io.ErrUnexpectedEOF].
func (c *Conn) closeInLoad(h *arrival, err error) error {
	c.dropFrame()
	c.s.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: received %d of %d bytes%s, and nothing more for %v: check that the sender is "+
			"running and the network is up: %w",
			ErrClosed, h.size-h.unread, h.size, fromHost(c.host), frameTime, err)
	}
	return fmt.Errorf("%w: connection lost after %d of %d bytes%s: dial again: %w %w",
		ErrClosed, h.size-h.unread, h.size, fromHost(c.host), io.ErrUnexpectedEOF, err)
}

func fromHost(host string) string {
	if host == "" {
		return ""
	}
	return " from " + host
}

// readHeader reads the header of a frame, unless it was read before. It returns the errors of
// readOrWait. If the body would exceed the limit, readHeader closes the stream and returns
// [ErrFrame].
func (c *Conn) readHeader(ctx context.Context, h *arrival) error {
	if h.begun {
		return nil
	}
	if c.r.Buffered() < frameHeader {
		peek := func() (int, error) { _, err := c.r.Peek(frameHeader); return 0, err }
		if _, err := c.readOrWait(ctx, h, peek); err != nil {
			return err
		}
	}
	header, err := c.r.Peek(frameHeader)
	if err != nil {
		return c.closeInFrame(err)
	}
	n := int64(binary.LittleEndian.Uint32(header))
	if n > int64(c.limit) {
		c.dropFrame()
		c.s.Close()
		return fmt.Errorf("receive %d bytes, want at most %d: %w", n, c.limit, ErrFrame)
	}
	h.begun, h.paused, h.length, h.kind = true, 0, int(n), header[frameHeader-1]
	c.r.Discard(frameHeader)
	h.body = make([]byte, 0, min(h.length, c.r.Buffered()))
	return nil
}

// readBody reads the missing part of a body. The buffer grows with the received bytes and is not
// allocated for the announced length. It returns the errors of readOrWait.
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
			n, err = c.readOrWait(ctx, h, func() (int, error) { return c.r.Read(room) })
		}
		h.body = h.body[:have+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// readOrWait calls read, which waits for more bytes of a header or a body. If ctx is done first,
// readOrWait returns its cause, and a later call may resume the frame. After any other error it
// closes the stream as closeInFrame does.
func (c *Conn) readOrWait(ctx context.Context, h *arrival, read func() (int, error)) (int, error) {
	defer c.s.SetReadDeadline(time.Time{})
	defer interruptOnDone(ctx, c.s.SetReadDeadline)()
	n, err := c.readTimed(ctx, h, read)
	switch {
	case err == nil || n > 0: // the next read returns the error
		return n, nil
	case isInterrupted(ctx, err):
		return 0, context.Cause(ctx)
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return 0, c.closeInFrame(err)
}

// closeInFrame closes the stream after a read error within a frame, and releases the frame. The
// caller must hold c.reading. closeInFrame returns an error that wraps [ErrClosed] and err.
func (c *Conn) closeInFrame(err error) error {
	c.dropFrame()
	c.s.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("frame not complete within %v: %w", frameTime, err)
	}
	return fmt.Errorf("%w%s: %w", ErrClosed, fromHost(c.host), err)
}

// endError returns the cause of ctx if it is done, and otherwise an error for the end of the
// stream, which wraps [ErrClosed] and err.
func (c *Conn) endError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // crypto/tls: end without an alert
		err = io.EOF
	}
	return fmt.Errorf("%w%s: %w", ErrClosed, fromHost(c.host), err)
}

// interruptOnDone makes ctx interrupt a read or a write by setting a deadline. The caller must call
// the returned function, which resets the deadline.
func interruptOnDone(ctx context.Context, setDeadline func(time.Time) error) func() {
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
