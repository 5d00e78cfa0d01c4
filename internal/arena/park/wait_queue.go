package park

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/shm"
)

// A Queue is where the goroutines of this process park for one condition on shared memory. The
// exported fields must be set before the queue is used.
//
// Two rules ensure that no wakeup is lost. A waiter must set its participant's bit before it tests
// the condition for the last time, and the participant that makes the condition true must read the
// bitmap afterwards; it clears a bit and wakes that participant. A goroutine that was woken must
// pass the wakeup on when it is done (PassWakeup), so that the wakeup of a cancelled waiter reaches
// another one.
type Queue struct {
	Lot *Lot // nil: the queue has no waiters
	// Bits is a bitmap in shared memory: a participant sets its bit there to ask for a wakeup when
	// the condition may have become true.
	Bits      *layout.Bitmap
	Ready     func() bool // the condition
	*Backoffs             // nil: waiters park at once

	// topic, next and prev are set while the queue is registered; see [Lot].
	topic      Topic
	next, prev *Queue

	waiters atomic.Int32
	mu      word.LocalMutex
	queue   []chan struct{}
	napper  chan struct{} // channel of the goroutine that naps or napped last

	// woken is the seat that this process woke last for this condition. The next wakeup goes to the
	// next seat in the bitmap, so that the participants take turns and the one that has waited
	// longest is woken.
	woken atomic.Int32

	// waking counts the goroutines that read shared words on behalf of waiters. Close waits for
	// them.
	waking  atomic.Int32
	rewoken atomic.Bool // the rewake timer is set
	closed  atomic.Bool
}

// Waiters returns the number of goroutines that wait here.
func (q *Queue) Waiters() int { return int(q.waiters.Load()) }

// SetReady replaces the condition. No goroutine may wait here.
func (q *Queue) SetReady(ready func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Ready = ready
}

// WaitOnce naps and then parks, until the condition may be true or ctx ends. The caller must
// then try its operation again, and must call PassWakeup when it is done. WaitOnce returns the
// cause of ctx if ctx ends, and [ErrNapOver] or [ErrInterrupted] if ctx is a [ThreadWait] and
// its nap is over. The queue must be registered; see [Lot.Add].
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): first the channel is queued, then
// the bit is set, then the condition is tested. So the test sees every earlier change, and a
// wakeup after the test finds the channel.
func (q *Queue) WaitOnce(ctx context.Context) error {
	c := make(chan struct{})
	own := threadWaitOf(ctx)
	nap := q.Backoffs != nil && (own != nil || q.Nap.IsDue()) && q.Lot.BecomeNapper()
	q.mu.Lock()
	q.queue = append(q.queue, c)
	q.addWaiterCount(1)
	if nap {
		q.napper = c
	}
	q.mu.Unlock()
	q.Lot.SetBit(q.Bits)
	ready := !word.IsDisabled("second look") && q.Ready()
	if own != nil && !ready {
		q.Lot.scheduleDeathCheck() // the nap may be long
	}
	if nap {
		q.napUnlessReady(ctx, ready)
	}
	if ready {
		q.removeWaiter(c)
		return nil
	}
	if own != nil {
		return q.endThreadWait(own, c)
	}
	q.Lot.scheduleDeathCheck()
	if word.Crashing {
		word.BlockUntil(func() bool { return word.IsClosedChan(c) || word.IsClosedChan(ctx.Done()) })
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		q.removeWaiter(c)
		return context.Cause(ctx)
	}
}

// napUnlessReady sleeps for a nap, unless ready is true, and ends the nap. The caller must have
// called [Lot.BecomeNapper].
func (q *Queue) napUnlessReady(ctx context.Context, ready bool) {
	if ready {
		q.Lot.FinishNap()
		return
	}
	if own := threadWaitOf(ctx); own != nil {
		own.napOn(&q.Lot.mem.Participants[q.Lot.seat].Nap)
		q.Lot.FinishNap()
		return
	}
	q.Lot.NapFor(ctx, napTime)
	q.Nap.RecordResult(q.Lot.FinishNap())
}

// endThreadWait ends a wait that does not park, with the channel c in the queue. It returns nil
// if the waiter was woken, and otherwise [ErrNapOver] or [ErrInterrupted].
func (q *Queue) endThreadWait(own *ThreadWait, c chan struct{}) error {
	select {
	case <-c:
		return nil
	default:
	}
	q.removeWaiter(c)
	own.endWith(ErrNapOver)
	return own.Err()
}

