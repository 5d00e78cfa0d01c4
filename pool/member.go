package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/ipc"
)

// A member is a worker as the pool sees it. It is given calls ahead, in a queue of its own, so that
// it need not wait for the next; and what it has not begun can be taken back out of the queue, so
// that nobody waits behind a slow one.
//
// Note [Who is to blame]: a worker takes a call, answers it, and takes the next. So when it has
// died and its answers are read, the calls that it had and that are not in its queue any more are
// one or none: the one that it was at. The others have not been touched.
type member struct {
	p       *Pool
	rank    int
	group   *shoal.Group
	process *shoal.Process
	calls   *ipc.Queue[call] // both ends are ours as well: see giveBack
	replies *ipc.Queue[reply]
	stops   *ipc.Queue[uint64] // the call whose context is to be cancelled: the last one said counts

	feeding sync.Mutex // held while calls are put or taken back; before Pool.mu
	batch   []*task    // what is being put
	out     []call

	// Under Pool.mu.
	ready   bool
	over    bool    // it has ended
	leaving bool    // it gets no more calls
	late    bool    // it was killed for its timeout
	sent    []*task // what it was given and has not answered, the oldest first
	count   int     // of all that it was given
	pace    time.Duration
	since   time.Time // it was given something while it had nothing, or answered
	timed   *task     // whose timeout runs
	stopped uint64    // the call that it was told to stop
	alarm   *time.Timer
}

const (
	aheadTime = time.Millisecond // a worker has calls for so long ahead
	minAhead  = 2                // and at least one besides that which it is at
	maxAhead  = 256
	maxStops  = 64 // of which the worker has not heard yet; there is one for a call at most
)

// newMember starts a worker.
func newMember(p *Pool, rank int, s uint64) (m *member, err error) {
	m = &member{p: p, rank: rank}
	if m.calls, err = ipc.NewQueue[call](maxAhead); err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	if m.replies, err = ipc.NewQueue[reply](maxAhead); err != nil {
		return nil, errors.Join(fmt.Errorf("pool: %w", err), m.calls.Close())
	}
	if m.stops, err = ipc.NewQueue[uint64](maxStops); err != nil {
		return nil, errors.Join(fmt.Errorf("pool: %w", err), m.calls.Close(), m.replies.Close())
	}
	opts := p.opts.Process
	opts.FirstRank = rank
	m.group = shoal.NewGroup(seed.With(p.ctx, seed.New(s)), opts)
	m.process = employ.Go(m.group, station{m.calls.Receiver(), m.replies.Sender(), m.stops.Receiver(), p.init})
	go m.attend()
	return m, nil
}

// attend reads what the worker says until it has ended.
func (m *member) attend() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-m.process.Done()
		cancel()
	}()
	replies := make([]reply, maxAhead)
	for {
		n, err := m.replies.GetN(ctx, replies)
		m.answered(replies[:n])
		clear(replies)
		if ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
			break
		}
		if err != nil {
			m.unreadable(err)
		}
	}
	<-m.process.Done()
	for {
		r, err := m.replies.TryGet()
		if errors.Is(err, ipc.ErrEmpty) || errors.Is(err, ipc.ErrClosed) {
			break
		}
		if err != nil {
			m.unreadable(err)
			continue
		}
		m.answered([]reply{r})
	}
	m.remove()
}

// answered ends the tasks of the replies, which are in the order of the calls.
func (m *member) answered(replies []reply) {
	if len(replies) == 0 {
		return
	}
	p := m.p
	p.mu.Lock()
	m.since = time.Now()
	tasks := make([]*task, len(replies))
	for i, r := range replies {
		if r.id == 0 {
			m.begin()
			continue
		}
		m.measure(r.took)
		tasks[i] = m.drop(r.id)
	}
	m.rearm()
	p.mu.Unlock()
	m.feed()
	for i, t := range tasks {
		if t != nil {
			t.finish(replies[i])
		}
	}
	p.rest()
}

