package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is a connection to a Python process: a multiprocessing.connection.Connection. Its methods
// may be called by several goroutines at once; messages are whole.
type Conn struct {
	stream  stream
	reads   bool // both but for the end of a pipe
	writes  bool
	opts    Options
	peer    peer
	process *Process // whose function has the other end, if any
	child   bool     // what comes is from the Python that has started this process
	sending sync.Mutex
	reading chan struct{} // who reads has its one place
	ahead   messages      // that Process.Wait has read
	last    error         // after them; whoever reads may look
	sent    atomic.Bool   // Process.Wait has ended the sending
	broken  atomic.Bool
	passed  atomic.Bool // others may have its messages: as bytes, or through the connection
}

func newConn(s stream, opts Options) *Conn {
	return &Conn{stream: s, reads: true, writes: true, opts: opts, peer: peerOf(s),
		reading: make(chan struct{}, 1), ahead: messages{came: make(chan struct{}, 1)}}
}

// Send sends v as Connection.send does: it returns when the message is on its way. Tensors in v
// stay the caller's; they may be closed at once. A Conn or net.Conn in v becomes the receiver's.
// The error wraps ErrUnsupported or ErrArena where v has no form in Python; then nothing was sent.
func (c *Conn) Send(ctx context.Context, v any) error {
	out := c.exporter()
	b, err := out.marshal(v)
	if err == nil {
		err = c.SendBytes(ctx, b)
	}
	if err != nil {
		out.undo()
		return err
	}
	out.moveAway()
	return nil
}

// Recv receives what Python sent. It is of the types that docs/torch.md lists; see [As] for
// a type of one's own. The caller closes the tensors in it. The error is io.EOF where the
// other side has closed, a *ProcessError where Spawn has started it and it has failed, wraps
// ErrUnsupported, ErrGlobal or ErrGone where a message came that cannot be used, after which the
// next can be received, and ErrClosed where there is no next.
func (c *Conn) Recv(ctx context.Context) (any, error) {
	b, err := c.recvBytes(ctx)
	if err != nil {
		return nil, err
	}
	return c.importer(ctx).unmarshal(b)
}

// SendBytes sends one message as Connection.send_bytes does.
func (c *Conn) SendBytes(ctx context.Context, b []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.sent.Load() {
		return fmt.Errorf("%w for sending: Process.Wait was called", ErrClosed)
	}
	err := c.within(ctx, c.stream.SetWriteDeadline, func() error { return writeFrame(c.stream, b) })
	return c.verdict(ctx, err)
}

// RecvBytes receives one message as Connection.recv_bytes does. The error is io.EOF where the other
// side has closed, and a *ProcessError where Spawn has started it and it has failed.
func (c *Conn) RecvBytes(ctx context.Context) (b []byte, err error) {
	c.passed.Store(true)
	return c.recvBytes(ctx)
}

func (c *Conn) recvBytes(ctx context.Context) (b []byte, err error) {
	for {
		if b, ok := c.ahead.take(); ok {
			return b, nil
		}
		select {
		case c.reading <- struct{}{}:
			b, ok, err := c.next(ctx)
			<-c.reading
			if !ok {
				continue
			}
			return b, err
		case <-c.ahead.came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next reads a message, where none was read ahead meanwhile. The caller has the place of who reads.
func (c *Conn) next(ctx context.Context) (b []byte, ok bool, err error) {
	switch {
	case c.ahead.some():
		return nil, false, nil
	case c.last != nil:
		return nil, true, c.last
	}
	b, err = c.read(ctx)
	return b, true, err
}

func (c *Conn) read(ctx context.Context) (b []byte, err error) {
	err = c.within(ctx, c.stream.SetReadDeadline, func() (err error) {
		b, err = readFrame(c.stream, c.opts.maxMessage())
		return err
	})
	return b, c.verdict(ctx, err)
}

// verdict is why a connection has ended: the failure of the process behind it, if that is what
// ended it.
func (c *Conn) verdict(ctx context.Context, err error) error {
	if !otherEnded(err) || c.process == nil {
		return err
	}
	if failure := c.process.failed(ctx); failure != nil {
		return failure
	}
	return err
}

// otherEnded reports whether an error is that the other side of a connection has ended.
func otherEnded(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE},
		func(end error) bool { return errors.Is(err, end) })
}

// endSending tells the other side that nothing more comes.
func (c *Conn) endSending() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok && !c.sent.Swap(true) {
		half.CloseWrite() // fails where the other side has closed
	}
}

// readAhead keeps messages for RecvBytes, until the connection ends or they are many.
func (c *Conn) readAhead() {
	for bytes := int64(0); bytes < c.opts.maxMessage(); {
		c.reading <- struct{}{}
		b, err := c.read(context.Background())
		if err == nil {
			bytes += int64(len(b))
			c.ahead.put(b)
		}
		c.last = err
		<-c.reading
		if err != nil {
			return
		}
	}
}

// messages were read and are to be received.
type messages struct {
	mu   sync.Mutex
	all  [][]byte
	came chan struct{} // has room for one
}

func (m *messages) put(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, b)
	m.tell()
}

// take returns the first, and tells others of the rest.
func (m *messages) take() (b []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return nil, false
	}
	b, m.all = m.all[0], m.all[1:]
	if len(m.all) > 0 {
		m.tell()
	}
	return b, true
}

func (m *messages) some() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all) > 0
}

func (m *messages) tell() {
	select {
	case m.came <- struct{}{}:
	default:
	}
}

// Close closes the connection, and ends what waits on it with ErrClosed. It is idempotent.
func (c *Conn) Close() error {
	c.broken.Store(true)
	if err := c.stream.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// both sets the deadline of reads and writes.
func both(s stream) func(time.Time) error {
	return func(t time.Time) error { return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t)) }
}

// within runs do until ctx ends it, through a deadline. After an error in the middle of a message
// nobody knows where the next would begin, and the connection is closed.
func (c *Conn) within(ctx context.Context, deadline func(time.Time) error, do func() error) error {
	if c.broken.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		deadline(time.Unix(1, 0))
		close(set)
	})
	err := do()
	if !stop() {
		<-set
		deadline(time.Time{})
	}
	switch err {
	case nil, io.EOF:
		return err
	case errIdle:
		return context.Cause(ctx)
	}
	closed := c.broken.Load()
	c.Close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case closed:
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}
