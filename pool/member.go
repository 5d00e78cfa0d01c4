package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/ipc"
)

// A member is the pool's handle of one worker. Calls are sent ahead of time to the worker's own
// queue, so that the worker does not wait for the next one. Calls that the worker has not started
// can be taken back from the queue, so that no call is delayed by a slow one before it.
//
// Note [Blame]: a worker takes a call, replies to it, and takes the next one. After its
// death, and after all its replies were read, at most one of its outstanding calls is no longer in
// its queue: the call that it was running. The other calls were not started and can be run by
// another worker without counting as a retry.
type member struct {
	p       *Pool
	rank    int
	group   *shoal.Group
	process *shoal.Process
	calls   carrier[call] // we also have the receiving end: see returnOne
	replies carrier[reply]
	stops   *ipc.Queue[uint64] // ids of calls to be canceled; the last one counts
	link    uint64             // number of the link of a worker on a goroutine, or 0

	feeding sync.Mutex // held while calls are put or taken back; locked before Pool.mu
	batch   []*task    // tasks being put
	out     []call

	// The following fields are guarded by Pool.mu.
	ready   bool
	over    bool    // the worker has ended
	leaving bool    // the worker gets no more calls
	late    bool    // the worker was killed for its timeout
	sent    []*task // outstanding tasks, oldest first
	count   int     // number of tasks assigned so far
	pace    time.Duration
	since   time.Time // time of the last reply, or of the first assignment while idle
	timed   *task     // task of the running alarm
	stopped uint64    // id of the last call that the worker was asked to stop
	alarm   *time.Timer
}

const (
	aheadTime = time.Millisecond // target duration of the calls sent ahead
	minAhead  = 2                // at least one besides the running call
	maxAhead  = 256
	maxStops  = 64 // capacity for unread requests; at most one per call
)

// newMember starts a worker with the given rank and random seed, and a goroutine that reads its
// replies until it has ended. If it returns an error, nothing was started.
func newMember(p *Pool, rank int, s uint64) (m *member, err error) {
	m = &member{p: p, rank: rank}
	args := workerArgs{Init: p.init}
	if err := m.makeQueues(&args); err != nil {
		m.closeQueues()
		return nil, fmt.Errorf("pool: %w", err)
	}
	opts := p.opts.Process
	opts.FirstRank = rank
	m.group = shoal.NewGroup(seed.With(p.ctx, seed.New(s)), opts)
	m.process = poolWorker.Go(m.group, args)
	go m.readReplies()
	return m, nil
}

// makeQueues makes the queues of the worker and stores its ends in args. If it returns an error,
// the caller must call closeQueues.
func (m *member) makeQueues(args *workerArgs) error {
	stops, err := ipc.NewQueue[uint64](maxStops)
	if err != nil {
		return err
	}
	m.stops, args.Stops = stops, stops.Receiver()
	if m.p.local {
		var l *localLink
		l, m.link = newLocalLink()
		m.calls, m.replies, args.Link = l.calls, l.replies, m.link
		return nil
	}
	calls, err := ipc.NewQueue[call](maxAhead)
	if err != nil {
		return err
	}
	m.calls, args.Calls = calls, calls.Receiver()
	replies, err := ipc.NewQueue[reply](maxAhead)
	if err != nil {
		return err
	}
	m.replies, args.Replies = replies, replies.Sender()
	return nil
}

// closeQueues closes the queues that makeQueues made.
func (m *member) closeQueues() {
	localLinks.Delete(m.link)
	if m.calls != nil {
		m.calls.Close()
	}
	if m.replies != nil {
		m.replies.Close()
	}
	if m.stops != nil {
		m.stops.Close()
	}
}

// readReplies reads the worker's replies until the worker has ended, and completes their tasks.
// Then it handles the end of the worker.
func (m *member) readReplies() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-m.process.Done()
		cancel()
	}()
	replies := make([]reply, maxAhead)
	for {
		n, err := m.replies.GetN(ctx, replies)
		m.completeTasks(replies[:n])
		clear(replies)
		if ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
			break
		}
		if err != nil {
			m.failUnreadable(err)
		}
	}
	<-m.process.Done()
	for {
		r, err := m.replies.TryGet()
		if errors.Is(err, ipc.ErrEmpty) || errors.Is(err, ipc.ErrClosed) {
			break
		}
		if err != nil {
			m.failUnreadable(err)
			continue
		}
		m.completeTasks([]reply{r})
	}
	m.handleEnd()
}

// completeTasks completes the tasks of the replies, which are in the order of the calls, and
// assigns new calls. No lock may be held. A reply with id 0 means that the worker is ready.
func (m *member) completeTasks(replies []reply) {
	if len(replies) == 0 {
		return
	}
	p := m.p
	p.mu.Lock()
	m.since = time.Now()
	tasks := make([]*task, len(replies))
	for i, r := range replies {
		if r.id == 0 {
			m.markReady()
			continue
		}
		m.updatePace(r.took)
		tasks[i] = m.removeSent(r.id)
	}
	m.rearmTimer()
	p.mu.Unlock()
	m.feedWorker()
	m.deliverReplies(tasks, replies)
	p.releaseIdle()
}

