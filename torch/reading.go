package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Note [Messages that have begun] A frame that is partly read or written must be completed, because
// other processes use the same end of a queue's pipe, and later calls use the same connection. If
// the context of a call is done in the middle of a frame, the call returns and a goroutine
// continues with the frame. Meanwhile the goroutine keeps the reader's or writer's lock of the
// connection, and the lock of the queue, as a Python process does until the frame is complete.
//
// The descriptors of a message are treated alike, because a resource sharer that has been asked
// sends a descriptor only once. If the context of a call is done, a goroutine continues to fetch
// them, and the message, with the descriptors received so far, is put back. It is the next message
// that this process receives at that end; other processes cannot receive it. Close drops it and
// closes its descriptors when they have arrived. GPU memory that the sender's device has not yet
// written is treated in the same way.

// Recv receives a value that Python sent. docs/torch.md lists its possible types, and [As] converts
// it to others. The caller must close the tensors in it, for example with [CloseAll].
//
// The error is [io.EOF] if the peer has closed the connection, and a *[ProcessError] if the process
// of [Spawn] at the other end has failed. It wraps [ErrUnsupported], [ErrGlobal] or [ErrGone] if
// the message cannot be decoded; the caller may then receive the next one. It wraps [ErrClosed] if
// there is no next message. It is [context.Cause] if ctx is done before a whole message with its
// tensors has arrived. A message that has arrived in part is returned by the next call; if there is
// none, [Conn.Close] returns its tensors to the sender.
func (c *Conn) Recv(ctx context.Context) (any, error) {
	a, err := c.nextArrival(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.unpack(ctx, c.importer); err != nil {
		c.came.reinsertMessage(a)
		return nil, err
	}
	c.came.recordReceived()
	return a.unpacking.v, a.unpacking.err
}

// RecvBytes receives one message, as Connection.recv_bytes does. The error is [io.EOF] if the peer
// has closed the connection, and a *[ProcessError] if the process of [Spawn] at the other end has
// failed. If a canceled [Conn.Recv] had started to decode the message, its tensors are returned to
// the sender.
func (c *Conn) RecvBytes(ctx context.Context) (b []byte, err error) {
	c.passed.Store(true)
	a, err := c.nextArrival(ctx)
	if err != nil {
		return nil, err
	}
	c.came.recordReceived()
	if a.unpacking != nil {
		go a.unpacking.dropValue()
	}
	return a.bytes, nil
}

// nextArrival returns the next message, and blocks until there is one. If ctx is done first, the
// error is [context.Cause]. After a message, the caller must call recordReceived or
// reinsertMessage on c.came.
func (c *Conn) nextArrival(ctx context.Context) (arrival, error) {
	for {
		if a, ok := c.came.takeFirst(); ok {
			return a, nil
		}
		select {
		case c.reading <- struct{}{}:
			a, ok, err := c.readMessage(ctx)
			if ok {
				return a, err
			}
		case <-c.came.signal:
		case <-ctx.Done():
			return arrival{}, context.Cause(ctx)
		}
	}
}

// readMessage reads a message. ok is false if the caller should check c.came again instead. The
// caller must hold the reader's lock, which means that c.reading contains its element.
// readMessage releases it in all cases, if necessary after the rest of the frame has been read.
func (c *Conn) readMessage(ctx context.Context) (a arrival, ok bool, err error) {
	until, stop, ok := c.came.watchContext(ctx)
	if !ok {
		<-c.reading
		return a, false, nil
	}
	defer stop()
	var b []byte
	if err = c.beginFrame(until); err == nil {
		b, err = c.receiveFrame(until)
	}
	switch {
	case err == nil:
		a = c.came.assignNumber(b)
	case err == errBegun:
		go c.readRest()
		return a, ctx.Err() != nil, context.Cause(ctx)
	}
	<-c.reading
	return a, !errors.Is(err, errGivenBack), err
}

// beginFrame prepares to read a message: it acquires the lock of the queue's end, if there is one.
// The error may also be an earlier one, after which no message can be read. The caller must hold
// the reader's lock.
func (c *Conn) beginFrame(ctx context.Context) error {
	if c.last != nil || c.lock == nil {
		return c.last
	}
	return c.lock.Acquire(ctx)
}

// receiveFrame reads a message, or the rest of one that was partly read. The caller must have
// called beginFrame and hold the reader's lock, which stays held. receiveFrame releases the lock
// of the queue's end. If ctx is done in the middle of the message, it returns errBegun and that
// lock stays held.
func (c *Conn) receiveFrame(ctx context.Context) (b []byte, err error) {
	err = c.runWithin(ctx, c.stream.SetReadDeadline, func() (err error) {
		b, err = c.part.read(c.stream, c.opts.maxMessage())
		return err
	})
	if err == errBegun {
		return nil, err
	}
	if err == nil && c.free != nil {
		err = c.free.Release()
	}
	return b, c.unlock(c.explainError(ctx, err))
}

// runWithin runs do, which reads or writes a frame, and interrupts it through deadline when ctx
// is done. deadline sets the deadline of that direction. do must return errIdle at an expired
// deadline before the first byte, and errBegun after it. runWithin returns [context.Cause] for
// errIdle, and errBegun and [io.EOF] as they are. After any other error the position in the
// stream is unknown, so runWithin closes the connection. The error is [ErrClosed] if the
// connection was closed before.
func (c *Conn) runWithin(ctx context.Context, deadline func(time.Time) error, do func() error) error {
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
	c.closeStream()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case closed:
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// readRest completes a partly read message, appends it to c.came, and releases the reader's
// lock, which its starter must hold. It blocks until the message is complete, so it runs in a
// goroutine of its own.
func (c *Conn) readRest() {
	if b, err := c.receiveFrame(context.Background()); err == nil {
		c.came.appendMessage(b)
	} else {
		c.last = err
	}
	<-c.reading
}

// readAhead reads messages into c.came until the connection ends or their size exceeds
// [Options.MaxMessage]. It blocks until then. The caller must not hold the reader's lock.
func (c *Conn) readAhead() {
	for bytes := int64(0); bytes < c.opts.maxMessage(); {
		c.reading <- struct{}{}
		err := c.beginFrame(context.Background())
		if err == nil {
			var b []byte
			if b, err = c.receiveFrame(context.Background()); err == nil {
				bytes += int64(len(b))
				c.came.appendMessage(b)
			}
		}
		c.last = err
		<-c.reading
		if err != nil {
			return
		}
	}
}

// unlock releases the lock of the queue's end, if there is one. It returns err, joined with the
// error of the release.
func (c *Conn) unlock(err error) error {
	if c.lock == nil {
		return err
	}
	if failed := c.lock.Release(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// An arrival is a message that was read from a connection. Only the call that has taken it from
// [arrivals] may use it.
type arrival struct {
	number    int64 // in reading order
	bytes     []byte
	unpacking *unpacking // not nil if a call has started to decode it
}

// arrivals is a queue of messages that were read from a connection and not received. Its methods
// may be called from several goroutines.
type arrivals struct {
	mu        sync.Mutex
	all       []arrival // ordered by number
	last      int64     // the last assigned number
	out       int       // messages held by calls that may give them back
	interrupt func()    // stops the reader's wait; nil if it need not be stopped
	signal    chan struct{}
	closed    bool
	importer  func() *importer
}

// errGivenBack interrupts the reader when a call has given a message back.
var errGivenBack = errors.New("torch: message returned by another call")

// appendMessage appends a message that no call is waiting for, and wakes a waiting call. If the
// queue is closed, the message is dropped.
func (m *arrivals) appendMessage(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.insert(arrival{number: m.last, bytes: b})
}

// assignNumber returns an arrival with the next number for a message that the reader returns
// directly. The caller must call recordReceived or reinsertMessage for it.
func (m *arrivals) assignNumber(b []byte) arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.out++
	return arrival{number: m.last, bytes: b}
}

// takeFirst removes and returns the first message. The caller must call recordReceived or
// reinsertMessage for it. ok is false if there is none.
func (m *arrivals) takeFirst() (a arrival, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return a, false
	}
	a, m.all = m.all[0], m.all[1:]
	m.out++
	if len(m.all) > 0 {
		m.wakeWaiter()
	}
	return a, true
}

// recordReceived records that a message of takeFirst or assignNumber was received, so that it
// will not be given back.
func (m *arrivals) recordReceived() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out--
}

// reinsertMessage gives back a message of takeFirst or assignNumber, because the context of its
// call is done. It inserts the message at its place by number, and interrupts a call that reads
// from the connection.
func (m *arrivals) reinsertMessage(a arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out--
	m.insert(a)
	if m.interrupt != nil {
		m.interrupt()
	}
}

// insert inserts a message by its number, or drops it if the queue is closed. The caller must hold
// m.mu.
func (m *arrivals) insert(a arrival) {
	if m.closed {
		go m.dropMessages(a)
		return
	}
	at, _ := slices.BinarySearchFunc(m.all, a.number, func(b arrival, n int64) int { return int(b.number - n) })
	m.all = slices.Insert(m.all, at, a)
	m.wakeWaiter()
}

// wakeWaiter wakes one call that waits for m.signal, now or later. The caller must hold m.mu.
func (m *arrivals) wakeWaiter() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// watchContext returns a context for a call that is about to read from the connection. It is
// canceled with ctx, and with the cause errGivenBack when a message is given back. ok is false,
// and until and stop are nil, if a message is available already. Otherwise the caller must call
// stop when it has read.
func (m *arrivals) watchContext(ctx context.Context) (until context.Context, stop func(), ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.all) > 0:
		return nil, nil, false
	case m.out == 0:
		return ctx, func() {}, true
	}
	until, end := context.WithCancelCause(ctx)
	m.interrupt = func() { end(errGivenBack) }
	return until, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.interrupt = nil
		end(nil)
	}, true
}

// close drops all messages, and makes the queue drop later ones. It does not wait for the
// release of their contents.
func (m *arrivals) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if len(m.all) > 0 {
		go m.dropMessages(m.all...)
		m.all = nil
	}
}

// dropMessages decodes messages and closes their contents, which returns the memory to the
// senders. It may block on the senders.
func (m *arrivals) dropMessages(all ...arrival) {
	for _, a := range all {
		_ = a.unpack(context.Background(), m.importer) // fails only if the context is done
		a.unpacking.dropValue()
	}
}
