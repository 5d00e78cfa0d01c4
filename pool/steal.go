package pool

import "time"

// Note [Who wakes whom]: a worker that sleeps is woken for as much work as waking it costs, and
// another one only for what is more than that: many tasks are done before a second worker would
// have begun. How long tasks take is known from those before, which says nothing of the next one.
// So a worker that has not answered for a while has to share what it was given, whatever was
// expected of it.
const (
	wakeTime   = 50 * time.Microsecond
	spreadTime = time.Millisecond
)

// share is how many tasks one worker may have: its part of what there is. mu is held.
func (p *Pool) share() int {
	return (p.pending.len() + p.given + p.opts.Workers - 1) / p.opts.Workers
}

// worth is how many calls the worker does in the time that it takes to wake another one, as far as
// that is known. Pool.mu is held.
func (m *member) worth() int {
	if m.pace <= 0 {
		return 1
	}
	return max(1, int(wakeTime/m.pace))
}

// feed gives the worker calls as far as it can take them. One that then has nothing takes from
// another.
func (m *member) feed() {
	for m.fill(); m.idle() && m.p.takeBack(); m.fill() {
	}
}

// idle reports whether the worker could work and has nothing to do.
func (m *member) idle() bool {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	return m.ready && !m.leaving && len(m.sent) == 0
}

// takeBack takes a call out of the queue of the worker that has most, and reports whether there was
// one. If there is one that may have its calls for the moment, somebody will look again.
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

// lookAgain has all workers fed in a while. mu is held.
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

// giveBack makes a call that the worker has not begun pending again.
func (m *member) giveBack() bool {
	m.feeding.Lock()
	defer m.feeding.Unlock()
	c, err := m.calls.TryGet()
	if err != nil {
		return false
	}
	c.args.release()
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	t := m.drop(c.id)
	if t == nil {
		return false
	}
	m.rearm()
	m.count--
	m.p.pending.back(t)
	return true
}
