package arena

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A waitQueue is where this process's goroutines park for one condition on shared memory. bits is
// the bitmap, in shared memory, in which the process asks to be woken when the condition may have
// come true.
//
// The rule that loses no wake: a waiter sets the process's bit and then looks at the condition once
// more. The participant that makes it true looks at the bitmap afterwards, clears a bit and wakes
// that participant. There one goroutine wakes. It passes the wakeup on (passWakeup) when it is
// done, so a wakeup that a cancelled waiter got is not lost.
type waitQueue struct {
	d         *Domain
	bits      *[ownWords]Word
	ready     func() bool
	*backoffs // nil: waiters park at once

	waiters atomic.Int32
	mu      localMutex
	queue   []chan struct{}
	napper  chan struct{} // the channel of the goroutine that naps, or did last

	// woken is the seat that this process last woke for it. The next one in the table is next:
	// those that wait take turns, so the one that has waited longest is woken.
	woken atomic.Int32

	waking  atomic.Int32 // goroutines that look at shared words for waiters: shut waits for them
	rewoken atomic.Bool  // there is a timer
	closed  atomic.Bool
}

// wait naps, then parks, until the condition may be true or ctx ends. After it, the caller tries,
// and then calls passWakeup.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): the channel is in the queue, then
// the bit is set, then comes the look. What became true before the look is seen by it, and a wakeup
// after it finds the channel.
func (l *waitQueue) wait(ctx context.Context) error {
	c := make(chan struct{})
	nap := l.backoffs != nil && l.nap.due() && l.d.lieDown()
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.waiters.Add(1)
	if nap {
		l.napper = c
	}
	l.mu.Unlock()
	l.d.setBit(l.bits)
	ready := !disabled("second look") && l.ready()
	if nap {
		l.rest(ctx, ready)
	}
	if ready {
		l.remove(c)
		return nil
	}
	l.d.doubtSoon()
	if crashing {
		blockUntil(func() bool { return ended(c) || ended(ctx.Done()) })
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
func (l *waitQueue) rest(ctx context.Context, ready bool) {
	if ready {
		l.d.getUp()
		return
	}
	l.d.sleep(ctx, napTime)
	l.nap.learn(l.d.getUp())
}

func (l *waitQueue) remove(c chan struct{}) {
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

func (l *waitQueue) wakeOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeFirst()
}

func (l *waitQueue) wakeFirst() {
	if len(l.queue) == 0 {
		return
	}
	c := l.queue[0]
	close(c)
	if c == l.napper {
		l.d.rouse(l.d.seat, awake)
	}
	l.queue = l.queue[1:]
	l.waiters.Add(-1)
}

// wakeup wakes a goroutine if the condition is true, and asks for another wakeup if it is not. It
// keeps the lock, so that no waiter returns meanwhile: only waiters hold the memory of the
// condition and of the bitmap. If nobody waits here any more, the wakeup is passed on to another
// process.
func (l *waitQueue) wakeup() {
	l.waking.Add(1)
	defer l.waking.Add(-1)
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

// passWakeup passes a wakeup on: to another goroutine here, or to another process.
func (l *waitQueue) passWakeup() {
	if l.waiters.Load() != 0 {
		l.wakeup()
	} else {
		l.passOn()
	}
}

// Invariant (docs/memory.md, "Rings, ends and other objects"): a wakeup is passed on as long as the
// condition is true. Otherwise one message of two could wait for a waiter that nobody wakes.
func (l *waitQueue) passOn() {
	if l.ready() {
		l.rewake()
	}
}

// pause waits for the condition, first for a moment without parking. over reports that there is
// nothing to wait for any more.
func (l *waitQueue) pause(ctx context.Context, over func() bool) error {
	if err := context.Cause(ctx); err != nil {
		l.passWakeup() // we may have been woken, and somebody else waits in this process
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
		l.passWakeup()
	}
	return err
}

// shut wakes all waiters, and returns when no wakeup looks at the shared words of this queue any
// more.
//
// After it, the memory of the condition and of the bitmap may be another object's: so it waits for
// every goroutine that is looking at them.
func (l *waitQueue) shut() {
	l.closed.Store(true)
	l.wakeAll()
	for l.waking.Load() != 0 {
		runtime.Gosched()
	}
	l.leave()
}

// leave takes the process's bit back, since no goroutine here would answer to it, and lets other
// queues of the process set it again. A wakeup that has come already goes to another process. After
// the domain was closed, the reaper has taken the bit and the memory may be another object's. So it
// runs in a lane, for which Close waits.
func (l *waitQueue) leave() {
	in, err := l.d.enter()
	if err != nil {
		return
	}
	defer in.unlock()
	l.bits[l.d.word].AndNot(l.d.bit)
	l.d.park.wakeup()
	l.d.wakeOne(l.bits, l.d.seat)
}

func (l *waitQueue) wakeAll() {
	for l.waiters.Load() != 0 {
		l.wakeOne()
	}
}

// parking is all wait queues of a process, and the doorbell that serves them.
type parking struct {
	bell   bell
	napper sync.Mutex           // held by the goroutine that naps
	napsAt atomic.Pointer[Word] // the state of the barrier at which it naps, if it does
	alarm  alarm                // for its context, or for that of the last one
	doubt  doubt
	mu     sync.Mutex
	queues []*waitQueue
}

func (p *parking) add(l ...*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues[:len(p.queues):len(p.queues)], l...) // a reader may hold the old slice
}

func (p *parking) remove(gone ...*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []*waitQueue
next:
	for _, l := range p.queues {
		for _, g := range gone {
			if l == g {
				continue next
			}
		}
		kept = append(kept, l)
	}
	p.queues = kept
}

// wakeup has every wait queue look at its condition.
func (p *parking) wakeup() {
	p.mu.Lock()
	queues := p.queues
	p.mu.Unlock()
	for _, l := range queues {
		l.wakeup()
	}
	p.wakeBarrier()
}

// wakeBarrier has the goroutine that naps at a barrier look at its condition.
func (p *parking) wakeBarrier() {
	if w := p.napsAt.Load(); w != nil {
		w.wakeUpper()
	}
}

// await parks in a wait queue of its own until ready or until ctx ends. The participant that makes
// it ready wakes the whole bitmap.
func (p *parking) await(ctx context.Context, d *Domain, bits *[ownWords]Word, ready func() bool, h *backoffs) error {
	l := &waitQueue{d: d, bits: bits, ready: ready, backoffs: h}
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
	for _, l := range p.queues {
		l.wakeAll()
	}
}

// answer serves the doorbell until the domain is closed.
func (d *Domain) answer(b bell) {
	defer d.done.Done()
	seen := news{pressure: d.parts[d.seat].collected.Load()}
	for b.Wait() == nil {
		d.park.wakeup()
		seen = d.hear(seen)
	}
}