// removeWaiter takes a channel out of the queue. It does nothing if a waker has done so already.
func (q *Queue) removeWaiter(c chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.queue {
		if other == c {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			q.addWaiterCount(-1)
			return
		}
	}
}

// addWaiterCount adds n to the number of waiters of the queue and of the process.
func (q *Queue) addWaiterCount(n int32) {
	q.waiters.Add(n)
	q.Lot.waiters.Add(int64(n))
}

// wakeWaiter wakes the first goroutine of the queue, whether the condition is true or not.
func (q *Queue) wakeWaiter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeFirst()
}

// wakeFirst wakes the first goroutine of the queue. The caller must hold q.mu.
func (q *Queue) wakeFirst() {
	if len(q.queue) == 0 {
		return
	}
	c := q.queue[0]
	close(c)
	if c == q.napper {
		q.Lot.endNapOf(q.Lot.seat, awake)
	}
	q.queue = q.queue[1:]
	q.addWaiterCount(-1)
}

// handleWakeup handles a wakeup that this process received. If the condition is true, it wakes one
// goroutine. If it is not, it sets the participant's bit again. If no goroutine waits here any
// more, it passes the wakeup on to another process.
//
// It holds q.mu while it reads shared words, so that no waiter returns meanwhile: only the waiters
// hold the memory of the condition and of the bitmap.
func (q *Queue) handleWakeup() {
	q.waking.Add(1)
	defer q.waking.Add(-1)
	if q.closed.Load() {
		return
	}
	if q.waiters.Load() == 0 {
		q.passToProcess()
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return
	}
	if !q.Ready() {
		q.Lot.SetBit(q.Bits)
		if !q.Ready() {
			return
		}
	}
	q.wakeFirst()
}

// PassWakeup passes a wakeup on, if the condition is true, to another goroutine of this process,
// or to another process if none waits here.
func (q *Queue) PassWakeup() {
	if q.waiters.Load() != 0 {
		q.handleWakeup()
	} else {
		q.passToProcess()
	}
}

// passToProcess wakes another process if the condition is true. The caller need not hold q.mu.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): a wakeup must be passed on as long
// as the condition is true. Otherwise, of two messages, the second could stay in the ring while its
// receiver sleeps.
func (q *Queue) passToProcess() {
	if q.Ready() {
		q.WakeParticipant()
	}
}

// Await waits for the condition: it spins, naps and then parks. It returns [shm.ErrClosed] if
// over reports true afterwards, and the cause of ctx if ctx ends. After nil the condition may be
// false again: the caller must try its operation, and must call PassWakeup when it is done.
func (q *Queue) Await(ctx context.Context, over func() bool) error {
	if err := context.Cause(ctx); err != nil {
		// The wakeup may have come for this goroutine while others of the process wait.
		q.PassWakeup()
		return err
	}
	var err error
	if !q.Lot.SpinUntil(ctx, &q.Spin, q.Ready) {
		err = q.WaitOnce(ctx)
	}
	switch {
	case over():
		q.ClearBit()
		return shm.ErrClosed
	case err != nil:
		q.PassWakeup()
	}
	return err
}

// Close wakes all waiters and prevents further reads of the shared words. When it returns, no
// goroutine is reading them, so their memory may be reused for another object.
func (q *Queue) Close() {
	q.closed.Store(true)
	q.wakeAll()
	for q.waking.Load() != 0 {
		runtime.Gosched()
	}
	q.ClearBit()
}

// ClearBit clears the participant's bit, because no goroutine of this queue would answer a wakeup.
// Other queues of the process set the bit again if they need it, and a wakeup that has come already
// goes to another process.
//
// ClearBit runs in a lane, because Close of the domain waits for all lanes: once the domain is
// closed, the reaper has cleared the bit, and the memory may belong to another object.
func (q *Queue) ClearBit() {
	p := q.Lot
	p.domain.RunInLane(func() {
		q.Bits[p.word].AndNot(p.bit)
		p.HandleTopic(p.TopicOf(q.Bits))
		p.WakeOne(q.Bits, p.seat)
	})
}

// wakeAll wakes all goroutines of the queue, whether the condition is true or not.
func (q *Queue) wakeAll() {
	for q.waiters.Load() != 0 {
		q.wakeWaiter()
	}
}
