package arena

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A waitQueue is where the goroutines of this process park for one condition on shared memory. bits
// is a bitmap in shared memory: a participant sets its bit there to ask for a wakeup when the
// condition may have become true.
//
// Two rules ensure that no wakeup is lost. A waiter must set its participant's bit before it tests
// the condition for the last time, and the participant that makes the condition true must read the
// bitmap afterwards; it clears a bit and wakes that participant. A goroutine that was woken must
// pass the wakeup on when it is done (passWakeup), so that the wakeup of a cancelled waiter reaches
// another one.
type waitQueue struct {
	d         *Domain
	bits      *[ownWords]Word
	ready     func() bool
	*backoffs // nil: waiters park at once

	waiters atomic.Int32
	mu      localMutex
	queue   []chan struct{}
	napper  chan struct{} // channel of the goroutine that naps or napped last

	// woken is the seat that this process woke last for this condition. The next wakeup goes to the
	// next seat in the bitmap, so that the participants take turns and the one that has waited
	// longest is woken.
	woken atomic.Int32

	// waking counts the goroutines that read shared words on behalf of waiters. closeQueue waits
	// for them.
	waking  atomic.Int32
	rewoken atomic.Bool // the rewake timer is set
	closed  atomic.Bool
}

// waitOnce naps and then parks, until the condition may be true or ctx ends. The caller must then
// try its operation again, and must call passWakeup when it is done.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): first the channel is queued, then
// the bit is set, then the condition is tested. So the test sees every earlier change, and a wakeup
// after the test finds the channel.
func (l *waitQueue) waitOnce(ctx context.Context) error {
	c := make(chan struct{})
	nap := l.backoffs != nil && l.nap.isDue() && l.d.becomeNapper()
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.waiters.Add(1)
	if nap {
		l.napper = c
	}
	l.mu.Unlock()
	l.d.setBit(l.bits)
	ready := !isDisabled("second look") && l.ready()
	if nap {
		l.napUnlessReady(ctx, ready)
	}
	if ready {
		l.removeWaiter(c)
		return nil
	}
	l.d.scheduleDeathCheck()
	if crashing {
		blockUntil(func() bool { return isClosedChan(c) || isClosedChan(ctx.Done()) })
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		l.removeWaiter(c)
		return context.Cause(ctx)
	}
}

// napUnlessReady sleeps for a nap, unless ready is true, and ends the nap. The caller must have
// called [Domain.becomeNapper].
func (l *waitQueue) napUnlessReady(ctx context.Context, ready bool) {
	if ready {
		l.d.finishNap()
		return
	}
	l.d.napFor(ctx, napTime)
	l.nap.recordResult(l.d.finishNap())
}

// removeWaiter takes a channel out of the queue. It does nothing if a waker has done so already.
func (l *waitQueue) removeWaiter(c chan struct{}) {
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

// wakeOne wakes the first goroutine of the queue, whether the condition is true or not.
func (l *waitQueue) wakeOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeFirst()
}

// wakeFirst wakes the first goroutine of the queue. The caller must hold l.mu.
func (l *waitQueue) wakeFirst() {
	if len(l.queue) == 0 {
		return
	}
	c := l.queue[0]
	close(c)
	if c == l.napper {
		l.d.endNapOf(l.d.seat, awake)
	}
	l.queue = l.queue[1:]
	l.waiters.Add(-1)
}