// deliverReplies delivers replies[i] to tasks[i], unless that task is nil. If the
// UnmarshalBinary method of a result calls runtime.Goexit, its task fails, and another goroutine
// goes on with the worker's replies.
func (m *member) deliverReplies(tasks []*task, replies []reply) {
	at := 0
	defer func() {
		if at == len(tasks) {
			return
		}
		tasks, replies = slices.Clone(tasks[at:]), slices.Clone(replies[at:])
		go func() {
			tasks[0].failLost(fmt.Errorf("decode result: %w: %w", shoal.ErrPanic, goexit.Err))
			replies[0].results.releaseBlocks()
			m.deliverReplies(tasks[1:], replies[1:])
			m.p.releaseIdle()
			m.readReplies()
		}()
	}()
	for ; at < len(tasks); at++ {
		if t := tasks[at]; t != nil {
			t.deliverReply(replies[at])
		}
	}
}

// failUnreadable fails, with err, the task of a reply that could not be decoded. That is the
// oldest outstanding task, because replies are in the order of the calls. If no task is
// outstanding, the worker violates the protocol, and failUnreadable kills it.
func (m *member) failUnreadable(err error) {
	m.p.mu.Lock()
	var t *task
	if len(m.sent) > 0 {
		t = m.removeSent(m.sent[0].id)
		m.rearmTimer()
	}
	m.p.mu.Unlock()
	if t == nil {
		m.process.Kill() // a reply without a call: the worker violates the protocol
		return
	}
	t.failLost(fmt.Errorf("decode result: %w", err))
	m.feedWorker()
}

// markReady records that the worker is ready. Pool.mu must be held.
func (m *member) markReady() {
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

// updatePace updates m.pace, the moving average of the duration of a call. Pool.mu must be held.
func (m *member) updatePace(took time.Duration) { m.pace += (took - m.pace) / 4 }

// sendLimit returns the number of outstanding calls that the worker may have, including the
// running one. It is 0 if the worker is not ready or gets no more calls. Pool.mu must be held.
func (m *member) sendLimit() int {
	if !m.ready || m.leaving {
		return 0
	}
	n := minAhead
	if m.pace > 0 {
		n = min(max(n, int(aheadTime/m.pace)), maxAhead)
	}
	return min(n, max(m.p.fairShare(), m.callsPerWake()))
}

// removeSent removes the task with the given id from the outstanding ones and returns it, or nil
// if it is not among them. Pool.mu must be held.
func (m *member) removeSent(id uint64) *task {
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

// sendPending assigns pending tasks to the worker and sends their calls, as many as the worker
// may have. No lock may be held. Tasks that cannot be sent are failed after all locks are
// released, because their owner may submit more.
func (m *member) sendPending() {
	for _, end := range m.trySendPending() {
		end()
	}
}

func (m *member) trySendPending() (ends []func()) {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	for m.assignPending(); len(m.batch) > 0; m.assignPending() {
		ends = append(ends, m.sendBatch()...)
	}
	if m.isLeaving() {
		m.calls.Finish()
	}
	return ends
}

// assignPending assigns pending tasks to the worker and stores them in m.batch. To amortize the
// cost, it does nothing until at most half of the allowed calls are outstanding; then m.batch is
// empty. m.feeding must be held, and Pool.mu must not.
func (m *member) assignPending() {
	p := m.p
	m.batch = m.batch[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := m.sendLimit()
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
	m.rearmTimer()
}

// sendBatch sends the calls of m.batch to the worker's queue, which has room, and empties
// m.batch. m.feeding must be held. The caller must call the returned functions, which fail the
// tasks that could not be sent, without holding a lock.
func (m *member) sendBatch() (ends []func()) {
	m.out = m.out[:0]
	for _, t := range m.batch {
		if t.owner.isDropped() {
			ends = append(ends, m.withdrawTask(t, errDropped))
			continue
		}
		m.out = append(m.out, t.call)
	}
	for out := m.out; len(out) > 0; {
		n, err := m.calls.PutN(context.Background(), out)
		if err != nil {
			ends = append(ends, m.withdrawTask(m.batchTask(out[n].id), err))
			n++
		}
		out = out[n:]
	}
	clear(m.batch)
	clear(m.out)
	return ends
}

// batchTask returns the task of m.batch with the given id, which must be in it.
func (m *member) batchTask(id uint64) *task {
	i := slices.IndexFunc(m.batch, func(t *task) bool { return t.id == id })
	return m.batch[i]
}

// withdrawTask removes a task that was not sent from the outstanding ones. Pool.mu must not be
// held. The caller must call the returned function, which fails the task with err, without
// holding a lock.
func (m *member) withdrawTask(t *task, err error) func() {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.removeSent(t.id)
	m.rearmTimer()
	m.count--
	m.leaving = false
	return func() { t.failLost(err) }
}

// isLeaving reports whether the worker will get no more calls, because it has had its maximum or
// because [Pool.Finish] was called and no task is left. Pool.mu must not be held.
func (m *member) isLeaving() bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.leaving = m.leaving || m.p.isExhausted()
	return m.leaving
}
