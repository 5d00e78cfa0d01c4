package torch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// An arrival is a message that was read from a connection.
type arrival struct {
	number    int64 // in reading order
	bytes     []byte
	unpacking *unpacking // not nil if a call has started to decode it
}

// arrivals is a queue of messages that were read and not received.
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

// appendMessage appends a message that no call is waiting for.
func (m *arrivals) appendMessage(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.insert(arrival{number: m.last, bytes: b})
}

// assignNumber assigns a number to a message that the reader returns directly. The caller must call
// recordReceived or reinsertMessage for it.
func (m *arrivals) assignNumber(b []byte) arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.out++
	return arrival{number: m.last, bytes: b}
}

// takeFirst removes the first message. The caller must call recordReceived or reinsertMessage for
// it.
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

// recordReceived records that a taken message was received, so that it will not be given back.
func (m *arrivals) recordReceived() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out--
}

// reinsertMessage inserts a message again at its place, because the context of its caller is done.
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

// wakeWaiter wakes a waiting call. The caller must hold m.mu.
func (m *arrivals) wakeWaiter() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// watchContext returns a context for the reader that is also canceled when a message is given back.
// ok is false if a message is available already. The caller must call stop.
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

// close drops all messages, and makes the queue drop later ones.
func (m *arrivals) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if len(m.all) > 0 {
		go m.dropMessages(m.all...)
		m.all = nil
	}
}

// dropMessages decodes messages and closes their contents, which returns the memory to the senders.
func (m *arrivals) dropMessages(all ...arrival) {
	for _, a := range all {
		if a.unpacking == nil {
			a.unpacking = m.importer().startUnpacking(context.Background(), a.bytes, nil)
		}
		a.unpacking.dropValue()
	}
}

// An unpacking is the decoding of a message, which continues after the context of its caller is
// done.
type unpacking struct {
	i    *importer
	done chan struct{} // closed when v and err are set
	v    any
	err  error
}

// startUnpacking starts to decode a message. It is complete when startUnpacking returns, unless
// decoding may block on another process and ctx can be canceled.
func (i *importer) startUnpacking(ctx context.Context, b []byte, change func(o *pickle.Object)) *unpacking {
	o := &unpacking{i: i, done: make(chan struct{})}
	tree, err := i.parse(b, change)
	do := func() {
		o.v, o.err = i.decodeTree(tree, err)
		close(o.done)
	}
	if ctx.Done() != nil && i.mayBlock(tree) {
		go do()
	} else {
		do()
	}
	return o
}

// mayBlock reports whether decoding may block on another process: to fetch a descriptor, to
// reference a manager's object, or for a GPU to write the memory.
func (i *importer) mayBlock(tree any) bool {
	for o := range pickle.Each[*pickle.Object](tree) {
		switch o.Class {
		case sharedFD, rebuildProxy:
			return true
		case rebuildCUDA:
			if i.opts.CUDA {
				return true
			}
		}
	}
	return false
}

// awaitDecoded blocks until the value is decoded. If ctx is done first, it returns [context.Cause].
func (o *unpacking) awaitDecoded(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	default:
	}
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitValue returns the decoded value. If ctx is done first, the value is dropped.
func (o *unpacking) awaitValue(ctx context.Context) (any, error) {
	if err := o.awaitDecoded(ctx); err != nil {
		go o.dropValue()
		return nil, err
	}
	return o.v, o.err
}

// dropValue closes everything in the value after it has been decoded.
func (o *unpacking) dropValue() {
	if <-o.done; o.err == nil {
		for _, c := range o.i.made {
			c.Close()
		}
	}
}