// handleWakeup handles a wakeup that this process received. If the condition is true, it wakes one
// goroutine. If it is not, it sets the participant's bit again. If no goroutine waits here any
// more, it passes the wakeup on to another process.
//
// It holds l.mu while it reads shared words, so that no waiter returns meanwhile: only the waiters
// hold the memory of the condition and of the bitmap.
func (l *waitQueue) handleWakeup() {
	l.waking.Add(1)
	defer l.waking.Add(-1)
	if l.closed.Load() {
		return
	}
	if l.waiters.Load() == 0 {
		l.passToProcess()
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

// passWakeup passes a wakeup on to another goroutine of this process, or to another process if none
// waits here.
func (l *waitQueue) passWakeup() {
	if l.waiters.Load() != 0 {
		l.handleWakeup()
	} else {
		l.passToProcess()
	}
}

// passToProcess wakes another process if the condition is true.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): a wakeup must be passed on as long
// as the condition is true. Otherwise, of two messages, the second could stay in the ring while its
// receiver sleeps.
func (l *waitQueue) passToProcess() {
	if l.ready() {
		l.wakeParticipant()
	}
}

// awaitCondition waits for the condition: it spins, naps and then parks. It returns [ErrClosed] if
// over reports true afterwards, and the cause of ctx if ctx ends.
func (l *waitQueue) awaitCondition(ctx context.Context, over func() bool) error {
	if err := context.Cause(ctx); err != nil {
		// The wakeup may have come for this goroutine while others of the process wait.
		l.passWakeup()
		return err
	}
	var err error
	if !l.d.spinUntil(&l.spin, l.ready) {
		err = l.waitOnce(ctx)
	}
	switch {
	case over():
		l.clearBit()
		return ErrClosed
	case err != nil:
		l.passWakeup()
	}
	return err
}

// closeQueue wakes all waiters and prevents further reads of the shared words. When it returns, no
// goroutine is reading them, so their memory may be reused for another object.
func (l *waitQueue) closeQueue() {
	l.closed.Store(true)
	l.wakeAll()
	for l.waking.Load() != 0 {
		runtime.Gosched()
	}
	l.clearBit()
}

// clearBit clears the participant's bit, because no goroutine of this queue would answer a wakeup.
// Other queues of the process set the bit again if they need it, and a wakeup that has come already
// goes to another process.
//
// clearBit runs in a lane, because Close waits for all lanes: once the domain is closed, the reaper
// has cleared the bit, and the memory may belong to another object.
func (l *waitQueue) clearBit() {
	in, err := l.d.acquireLane()
	if err != nil {
		return
	}
	defer in.unlock()
	l.bits[l.d.word].AndNot(l.d.bit)
	l.d.park.handleWakeup()
	l.d.wakeOne(l.bits, l.d.seat)
}

// wakeAll wakes all goroutines of the queue, whether the condition is true or not.
func (l *waitQueue) wakeAll() {
	for l.waiters.Load() != 0 {
		l.wakeOne()
	}
}

// parking has all wait queues of a process, and the doorbell that serves them.
type parking struct {
	bell   bell
	napper sync.Mutex // held by the goroutine that naps
	// napsAt is the state word of the barrier at which the napper sleeps, or nil.
	napsAt atomic.Pointer[Word]
	alarm  alarm // for the context of the current or the last nap
	doubt  doubt
	mu     sync.Mutex
	queues []*waitQueue
}

// addQueues registers wait queues. The doorbell serves them until they are removed.
func (p *parking) addQueues(l ...*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The append must copy: a reader may hold the old slice.
	p.queues = append(p.queues[:len(p.queues):len(p.queues)], l...)
}

// removeQueues unregisters wait queues.
func (p *parking) removeQueues(gone ...*waitQueue) {
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

// handleWakeup has every wait queue test its condition; see [waitQueue.handleWakeup].
func (p *parking) handleWakeup() {
	p.mu.Lock()
	queues := p.queues
	p.mu.Unlock()
	for _, l := range queues {
		l.handleWakeup()
	}
	p.wakeBarrier()
}

// wakeBarrier wakes the goroutine that naps at a barrier, if there is one, so that it tests its
// condition.
func (p *parking) wakeBarrier() {
	if w := p.napsAt.Load(); w != nil {
		w.futexWakeUpper()
	}
}

// parkUntil parks in a temporary wait queue until ready reports true or ctx ends. The participant
// that makes ready true must wake the whole bitmap. parkUntil does not spin, and does not nap if h
// is nil.
func (p *parking) parkUntil(ctx context.Context, d *Domain, bits *[ownWords]Word, ready func() bool,
	h *backoffs) error {
	l := &waitQueue{d: d, bits: bits, ready: ready, backoffs: h}
	p.addQueues(l)
	defer p.removeQueues(l)
	for !ready() {
		if err := l.waitOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wakeEverybody wakes all parked goroutines of the process, whether their conditions are true or
// not.
func (p *parking) wakeEverybody() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.queues {
		l.wakeAll()
	}
}

// serveBell serves the doorbell until the domain is closed: after each wakeup it has all wait
// queues test their conditions.
func (d *Domain) serveBell(b bell) {
	defer d.done.Done()
	seen := news{pressure: d.parts[d.seat].collected.Load()}
	for b.Wait() == nil {
		d.park.handleWakeup()
		seen = d.handleNews(seen)
	}
}
