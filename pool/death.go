package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/sys"
)

// rearmTimer starts the timer of Options.TaskTimeout anew if the oldest outstanding task has
// changed, and asks the worker to stop that task if its result is no longer wanted. It must be
// called whenever the oldest task may have changed, with Pool.mu held.
func (m *member) rearmTimer() {
	limit := m.p.opts.TaskTimeout
	var oldest *task
	if len(m.sent) > 0 {
		oldest = m.sent[0]
		m.requestStop(oldest)
	}
	if limit == 0 || oldest == m.timed {
		return
	}
	if m.alarm != nil {
		m.alarm.Stop()
	}
	if m.timed = oldest; oldest != nil {
		m.alarm = time.AfterFunc(limit*time.Duration(oldest.n), func() { m.killIfLate(oldest) })
	}
}

// requestStop asks the worker to cancel the context of the call t, if its owner no longer wants the
// result. It sends at most one request per call. The worker may not have started the call yet.
// Pool.mu must be held.
func (m *member) requestStop(t *task) {
	if t.id != m.stopped && t.owner.isAway() && m.stops.TryPut(t.id) == nil {
		m.stopped = t.id
	}
}

// stopOwner sets away, which isAway of an owner returns: it no longer wants its results. Then it
// asks workers to stop the running tasks of that owner. Its waiting tasks are dropped when they
// are due. Pool.mu must not be held.
func (p *Pool) stopOwner(away *atomic.Bool) {
	away.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m != nil && len(m.sent) > 0 {
			m.requestStop(m.sent[0])
		}
	}
}

// killIfLate kills the worker, because of its timeout, if t is still its oldest outstanding
// task. Pool.mu must not be held.
func (m *member) killIfLate(t *task) {
	m.p.mu.Lock()
	late := len(m.sent) > 0 && m.sent[0] == t
	m.late = m.late || late
	m.p.mu.Unlock()
	if late {
		m.process.Kill()
	}
}

// handleEnd waits for the end of the worker and handles it: it retries or fails the worker's
// tasks, and starts a replacement. It must be called once, after all replies have been read,
// with no lock held.
func (m *member) handleEnd() {
	p := m.p
	err := m.process.Wait(context.Background())
	m.group.Close()
	m.feeding.Lock()
	p.mu.Lock()
	lost := m.takeLost(m.calls.Len())
	m.over = true
	var broken error
	if !m.ready && err != nil {
		broken = p.recordBarren(m.rank, err)
	}
	why := m.taskError(err)
	ends := p.retryOrFail(m.rank, lost, why)
	died := p.cause == nil && err != nil
	p.mu.Unlock()
	m.feeding.Unlock()
	m.closeQueues()
	if broken != nil {
		p.endPool(broken)
	}
	switch {
	case died && m.ready:
		slog.Warn("pool: worker died", "rank", m.rank, "cause", why)
	case died:
		p.reportBarren(m.rank, err)
	}
	for _, end := range ends {
		end()
	}
	p.feedWorkers()
	p.replaceWorker(m.rank)
}

// maxBarren is the number of consecutive workers of a rank that may end before being ready while no
// other rank has a working one, unless Retries or StartRetries allow more for killed workers.
// Before each further attempt there is a pause that doubles from minPause up to maxPause.
const (
	maxBarren = 5
	minPause  = 10 * time.Millisecond
	maxPause  = time.Second
)

func startPause(barren int) time.Duration {
	if barren == 0 {
		return 0
	}
	return min(minPause<<min(barren-1, 10), maxPause)
}

// transientPatience is how long a rank that once had a worker may fail to start another one for
// lack of descriptors, processes or memory before that counts as a failure of the rank.
const transientPatience = time.Minute

