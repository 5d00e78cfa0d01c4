package torch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// An arrival is a message that was read.
type arrival struct {
	number    int64 // in the order in which they were read
	bytes     []byte
	unpacking *unpacking // if a call has begun with the message
}

// arrivals are messages that were read, and that nobody has received.
type arrivals struct {
	mu        sync.Mutex
	all       []arrival // by their numbers
	last      int64     // the last number
	out       int       // messages that calls have taken, and may give back
	interrupt func()    // ends the wait of the reader, if it waits while messages are out
	signal    chan struct{}
	closed    bool
	importer  func() *importer
}

// errGivenBack ends the wait of the reader when a call has given a message back.
var errGivenBack = errors.New("torch: a message was given back")

// put keeps a message that nobody waits for.
func (m *arrivals) put(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.insert(arrival{number: m.last, bytes: b})
}

// taken notes a message that its reader has taken.
func (m *arrivals) taken(b []byte) arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.out++
	return arrival{number: m.last, bytes: b}
}

// take returns the first message.
func (m *arrivals) take() (a arrival, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return a, false
	}
	a, m.all = m.all[0], m.all[1:]
	m.out++
	if len(m.all) > 0 {
		m.tell()
	}
	return a, true
}

// received says that a taken message was received.
func (m *arrivals) received() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out--
}

// giveBack returns a taken message to its place.
func (m *arrivals) giveBack(a arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out--
	m.insert(a)
	if m.interrupt != nil {
		m.interrupt()
	}
}

// insert is called with the lock.
func (m *arrivals) insert(a arrival) {
	if m.closed {
		go m.drop(a)
		return
	}
	at, _ := slices.BinarySearchFunc(m.all, a.number, func(b arrival, n int64) int { return int(b.number - n) })
	m.all = slices.Insert(m.all, at, a)
	m.tell()
}

// tell is called with the lock.
func (m *arrivals) tell() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// watch returns the context of a reader, which also ends when a message is given back. It reports
// false if there is a message.
func (m *arrivals) watch(ctx context.Context) (until context.Context, stop func(), ok bool) {
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

// close drops all messages, also those that come.
func (m *arrivals) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if len(m.all) > 0 {
		go m.drop(m.all...)
		m.all = nil
	}
}

// drop gives what is in messages back to their senders.
func (m *arrivals) drop(all ...arrival) {
	for _, a := range all {
		if a.unpacking == nil {
			a.unpacking = m.importer().unpack(context.Background(), a.bytes, nil)
		}
		a.unpacking.drop()
	}
}

// An unpacking makes the value of a message, also when its call has ended.
type unpacking struct {
	i    *importer
	done chan struct{} // closed when there are v or err
	v    any
	err  error
}

// unpack begins to make the value of a message. If that waits for no other process, the value is
// made when unpack returns.
func (i *importer) unpack(ctx context.Context, b []byte, change func(o *pickle.Object)) *unpacking {
	o := &unpacking{i: i, done: make(chan struct{})}
	tree, err := i.parse(b, change)
	do := func() {
		o.v, o.err = i.make(tree, err)
		close(o.done)
	}
	if ctx.Done() != nil && i.waits(tree) {
		go do()
	} else {
		do()
	}
	return o
}

// waits reports whether the value of a message may have to wait for another process: one that is
// asked for a part of it, or whose device has yet to write it.
func (i *importer) waits(tree any) bool {
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

// await waits for the value. The error is the cause of ctx's end.
func (o *unpacking) await(ctx context.Context) error {
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

// whole returns the value. If ctx ends before, the value is dropped.
func (o *unpacking) whole(ctx context.Context) (any, error) {
	if err := o.await(ctx); err != nil {
		go o.drop()
		return nil, err
	}
	return o.v, o.err
}

// drop closes all in the value, when it is made.
func (o *unpacking) drop() {
	if <-o.done; o.err == nil {
		for _, c := range o.i.made {
			c.Close()
		}
	}
}
