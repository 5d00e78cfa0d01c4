package park

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Domain is the participant that a [Lot] belongs to.
type Domain interface {
	// RunInLane calls f so that Close of the domain waits for it. It does not call f after Close.
	RunInLane(f func())
	// HasUnreaped marks the dead participants, and reports whether this process has yet to reap one
	// of them.
	HasUnreaped() bool
	// ReapSoon reaps in another goroutine.
	ReapSoon()
	// RetryReap tries again, in another goroutine, a reap that was left unfinished.
	RetryReap()
}

// Bells are the doorbells of all participants.
type Bells interface {
	// RingBell rings the doorbell of the participant in a seat and sends it the topic. It does
	// nothing if name is 0, because the participant has no doorbell yet. It returns full if too
	// many wakeups are pending, and this topic is not among them.
	RingBell(seat int, name uint64, t Topic) (full bool)
}

// A Lot has the wait queues of one participant. It wakes this participant's goroutines and other
// participants. It must be set up by [Lot.Init] and [Lot.TakeSeat], in this order. After that
// all methods may be called from several goroutines.
type Lot struct {
	domain Domain
	bells  Bells
	mem    layout.Memory

	seat int      // -1: none yet
	word int      // index of the word with our bit in a participant bitmap
	bit  uint64   // our bit in that word
	_    [64]byte // each put reads the fields above, and waits change those below

	// Unfinished means that a reap of this process waits for a living lane. The next wakeup retries
	// it.
	Unfinished atomic.Bool

	napper sync.Mutex // held by the goroutine that naps
	// napsAt is the state word of the barrier at which the napper sleeps, or nil.
	napsAt atomic.Pointer[word.Word]
	alarm  alarm // for the context of the current or the last nap

	deathChecks deathChecks
	// waiters is the number of parked goroutines of the process.
	waiters atomic.Int64

	mu sync.Mutex
	// queues has the first wait queue of each topic. It is linked to the others of its topic.
	queues map[Topic]*Queue
}

// Init prepares the lot of a participant that has no seat yet.
func (p *Lot) Init(d Domain, bells Bells, mem *layout.Memory) {
	p.domain, p.bells, p.mem = d, bells, *mem
	p.seat = -1
}

// TakeSeat sets the participant's seat. Its previous participant may have died napping, so TakeSeat
// resets the nap word.
func (p *Lot) TakeSeat(seat int) {
	p.seat, p.word, p.bit = seat, seat/64, 1<<(seat%64)
	p.mem.Participants[seat].Nap.Store(awake)
}

// Add registers wait queues. The doorbell serves them until they are removed.
func (p *Lot) Add(queues ...*Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues == nil {
		p.queues = make(map[Topic]*Queue)
	}
	for _, q := range queues {
		q.topic = p.TopicOf(q.Bits)
		first := p.queues[q.topic]
		if q.next = first; first != nil {
			first.prev = q
		}
		p.queues[q.topic] = q
	}
}

// Remove unregisters wait queues. It does nothing for a queue that is not registered.
func (p *Lot) Remove(queues ...*Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range queues {
		first := p.queues[q.topic] == q
		if !first && q.prev == nil {
			continue
		}
		if q.next != nil {
			q.next.prev = q.prev
		}
		switch {
		case !first:
			q.prev.next = q.next
		case q.next != nil:
			p.queues[q.topic] = q.next
		default:
			delete(p.queues, q.topic)
		}
		q.next, q.prev = nil, nil
	}
}

// QueuesOf appends the registered wait queues of a topic to list.
func (p *Lot) QueuesOf(t Topic, list []*Queue) []*Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q := p.queues[t]; q != nil; q = q.next {
		list = append(list, q)
	}
	return list
}

// Queues returns all registered wait queues.
func (p *Lot) Queues() (list []*Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		for ; q != nil; q = q.next {
			list = append(list, q)
		}
	}
	return list
}

// HandleBell handles the topics that the doorbell has received. Only the goroutine that serves
// the doorbell may call it, after it has read the doorbell: HandleBell looks at the word missed;
// see [Lot.RingBell].
func (p *Lot) HandleBell(topics []Topic) {
	if w := &p.mem.Participants[p.seat].Missed; w.Load() != 0 {
		w.Store(0) // before the conditions are tested: a topic that is missed later sets it again
		topics = everyTopic[:]
	}
	for _, t := range topics {
		p.HandleTopic(t)
	}
}

// HandleTopic has the wait queues of a topic test their conditions; see [Queue.handleWakeup].
func (p *Lot) HandleTopic(t Topic) {
	if t == AllTopics {
		p.HandleWakeup()
		return
	}
	var few [4]*Queue
	for _, q := range p.QueuesOf(t, few[:0]) {
		q.handleWakeup()
	}
	p.WakeBarrier()
}

// HandleWakeup has every wait queue test its condition; see [Queue.handleWakeup].
func (p *Lot) HandleWakeup() {
	for _, q := range p.Queues() {
		q.handleWakeup()
	}
	p.WakeBarrier()
}

// ParkUntil parks in a temporary wait queue until ready reports true or ctx ends, and then
// returns nil or the cause of ctx. The participant that makes ready true must wake the whole
// bitmap. ParkUntil does not spin, and does not nap if h is nil.
func (p *Lot) ParkUntil(ctx context.Context, bits *layout.Bitmap, ready func() bool, h *Backoffs) error {
	q := &Queue{Lot: p, Bits: bits, Ready: ready, Backoffs: h}
	p.Add(q)
	defer p.Remove(q)
	for !ready() {
		if err := q.WaitOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// EndWaits wakes all parked goroutines of the process, whether their conditions are true or not.
func (p *Lot) EndWaits() {
	for _, q := range p.Queues() {
		q.wakeAll()
	}
}
