package pool

import "time"

// Note [Wakeups]: waking a sleeping worker costs as much as wakeTime of work. One worker is
// therefore given at least that much work before another one is woken: many short tasks are
// complete before a second worker would have started. The duration of tasks is estimated from
// earlier ones, which may be wrong for the next one. A worker that has not replied for spreadTime
// must therefore share its calls with the others, whatever the estimate.
const (
	wakeTime   = 50 * time.Microsecond
	spreadTime = time.Millisecond
)

// fairShare returns the number of tasks that each worker would have if all pending and assigned
// ones were divided equally, rounded up. p.mu must be held.
func (p *Pool) fairShare() int {
	return (p.pending.len() + p.given + p.opts.Workers - 1) / p.opts.Workers
}

// callsPerWake returns the number of calls that the worker is estimated to complete in the time
// that waking another worker takes. Pool.mu must be held.
func (m *member) callsPerWake() int {
	if m.pace <= 0 {
		return 1
	}
	return max(1, int(wakeTime/m.pace))
}

// feedWorker assigns as many calls to the worker as it may have. If it remains idle, feedWorker
// takes calls from the queues of other workers, one at a time. No lock may be held.
func (m *member) feedWorker() {
	for m.sendPending(); m.isIdle() && m.p.stealCall(); m.sendPending() {
	}
}

// isIdle reports whether the worker is ready and has no calls, and may get some. Pool.mu must
// not be held.
func (m *member) isIdle() bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	return m.ready && !m.leaving && len(m.sent) == 0
}

// stealCall takes one call back from the queue of the worker with the most calls to the pending
// queue, and reports whether it did. If a worker may keep its calls for now, stealCall schedules
// another call of feedWorkers. p.mu must not be held.
func (p *Pool) stealCall() bool {
	p.mu.Lock()
	var from *member
	for _, m := range p.members {
		if m != nil && len(m.sent) > 1 && (from == nil || len(m.sent) > len(from.sent)) {
			if len(m.sent) <= m.callsPerWake() && time.Since(m.since) < spreadTime {
				p.scheduleFeed()
				continue
			}
			from = m
		}
	}
	p.mu.Unlock()
	return from != nil && from.returnOne()
}

// scheduleFeed calls feedWorkers after [spreadTime], on another goroutine, unless a call is
// scheduled already or the pool has ended. p.mu must be held.
func (p *Pool) scheduleFeed() {
	if p.spread == nil && p.cause == nil {
		p.spread = time.AfterFunc(spreadTime, func() {
			p.mu.Lock()
			p.spread = nil
			p.mu.Unlock()
			p.feedWorkers()
		})
	}
}

// returnOne takes one call that the worker has not started back to the pending queue, and
// reports whether there was one. Neither m.feeding nor Pool.mu may be held.
func (m *member) returnOne() bool {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	return m.takeBackOne(m.p.pending.pushFront) != nil
}

// takeBackAll takes all calls back that the worker has not started, and returns their tasks,
// which are neither assigned nor pending then. Neither m.feeding nor Pool.mu may be held.
func (m *member) takeBackAll() (tasks []*task) {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	add := func(ts ...*task) { tasks = append(tasks, ts...) }
	for m.takeBackOne(add) != nil {
	}
	return tasks
}

// takeBackOne takes one call back that the worker has not started, and passes its task to add
// with Pool.mu held. It returns the task, or nil if there is none. m.feeding must be held.
func (m *member) takeBackOne(add func(...*task)) *task {
	c, err := m.calls.TryGet()
	if err != nil {
		return nil
	}
	c.args.releaseBlocks()
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	t := m.removeSent(c.id)
	if t != nil {
		m.rearmTimer()
		m.count--
		add(t)
	}
	return t
}