// recordBarren records that a worker of the rank ended before it was ready. It returns the error
// that breaks the pool, or nil if the pool should continue. A failure other than a kill or a lack
// of resources, in a rank without a ready worker so far, breaks the pool, because it would repeat.
// A worker that was killed may succeed on the next attempt, so that breaks the pool only if no rank
// has a working worker and each has reached its limit. p.mu must be held.
func (p *Pool) recordBarren(rank int, err error) error {
	if p.cause != nil {
		return nil
	}
	r := &p.ranks[rank]
	if r.barren == 0 {
		r.since = time.Now()
	}
	r.barren, r.why = r.barren+1, err
	if !r.begun && !isTransientStart(err) {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	for _, m := range p.members {
		if m != nil && m.ready && !m.over {
			return nil
		}
	}
	var reasons []error
	for _, r := range p.ranks {
		short := r.begun && sys.Transient(r.why) && time.Since(r.since) < transientPatience
		if r.barren == 0 || r.barren < p.opts.startLimit(r.why) || short {
			return nil
		}
		reasons = append(reasons, r.why)
	}
	return fmt.Errorf("%w: %w", ErrBroken, errors.Join(reasons...))
}

func isTransientStart(err error) bool { return errors.Is(err, shoal.ErrExited) || sys.Transient(err) }

// startLimit returns the number of consecutive workers of a rank that may end with an error like
// err before they are ready. For an error that would repeat, it is 0.
func (o Options) startLimit(err error) int {
	dead, ok := errors.AsType[*shoal.ProcessError](err)
	switch {
	case !isTransientStart(err):
		return 0
	case ok && dead.Signal != nil:
		return max(maxBarren, 1+o.Retries, 1+o.StartRetries)
	}
	return maxBarren
}

// takeLost returns the tasks that the dead worker had started, at most one, and puts the others
// back at the front of the pending queue. The member has no tasks afterwards and gets no more.
// untaken is the number of calls left in the worker's queue; see the note at [member]. Pool.mu
// must be held.
func (m *member) takeLost(untaken int) (lost []*task) {
	taken := max(0, len(m.sent)-untaken)
	lost, rest := m.sent[:taken], m.sent[taken:]
	m.p.pending.pushFront(rest...)
	m.p.given -= len(m.sent)
	m.sent, m.leaving = nil, true
	m.rearmTimer()
	return lost
}

// taskError returns the error for the task that the worker was running when it ended. err is the
// error of its process, or nil if it exited with status 0. It wraps [ErrTimeout] if the worker
// was killed for its timeout.
func (m *member) taskError(err error) error {
	if err == nil {
		err = fmt.Errorf("%w: worker exited before it sent its reply", shoal.ErrExited)
	}
	if m.late {
		return fmt.Errorf("%w (TaskTimeout %v): %w", ErrTimeout, m.p.opts.TaskTimeout, err)
	}
	return err
}

// retryOrFail puts the tasks lost, which a dead worker of the rank had started, back into the
// pending queue if they may be retried, and otherwise fails them with a [*TaskError] that wraps
// err. If the pool has ended, it fails them and all pending tasks with the pool's cause. p.mu
// must be held. The caller must call the returned functions, which report retries and fail
// tasks, after releasing it, because they run callbacks that may need it.
func (p *Pool) retryOrFail(rank int, lost []*task, err error) (ends []func()) {
	for _, t := range lost {
		if p.cause == nil && t.tries < p.opts.Retries {
			t.tries++
			p.pending.pushFront(t)
			e := RetryEvent{Func: t.fn, Index: t.first, Rank: rank, Attempt: t.tries, Err: err}
			ends = append(ends, func() { p.reportRetry(e) })
			continue
		}
		end := func() { t.failLost(err) }
		if p.cause != nil {
			end = func() { t.failTask(p.cause) }
		}
		ends = append(ends, end)
	}
	if p.cause != nil {
		for _, t := range p.pending.popAll() {
			ends = append(ends, func() { t.failTask(p.cause) })
		}
	}
	return ends
}

// reportBarren logs that a worker of the rank ended with err before it was ready, or could not
// be started. p.mu must not be held.
func (p *Pool) reportBarren(rank int, err error) {
	p.mu.Lock()
	attempt := p.ranks[rank].barren
	p.mu.Unlock()
	slog.Warn("pool: worker failed to start", "rank", rank, "attempt", attempt, "pause", startPause(attempt),
		"cause", err)
}

// reportRetry logs and counts that a task is run again, and calls Options.OnRetry on a new
// goroutine.
func (p *Pool) reportRetry(e RetryEvent) {
	slog.Warn("pool: worker died, retrying its task", "func", e.Func, "index", e.Index, "rank", e.Rank,
		"attempt", e.Attempt, "cause", e.Err)
	if d := arena.Current(); d != nil {
		d.CountRetry()
	}
	if p.opts.OnRetry != nil {
		go goexit.RunCallback("pool: Options.OnRetry", func() { p.opts.OnRetry(e) })
	}
}

// releaseIdle lets the workers exit if [Pool.Finish] was called and no task is left. It must be
// called after a task has ended, with no lock held.
func (p *Pool) releaseIdle() {
	p.mu.Lock()
	over := p.isExhausted()
	if over && !p.restful {
		p.restful = true
		close(p.rested)
	}
	p.mu.Unlock()
	if over {
		p.feedWorkers()
	}
}
