package pool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
)

// rearm is called where the oldest call may be another one than before: it sets the alarm for it,
// and stops it if nobody wants it. Pool.mu is held.
func (m *member) rearm() {
	limit := m.p.opts.TaskTimeout
	var oldest *task
	if len(m.sent) > 0 {
		oldest = m.sent[0]
		m.stop(oldest)
	}
	if limit == 0 || oldest == m.timed {
		return
	}
	if m.alarm != nil {
		m.alarm.Stop()
	}
	if m.timed = oldest; oldest != nil {
		m.alarm = time.AfterFunc(limit*time.Duration(oldest.n), func() { m.timeout(oldest) })
	}
}

// stop tells the worker, once, to cancel the context of the call that it is at, or comes to next,
// if nobody wants its result.
func (m *member) stop(t *task) {
	if t.id != m.stopped && t.owner.away() && m.stops.TryPut(t.id) == nil {
		m.stopped = t.id
	}
}

// stop sets what the away of an owner returns, and stops its tasks.
func (p *Pool) stop(away *atomic.Bool) {
	away.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m != nil && len(m.sent) > 0 {
			m.stop(m.sent[0])
		}
	}
}

// timeout kills the worker if it is still at t.
func (m *member) timeout(t *task) {
	m.p.mu.Lock()
	late := len(m.sent) > 0 && m.sent[0] == t
	m.late = m.late || late
	m.p.mu.Unlock()
	if late {
		m.process.Kill()
	}
}

// bury takes leave of a worker that has ended, and starts its successor.
func (m *member) remove() {
	p := m.p
	err := m.process.Wait(context.Background())
	m.group.Close()
	m.feeding.Lock()
	p.mu.Lock()
	lost := m.lose(m.calls.Len())
	broken := m.despair(err)
	ends := p.judge(lost, m.why(err))
	again := broken == nil && p.cause == nil && !p.exhausted()
	p.mu.Unlock()
	m.feeding.Unlock()
	m.calls.Close()
	m.replies.Close()
	m.stops.Close()
	if broken != nil {
		p.end(broken)
	}
	for _, end := range ends {
		end()
	}
	p.feedAll()
	if again {
		p.hire(m.rank)
	} else {
		p.leave()
	}
}

// maxBarren is how many workers in a row may end before they are ready.
const maxBarren = 3

// despair returns why there will be no more workers, if the end of this one says so. One that was
// killed before it was ready may have had bad luck; one that failed by itself will do it again.
// Pool.mu is held.
func (m *member) despair(err error) error {
	p := m.p
	if m.ready || p.cause != nil {
		return nil
	}
	p.barren++
	if err == nil || errors.Is(err, shoal.ErrExited) && p.barren < maxBarren {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// lose returns the tasks that the worker was at, at most one, and makes those in its queue pending
// again. Pool.mu is held.
func (m *member) lose(untaken int) (lost []*task) {
	taken := max(0, len(m.sent)-untaken)
	lost, rest := m.sent[:taken], m.sent[taken:]
	m.p.pending.back(rest...)
	m.p.given -= len(m.sent)
	m.sent, m.leaving = nil, true
	m.rearm()
	return lost
}

// why is the error of what the worker was at.
func (m *member) why(err error) error {
	if err == nil {
		err = fmt.Errorf("%w: the worker left before it had answered", shoal.ErrExited)
	}
	if m.late {
		return fmt.Errorf("%w (more than %v): %w", ErrTimeout, m.p.opts.TaskTimeout, err)
	}
	return err
}

// judge decides what becomes of tasks whose worker has died: they are pending again, or what is
// returned ends them. mu is held.
func (p *Pool) judge(lost []*task, err error) (ends []func()) {
	for _, t := range lost {
		if p.cause == nil && t.tries < p.opts.Retries {
			t.tries++
			p.pending.back(t)
			continue
		}
		end := func() { t.die(err) }
		if p.cause != nil {
			end = func() { t.fail(p.cause) }
		}
		ends = append(ends, end)
	}
	if p.cause != nil {
		for _, t := range p.pending.clear() {
			ends = append(ends, func() { t.fail(p.cause) })
		}
	}
	return ends
}

// rest lets the workers go if nothing is left to do.
func (p *Pool) rest() {
	p.mu.Lock()
	over := p.exhausted()
	p.mu.Unlock()
	if over {
		p.feedAll()
	}
}