// unreadable ends the task of a reply that could not be read: the oldest, since replies are in the
// order of the calls.
func (m *member) unreadable(err error) {
	m.p.mu.Lock()
	var t *task
	if len(m.sent) > 0 {
		t = m.drop(m.sent[0].id)
		m.rearm()
	}
	m.p.mu.Unlock()
	if t == nil {
		m.process.Kill() // it talks nonsense, unasked
		return
	}
	t.die(fmt.Errorf("its result cannot be read: %w", err))
	m.feed()
}

// begin notes that the worker is ready. Pool.mu is held.
func (m *member) begin() {
	p := m.p
	r := &p.ranks[m.rank]
	first := !r.begun
	m.ready, r.begun, r.barren, r.why = true, true, 0, nil
	if first && p.newborn > 0 {
		if p.newborn--; p.newborn == 0 {
			close(p.ready)
		}
	}
}

// measure follows how long calls take. Pool.mu is held.
func (m *member) measure(took time.Duration) { m.pace += (took - m.pace) / 4 }

// ahead is how many calls the worker may have. Pool.mu is held.
func (m *member) ahead() int {
	if !m.ready || m.leaving {
		return 0
	}
	n := minAhead
	if m.pace > 0 {
		n = min(max(n, int(aheadTime/m.pace)), maxAhead)
	}
	return min(n, max(m.p.share(), m.worth()))
}

// drop takes a task off the list, nil if it is not there. Pool.mu is held.
func (m *member) drop(id uint64) *task {
	for i, t := range m.sent {
		if t.id == id {
			if i == 0 {
				m.sent[0], m.sent = nil, m.sent[1:]
			} else {
				m.sent = slices.Delete(m.sent, i, i+1)
			}
			m.p.given--
			return t
		}
	}
	return nil
}

// fill puts pending calls into the queue of the worker. What cannot be sent ends when no lock is
// held: its owner may hand in more.
func (m *member) fill() {
	for _, end := range m.fillUp() {
		end()
	}
}

func (m *member) fillUp() (ends []func()) {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	for m.next(); len(m.batch) > 0; m.next() {
		ends = append(ends, m.put()...)
	}
	if m.parts() {
		m.calls.Finish()
	}
	return ends
}

// next fetches tasks for the worker, which are on its list then. So as not to do it for each single
// one, it waits until half of what the worker may have is done.
func (m *member) next() {
	p := m.p
	m.batch = m.batch[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := m.ahead()
	if len(m.sent) > ahead/2 {
		return
	}
	if len(m.sent) == 0 {
		m.since = time.Now()
	}
	for len(m.sent) < ahead {
		t := p.pending.pop()
		if t == nil {
			break
		}
		m.sent = append(m.sent, t)
		m.batch = append(m.batch, t)
		p.given++
		if m.count++; m.count == p.opts.MaxTasksPerWorker {
			m.leaving = true
			break
		}
	}
	m.rearm()
}

// put puts the batch into the queue, which has room. What is returned ends those that cannot be
// sent.
func (m *member) put() (ends []func()) {
	m.out = m.out[:0]
	for _, t := range m.batch {
		if t.owner.dropped() {
			ends = append(ends, m.refuse(t, errDropped))
			continue
		}
		m.out = append(m.out, t.call)
	}
	for out := m.out; len(out) > 0; {
		n, err := m.calls.PutN(context.Background(), out)
		if err != nil {
			ends = append(ends, m.refuse(m.of(out[n].id), err))
			n++
		}
		out = out[n:]
	}
	clear(m.batch)
	clear(m.out)
	return ends
}

// of returns the task of the batch that has an id.
func (m *member) of(id uint64) *task {
	i := slices.IndexFunc(m.batch, func(t *task) bool { return t.id == id })
	return m.batch[i]
}

// refuse takes back a task that is not sent, and returns what ends it.
func (m *member) refuse(t *task, err error) func() {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.drop(t.id)
	m.rearm()
	m.count--
	m.leaving = false
	return func() { t.die(err) }
}

// parts reports whether the worker was given all that it ever gets.
func (m *member) parts() bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.leaving = m.leaving || m.p.exhausted()
	return m.leaving
}
