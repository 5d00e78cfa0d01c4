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

// share returns one worker's share of all pending and assigned tasks. p.mu must be held.
func (p *Pool) share() int {
	return (p.pending.len() + p.given + p.opts.Workers - 1) / p.opts.Workers
}

// worth returns the number of calls that the worker is estimated to complete in the time that
// waking another worker takes. Pool.mu must be held.
func (m *member) worth() int {
	if m.pace <= 0 {
		return 1
	}
	return max(1, int(wakeTime/m.pace))
}

// feed assigns as many calls to the worker as it may have. If it remains idle, feed steals calls
// from other workers.
func (m *member) feed() {
	for m.fill(); m.idle() && m.p.takeBack(); m.fill() {
	}
}

// idle reports whether the worker is ready and has no calls.
func (m *member) idle() bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	return m.ready && !m.leaving && len(m.sent) == 0
}

// takeBack takes one call back from the queue of the worker with the most calls, and reports
// whether it did. If a worker may keep its calls for now, takeBack schedules another look.
func (p *Pool) takeBack() bool {
	p.mu.Lock()
	var from *member
	for _, m := range p.members {
		if m != nil && len(m.sent) > 1 && (from == nil || len(m.sent) > len(from.sent)) {
			if len(m.sent) <= m.worth() && time.Since(m.since) < spreadTime {
				p.lookAgain()
				continue
			}
			from = m
		}
	}
	p.mu.Unlock()
	return from != nil && from.giveBack()
}

// lookAgain schedules feedAll after spreadTime. p.mu must be held.
func (p *Pool) lookAgain() {
	if p.spread == nil && p.cause == nil {
		p.spread = time.AfterFunc(spreadTime, func() {
			p.mu.Lock()
			p.spread = nil
			p.mu.Unlock()
			p.feedAll()
		})
	}
}

// giveBack takes one call that the worker has not started back to the pending queue, and reports
// whether there was one.
func (m *member) giveBack() bool {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	return m.takeOne(m.p.pending.back) != nil
}

// takeAll takes all calls back that the worker has not started. They are no longer assigned.
func (m *member) takeAll() (tasks []*task) {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	add := func(ts ...*task) { tasks = append(tasks, ts...) }
	for m.takeOne(add) != nil {
	}
	return tasks
}

// takeOne takes one call back that the worker has not started, and passes its task to add with
// Pool.mu held. It returns nil if there is none. m.feeding must be held.
func (m *member) takeOne(add func(...*task)) *task {
	c, err := m.calls.TryGet()
	if err != nil {
		return nil
	}
	c.args.release()
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	t := m.drop(c.id)
	if t != nil {
		m.rearm()
		m.count--
		add(t)
	}
	return t
}
