package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	// of the end of a queue's pipe that other processes have as well: the lock of this end, or nil,
	// and the free places, which the reader counts, or nil
	lock, free *semaphore
	sending    chan struct{} // the writer has its one place
	reading    chan struct{} // the reader has its one place
	part       frame         // what the reader has of a message
	came       arrivals      // messages that are read, and that nobody has received
	last       error         // the error behind them; only the reader looks
	rest       atomic.Int32  // what is written of a message that has begun: see writing.go
	sent       atomic.Bool   // Process.Wait has ended the sending
	broken     atomic.Bool
	passed     atomic.Bool // another process may receive its messages: as bytes, or through the connection
}

func newConn(s stream, opts Options) *Conn {
	c := &Conn{stream: s, reads: true, writes: true, opts: opts, peer: peerOf(s),
		sending: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		came: arrivals{signal: make(chan struct{}, 1)}}
	c.came.importer = c.importer
	return c
}

// Send sends v as Connection.send does: it returns when the message is on its way. Tensors in v
// stay the caller's, which may close them at once. A Conn or net.Conn in v becomes the receiver's.
// If v has no form in Python, the error wraps ErrUnsupported or ErrArena, and Send has sent
// nothing. It is the cause of ctx's end if ctx ends before the message has begun. A message that
// has begun is on its way: its rest is written when the other side reads.
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
// received then. It wraps ErrClosed if there is no next message. It is the cause of ctx's end if a
// message with its tensors has not come by then. The next call receives a message of which a part
// has come. If there is no next call, Close gives its tensors back to their sender.
func (c *Conn) Recv(ctx context.Context) (any, error) {
	a, err := c.arrival(ctx)
	if err != nil {
		return nil, err
	}
	if a.unpacking == nil {
		a.unpacking = c.importer().unpack(ctx, a.bytes, nil)
	}
	if err := a.unpacking.await(ctx); err != nil {
		c.came.giveBack(a)
		return nil, err
	}
	c.came.received()
	return a.unpacking.v, a.unpacking.err
}

// SendBytes sends one message as Connection.send_bytes does. The error wraps ErrClosed after
// Process.Wait and after Close. The end of ctx is as for Send.
func (c *Conn) SendBytes(ctx context.Context, b []byte) error {
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.sent.Load() {
		<-c.sending
		return fmt.Errorf("%w for sending: Process.Wait was called", ErrClosed)
	}
	return c.verdict(ctx, c.write(ctx, b))
}

// RecvBytes receives one message as Connection.recv_bytes does. The error is io.EOF if the other
// side has closed, and a *ProcessError if Spawn has started the other process and it has failed. If
// a call of Recv has begun with the message, its tensors are given back to their sender.
func (c *Conn) RecvBytes(ctx context.Context) (b []byte, err error) {
	c.passed.Store(true)
	a, err := c.arrival(ctx)
	if err != nil {
		return nil, err
	}
	c.came.received()
	if a.unpacking != nil {
		go a.unpacking.drop()
	}
	return a.bytes, nil
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
	c.sending <- struct{}{}
	defer func() { <-c.sending }()
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok && !c.sent.Swap(true) {
		half.CloseWrite() // fails if the other side has closed
	}
}

// Close closes the connection. Calls that wait on it return ErrClosed. Messages that nobody has
// received are dropped, and the memory of their tensors is given back to its sender. The writing
// end of a queue stays open until a message that has begun is written. Close is idempotent.
func (c *Conn) Close() error {
	c.broken.Store(true)
	c.came.close()
	if !c.reads && c.rest.CompareAndSwap(restWritten, restAndEnd) {
		return nil // the other writers of the queue would write into the message
	}
	return c.shut()
}

// shut closes the stream.
func (c *Conn) shut() error {
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
	case nil, io.EOF, errBegun:
		return err
	case errIdle:
		return context.Cause(ctx)
	}
	closed := c.broken.Swap(true)
	c.shut()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case closed:
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}
