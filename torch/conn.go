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

// A Conn is the counterpart of multiprocessing.connection.Connection. [Dial], [Listener.Accept]
// and [Spawn] make one, and a message may contain one. Its methods may be called from several
// goroutines; each message is sent and received as a whole.
type Conn struct {
	stream  stream
	reads   bool // both are true except for the end of a pipe
	writes  bool
	opts    Options
	peer    peer
	process *Process // the process that runs the function at the other end, or nil
	child   bool     // the peer is the Python that started this process
	// lock and free are nil except at the end of a queue's pipe, which several processes share.
	// lock serializes the processes that use the end. free counts the free places of a bounded
	// queue; the reader releases it.
	lock, free *semaphore
	sending    chan struct{} // the writer's lock: holds one element while a call writes
	reading    chan struct{} // the reader's lock: holds one element while a call reads
	part       frame         // the part of the next message that has been read
	came       arrivals      // messages that were read and not received
	last       error         // the read error that follows them; guarded by reading
	rest       atomic.Int32  // state of a message that is still being written: see writing.go
	sent       atomic.Bool   // Process.Wait has closed the sending direction
	broken     atomic.Bool
	passed     atomic.Bool // another process may receive messages: as bytes, or through the connection
}

func newConn(s stream, opts Options) *Conn {
	c := &Conn{stream: s, reads: true, writes: true, opts: opts, peer: peerOf(s),
		sending: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		came: arrivals{signal: make(chan struct{}, 1)}}
	c.came.importer = c.importer
	return c
}

// Send pickles v and sends it, as Connection.send does. Once the first byte is written, Send
// returns nil even if ctx is done, and the rest of the message is written in the background. The
// caller keeps the tensors in v, and may close them as soon as Send returns. A [Conn] or [net.Conn]
// in v is transferred to the receiver and must not be used afterwards. If v has no representation
// in Python, the error wraps [ErrUnsupported] or [ErrArena], and nothing is sent. If ctx is done
// before the first byte is written, Send returns [context.Cause] and sends nothing.
func (c *Conn) Send(ctx context.Context, v any) error {
	out := c.exporter()
	b, err := out.marshal(v)
	if err == nil {
		err = c.SendBytes(ctx, b)
	}
	if err != nil {
		out.withdrawMessage()
		return err
	}
	out.closeTransferred()
	return nil
}

// SendBytes sends one message, as Connection.send_bytes does. The error wraps [ErrClosed] after
// [Process.Wait] and after [Conn.Close]. The end of ctx has the same effect as in [Conn.Send].
func (c *Conn) SendBytes(ctx context.Context, b []byte) error {
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.sent.Load() {
		<-c.sending
		return fmt.Errorf("%w for sending, because Process.Wait was called", ErrClosed)
	}
	return c.explainError(ctx, c.write(ctx, b))
}

// explainError replaces an error that means the end of the connection by the failure of the
// process that [Spawn] started behind it. It returns err itself if there is no such process or
// it has not failed. If the process is about to end, explainError waits for that or until ctx is
// done.
func (c *Conn) explainError(ctx context.Context, err error) error {
	if !isPeerEnd(err) || c.process == nil {
		return err
	}
	if failure := c.process.failureSoon(ctx); failure != nil {
		return failure
	}
	return err
}

// isPeerEnd reports whether err means that the peer has ended or closed the connection.
func isPeerEnd(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE},
		func(end error) bool { return errors.Is(err, end) })
}

// closeSending closes the sending direction of the connection, so that the peer reads EOF. It
// first waits for a message that is being written.
func (c *Conn) closeSending() {
	c.sending <- struct{}{}
	defer func() { <-c.sending }()
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok && !c.sent.Swap(true) {
		half.CloseWrite() // fails if the peer has closed
	}
}

// Close closes the connection. Pending calls return [ErrClosed]. Messages that were not received
// are dropped, and the memory of their tensors is returned to the sender. The writing end of a
// queue stays open until a partly written message is complete. Close is idempotent.
func (c *Conn) Close() error {
	c.broken.Store(true)
	c.came.close()
	if !c.reads && c.rest.CompareAndSwap(restWritten, restAndEnd) {
		return nil // writeRest closes it; other writers of the queue must not write into the message
	}
	return c.closeStream()
}

// closeStream closes the stream. It returns nil if the stream was closed before.
func (c *Conn) closeStream() error {
	if err := c.stream.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// setBothDeadlines returns a function that sets the read and the write deadline of s to the same
// time. A zero time means no deadline.
func setBothDeadlines(s stream) func(time.Time) error {
	return func(t time.Time) error { return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t)) }
}
