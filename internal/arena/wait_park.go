package arena

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
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
	bits      *layout.Bitmap
	ready     func() bool
	*backoffs // nil: waiters park at once

	// topic, next and prev are set while the queue is registered; see [parking].
	topic      topic
	next, prev *waitQueue

	waiters atomic.Int32
	mu      word.LocalMutex
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
	own := threadWaitOf(ctx)
	nap := l.backoffs != nil && (own != nil || l.nap.isDue()) && l.d.becomeNapper()
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.countWaiters(1)
	if nap {
		l.napper = c
	}
	l.mu.Unlock()
	l.d.setBit(l.bits)
	ready := !word.IsDisabled("second look") && l.ready()
	if own != nil && !ready {
		l.d.scheduleDeathCheck() // the nap may be long
	}
	if nap {
		l.napUnlessReady(ctx, ready)
	}
	if ready {
		l.removeWaiter(c)
		return nil
	}
	if own != nil {
		return l.endThreadWait(own, c)
	}
	l.d.scheduleDeathCheck()
	if word.Crashing {
		word.BlockUntil(func() bool { return word.IsClosedChan(c) || word.IsClosedChan(ctx.Done()) })
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
	if own := threadWaitOf(ctx); own != nil {
		own.napOn(&l.d.mem.Participants[l.d.seat].Nap)
		l.d.finishNap()
		return
	}
	l.d.napFor(ctx, napTime)
	l.nap.recordResult(l.d.finishNap())
}

// endThreadWait ends a wait that does not park. It returns nil if the waiter was woken.
func (l *waitQueue) endThreadWait(own *ThreadWait, c chan struct{}) error {
	select {
	case <-c:
		return nil
	default:
	}
	l.removeWaiter(c)
	own.endWith(ErrNapOver)
	return own.Err()
}

// removeWaiter takes a channel out of the queue. It does nothing if a waker has done so already.
func (l *waitQueue) removeWaiter(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range l.queue {
		if q == c {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			l.countWaiters(-1)
			return
		}
	}
}

// countWaiters adds n to the number of waiters of the queue and of the process.
func (l *waitQueue) countWaiters(n int32) {
	l.waiters.Add(n)
	l.d.park.waiters.Add(int64(n))
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
	l.countWaiters(-1)
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
	if !l.d.spinUntil(ctx, &l.spin, l.ready) {
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
	l.d.park.handleTopic(l.d.topicOf(l.bits))
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
	napsAt atomic.Pointer[word.Word]
	alarm  alarm // for the context of the current or the last nap
	doubt  doubt
	// waiters is the number of parked goroutines of the process.
	waiters atomic.Int64

	mu sync.Mutex
	// queues has the first wait queue of each topic. It is linked to the others of its topic.
	queues map[topic]*waitQueue
}

// addQueues registers wait queues. The doorbell serves them until they are removed.
func (p *parking) addQueues(queues ...*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues == nil {
		p.queues = make(map[topic]*waitQueue)
	}
	for _, l := range queues {
		l.topic = l.d.topicOf(l.bits)
		first := p.queues[l.topic]
		if l.next = first; first != nil {
			first.prev = l
		}
		p.queues[l.topic] = l
	}
}

// removeQueues unregisters wait queues. It does nothing for a queue that is not registered.
func (p *parking) removeQueues(queues ...*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range queues {
		first := p.queues[l.topic] == l
		if !first && l.prev == nil {
			continue
		}
		if l.next != nil {
			l.next.prev = l.prev
		}
		switch {
		case !first:
			l.prev.next = l.next
		case l.next != nil:
			p.queues[l.topic] = l.next
		default:
			delete(p.queues, l.topic)
		}
		l.next, l.prev = nil, nil
	}
}

// queuesOf appends the registered wait queues of a topic to list.
func (p *parking) queuesOf(t topic, list []*waitQueue) []*waitQueue {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := p.queues[t]; l != nil; l = l.next {
		list = append(list, l)
	}
	return list
}

// allQueues returns all registered wait queues.
func (p *parking) allQueues() (list []*waitQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.queues {
		for ; l != nil; l = l.next {
			list = append(list, l)
		}
	}
	return list
}

// handleTopic has the wait queues of a topic test their conditions; see [waitQueue.handleWakeup].
func (p *parking) handleTopic(t topic) {
	if t == allTopics {
		p.handleWakeup()
		return
	}
	var few [4]*waitQueue
	for _, l := range p.queuesOf(t, few[:0]) {
		l.handleWakeup()
	}
	p.wakeBarrier()
}

// handleWakeup has every wait queue test its condition; see [waitQueue.handleWakeup].
func (p *parking) handleWakeup() {
	for _, l := range p.allQueues() {
		l.handleWakeup()
	}
	p.wakeBarrier()
}

// wakeBarrier wakes the goroutine that naps at a barrier, if there is one, so that it tests its
// condition.
func (p *parking) wakeBarrier() {
	if w := p.napsAt.Load(); w != nil {
		w.FutexWakeUpper()
	}
}

// parkUntil parks in a temporary wait queue until ready reports true or ctx ends. The participant
// that makes ready true must wake the whole bitmap. parkUntil does not spin, and does not nap if h
// is nil.
func (p *parking) parkUntil(ctx context.Context, d *Domain, bits *layout.Bitmap, ready func() bool,
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
	for _, l := range p.allQueues() {
		l.wakeAll()
	}
}

// serveBell serves the doorbell until the domain is closed: after each wakeup it has the wait
// queues of the topics test their conditions.
func (d *Domain) serveBell(b bell) {
	defer d.done.Done()
	seen := news{pressure: d.mem.Participants[d.seat].Collected.Load()}
	for {
		topics, err := b.Wait()
		if err != nil {
			return
		}
		d.handleBell(topics)
		seen = d.handleNews(seen)
	}
}

// handleBell handles the topics that the doorbell has received. It must look at the word missed
// after the doorbell was read; see [Domain.wakeBell].
func (d *Domain) handleBell(topics []topic) {
	if w := &d.mem.Participants[d.seat].Missed; w.Load() != 0 {
		w.Store(0) // before the conditions are tested: a topic that is missed later sets it again
		topics = everyTopic[:]
	}
	for _, t := range topics {
		d.park.handleTopic(t)
	}
}
