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

// A Conn is a multiprocessing.connection.Connection to a Python process. Several goroutines may
// call its methods at once; messages stay whole.
type Conn struct {
	stream  stream
	reads   bool // both are true except for the end of a pipe
	writes  bool
	opts    Options
	peer    peer
	process *Process // the process whose function has the other end, or nil
	child   bool     // the other side is the Python that has started this process
	sending sync.Mutex
	reading chan struct{} // the reader has its one place
	ahead   messages      // messages that Process.Wait has read
	last    error         // the error behind them; only the reader looks
	sent    atomic.Bool   // Process.Wait has ended the sending
	broken  atomic.Bool
	passed  atomic.Bool // another process may receive its messages: as bytes, or through the connection
}

func newConn(s stream, opts Options) *Conn {
	return &Conn{stream: s, reads: true, writes: true, opts: opts, peer: peerOf(s),
		reading: make(chan struct{}, 1), ahead: messages{came: make(chan struct{}, 1)}}
}

// Send sends v as Connection.send does: it returns when the message is on its way. Tensors in v
// stay the caller's, which may close them at once. A Conn or net.Conn in v becomes the receiver's.
// If v has no form in Python, the error wraps ErrUnsupported or ErrArena, and Send has sent
// nothing.
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

// Recv receives a value that Python sent, as one of the types in docs/torch.md; [As] converts it to
// another type. The caller closes the tensors in it. The error is io.EOF if the other side has
// closed, and a *ProcessError if Spawn has started the other process and it has failed. It wraps
// ErrUnsupported, ErrGlobal or ErrGone for a message that cannot be used; the next message can be
// received then. It wraps ErrClosed if there is no next message. If ctx ends when a message has
// come, Recv asks its sender for the tensors for up to 10 s more; if the sender does not answer,
// the message is lost.
func (c *Conn) Recv(ctx context.Context) (any, error) {
	b, err := c.recvBytes(ctx)
	if err != nil {
		return nil, err
	}
	return c.importer(ctx).unmarshal(b)
}

// SendBytes sends one message as Connection.send_bytes does. The error wraps ErrClosed after
// Process.Wait and after Close.
func (c *Conn) SendBytes(ctx context.Context, b []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.sent.Load() {
		return fmt.Errorf("%w for sending: Process.Wait was called", ErrClosed)
	}
	err := c.within(ctx, c.stream.SetWriteDeadline, func() error { return writeFrame(c.stream, b) })
	return c.verdict(ctx, err)
}

// RecvBytes receives one message as Connection.recv_bytes does. The error is io.EOF if the other
// side has closed, and a *ProcessError if Spawn has started the other process and it has failed.
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

// next reads a message, unless one was read ahead meanwhile. The caller has the reader's place.
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

// verdict says why a connection has ended: the failure of the process behind it, if that has ended
// it.
func (c *Conn) verdict(ctx context.Context, err error) error {
	if !otherEnded(err) || c.process == nil {
		return err
	}
	if failure := c.process.failed(ctx); failure != nil {
		return failure
	}
	return err
}

// otherEnded reports whether an error says that the other side of a connection has ended.
func otherEnded(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE},
		func(end error) bool { return errors.Is(err, end) })
}

// endSending tells the other side that no message follows.
func (c *Conn) endSending() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok && !c.sent.Swap(true) {
		half.CloseWrite() // fails if the other side has closed
	}
}

// readAhead keeps messages for RecvBytes, until the connection ends or there are too many.
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

// messages are read, and wait to be received.
type messages struct {
	mu   sync.Mutex
	all  [][]byte
	came chan struct{} // has room for one signal
}

func (m *messages) put(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, b)
	m.tell()
}

// take returns the first message, and signals if there are more.
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

// Close closes the connection. Calls that wait on it return ErrClosed. Close is idempotent.
func (c *Conn) Close() error {
	c.broken.Store(true)
	if err := c.stream.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// both sets the deadline of reads and of writes.
func both(s stream) func(time.Time) error {
	return func(t time.Time) error { return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t)) }
}

// within runs do until ctx ends it, through a deadline. After an error in the middle of a message
// the begin of the next one is unknown, so the connection is closed.
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
