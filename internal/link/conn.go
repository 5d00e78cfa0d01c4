package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

var (
	// ErrClosed is returned once the stream is closed, by either side or by the end of a process.
	ErrClosed = fmt.Errorf("link: closed%.0w", os.ErrClosed)
	// ErrFrame is returned for a frame that is longer than the limit. The stream is closed then.
	ErrFrame = errors.New("link: frame too long")
)

// A Stream is a connection of any sort. Both net.Conn and sys.Conn are.
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
// Its methods may be called by several goroutines.
type Conn struct {
	s     Stream
	limit int

	reading sync.Mutex
	r       *bufio.Reader
	writing sync.Mutex
}

const frameHeader = 5

// frameTime is how long a frame may take that has begun to arrive.
const frameTime = 30 * time.Second

// NewConn returns a Conn over s, with bodies of at most limit bytes.
func NewConn(s Stream, limit int) *Conn { return &Conn{s: s, limit: limit, r: bufio.NewReader(s)} }

// Close ends the stream, and what goes on with it.
func (c *Conn) Close() error { return c.s.Close() }

// Send writes a frame. If ctx ends before it is written, the stream is closed: half a frame is of
// no use.
func (c *Conn) Send(ctx context.Context, kind byte, body []byte) error {
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
	if _, err := c.s.Write(b); err != nil {
		c.s.Close()
		return c.why(ctx, err)
	}
	return nil
}

// Await waits for the first byte of a frame, or the end of the stream. If ctx has ended it says
// whether either is there already, as far as the stream can tell.
func (c *Conn) Await(ctx context.Context) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	if err := context.Cause(ctx); err != nil && c.ready() {
		return nil
	}
	return c.await(ctx)
}

// ready reports whether there is something to be read.
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

// Recv reads a frame and waits for it until ctx ends. A frame that has begun is read to its end.
func (c *Conn) Recv(ctx context.Context) (kind byte, body []byte, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
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
	// What is announced is not allocated before it is there.
	body, err = io.ReadAll(io.LimitReader(c.r, n))
	if err == nil && int64(len(body)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, c.broken(err)
	}
	return h[4], body, nil
}

func (c *Conn) broken(err error) error {
	c.s.Close()
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// why is ctx, if that is why a read or a write has ended, and otherwise the end of the stream.
func (c *Conn) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// until has ctx end what is going on by a deadline. The function that it returns takes the deadline
// back.
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
