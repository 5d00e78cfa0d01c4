package shm

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A lot is where this process's goroutines park for one condition on shared memory. bits is the
// bitmap, in shared memory, in which the process asks to be rung when the condition may have come
// true.
//
// The rule that loses no wake: a waiter sets the process's bit and then looks at the condition once
// more; the participant that makes it true looks at the bitmap afterwards, clears a bit and rings.
// A ring wakes one goroutine; that one passes it on (baton) when it is done, so a ring that a
// cancelled waiter got is not lost.
type lot struct {
	d       *Domain
	bits    *[ownWords]Word
	ready   func() bool
	*habits // nil: who waits here parks at once

	waiters atomic.Int32
	mu      sync.Mutex
	queue   []chan struct{}
	napper  chan struct{} // of who naps, or did

	ringing atomic.Int32 // goroutines in rung
	offered atomic.Bool  // there is a timer
	closed  atomic.Bool
}

// wait naps, then parks, until the condition may be true or ctx ends. After it, the caller tries,
// and then calls baton.
func (l *lot) wait(ctx context.Context) error {
	c := make(chan struct{})
	nap := l.habits != nil && l.nap.due() && l.d.lieDown()
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.waiters.Add(1)
	if nap {
		l.napper = c
	}
	l.mu.Unlock()
	l.d.setBit(l.bits)
	ready := l.ready()
	if nap {
		l.rest(ctx, ready)
	}
	if ready {
		l.remove(c)
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		l.remove(c)
		return context.Cause(ctx)
	}
}

// rest takes the nap that the caller lay down for, unless there is no need.
func (l *lot) rest(ctx context.Context, ready bool) {
	if ready {
		l.d.getUp()
		return
	}
	l.d.sleep(ctx, napTime)
	l.nap.learn(l.d.getUp())
}

func (l *lot) remove(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range l.queue {
		if q == c {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			l.waiters.Add(-1)
			return
		}
	}
}

func (l *lot) wakeOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeFirst()
}

func (l *lot) wakeFirst() {
	if len(l.queue) == 0 {
		return
	}
	c := l.queue[0]
	close(c)
	if c == l.napper {
		l.d.rouse(l.d.slot, awake)
	}
	l.queue = l.queue[1:]
	l.waiters.Add(-1)
}

// rung wakes a goroutine if the condition is true, and asks to be rung again if it is not. It keeps
// the lock, so that no waiter returns meanwhile: only they hold the memory of the condition and of
// the bitmap. If nobody waits here any more, the ring was meant for another process.
func (l *lot) rung() {
	l.ringing.Add(1)
	defer l.ringing.Add(-1)
	if l.closed.Load() {
		return
	}
	if l.waiters.Load() == 0 {
		l.passOn()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return
	}
	if !l.ready() {
		l.d.setBit(l.bits)
		if !l.ready() {
			return
		}
	}
	l.wakeFirst()
}

// baton passes a wake on: to another goroutine here, or to another process.
func (l *lot) baton() {
	if l.waiters.Load() != 0 {
		l.rung()
	} else {
		l.passOn()
	}
}

func (l *lot) passOn() {
	if l.ready() {
		l.offer()
	}
}

// pause waits for the condition, first for a moment without parking. over says that nothing can be
// waited for any more.
func (l *lot) pause(ctx context.Context, over func() bool) error {
	if err := context.Cause(ctx); err != nil {
		l.baton() // we may have been woken, and somebody else waits in this process
		return err
	}
	var err error
	if !l.d.spin(&l.spin, l.ready) {
		err = l.wait(ctx)
	}
	switch {
	case over():
		l.leave()
		return ErrClosed
	case err != nil:
		l.baton()
	}
	return err
}

// shut wakes everybody who waits here, and returns when no ring looks at the shared words of this
// lot any more.
func (l *lot) shut() {
	l.closed.Store(true)
	l.wakeAll()
	for l.ringing.Load() != 0 {
		runtime.Gosched()
	}
	l.leave()
}

// leave takes the process's bit back, which nobody here would answer to, unless another lot of the
// process waits for the same thing. A ring that has come already goes to another process. After the
// domain was closed, the bit has been taken by the reaper and the memory may be somebody else's; in
// a lane, Close waits for us.
func (l *lot) leave() {
	in, err := l.d.enter()
	if err != nil {
		return
	}
	defer in.unlock()
	l.bits[l.d.word].AndNot(l.d.bit)
	l.d.park.rung()
	l.d.ringOne(l.bits)
}

func (l *lot) wakeAll() {
	for l.waiters.Load() != 0 {
		l.wakeOne()
	}
}

// parking is all lots of a process, and the doorbell that serves them.
type parking struct {
	bell   bell
	napper sync.Mutex // held by who naps
	alarm  alarm      // of who naps, or did
	mu     sync.Mutex
	lots   []*lot
}

func (p *parking) add(l ...*lot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lots = append(p.lots[:len(p.lots):len(p.lots)], l...) // a reader may hold the old slice
}

func (p *parking) remove(gone ...*lot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []*lot
next:
	for _, l := range p.lots {
		for _, g := range gone {
			if l == g {
				continue next
			}
		}
		kept = append(kept, l)
	}
	p.lots = kept
}

func (p *parking) rung() {
	p.mu.Lock()
	lots := p.lots
	p.mu.Unlock()
	for _, l := range lots {
		l.rung()
	}
}

// await parks in a lot of its own until ready or until ctx ends. The participant that makes it
// ready rings the whole bitmap.
func (p *parking) await(ctx context.Context, d *Domain, bits *[ownWords]Word, ready func() bool, h *habits) error {
	l := &lot{d: d, bits: bits, ready: ready, habits: h}
	p.add(l)
	defer p.remove(l)
	for !ready() {
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *parking) wakeEverybody() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lots {
		l.wakeAll()
	}
}

// answer serves the doorbell until the domain is closed.
func (d *Domain) answer(b bell) {
	defer d.done.Done()
	seen := news{pressure: d.parts[d.slot].collected.Load()}
	for b.Wait() == nil {
		d.park.rung()
		seen = d.hear(seen)
	}
}
