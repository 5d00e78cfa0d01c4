package shm

import (
	"sync"
	"sync/atomic"
	"time"
)

// Note [Doubt] A death is noticed by those who watch the dead one, and all of them may be stopped
// (SIGSTOP, a debugger, a frozen control group). So a process in which somebody has waited for a
// while doubts that whom it waits for lives, and asks everybody for the proof. It marks the dead:
// that is all that a waiter for a lock needs. Then it reaps, which ends the waits for what else the
// dead had. It asks after 100 ms, and then less and less often as long as nobody else begins to
// wait: each second at last. There is no timer where nobody waits.

const (
	doubtAfter = 100 * time.Millisecond
	doubtMost  = time.Second
)

// doubt is the timer of a process for that.
type doubt struct {
	pace  atomic.Int64 // the time between two looks, 0 while there is no timer
	mu    sync.Mutex
	timer *time.Timer
	over  bool
	known [maxParticipants]atomic.Uint64 // the state words of the dead for whom it had the recovery lock
}

// doubtSoon is told of everybody that parks.
func (d *Domain) doubtSoon() {
	if q := &d.park.doubt; q.pace.Load() != int64(doubtAfter) && !(crashing && controlled()) {
		q.set(doubtAfter, d.doubtNow)
	}
}

func (q *doubt) set(pace time.Duration, look func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.pace.Store(int64(pace))
	if q.timer == nil {
		q.timer = time.AfterFunc(pace, look)
	} else {
		q.timer.Reset(pace)
	}
}

// doubtNow is one look. The lock keeps Close from letting go of what is looked at.
func (d *Domain) doubtNow() {
	q := &d.park.doubt
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	if !d.park.waited() {
		q.pace.Store(0)
		if !d.park.waited() { // who parks sees the 0, or is seen here
			return
		}
	}
	pace := min(max(2*time.Duration(q.pace.Load()), doubtAfter), doubtMost)
	q.pace.Store(int64(pace))
	q.timer.Reset(pace)
	if d.unreaped() {
		d.park.rung()
		d.reapSoon()
	}
}

// unreaped marks the dead, and reports whether there is one for whom this process has not had the
// recovery lock. One for whom it has had it needs no second time: what was in the way of that rings
// this process.
func (d *Domain) unreaped() (found bool) {
	dead, n, err := d.findDead()
	if n == 0 || err != nil {
		return false
	}
	for s := range dead {
		found = found || dead[s] && d.park.doubt.known[s].Load() != uint64(d.parts[s].state.Load())
	}
	return found
}

// reaps is told of the dead for whom this process has the recovery lock.
func (q *doubt) reaps(d *Domain, dead *deadSet) {
	for s := range dead {
		if dead[s] {
			q.known[s].Store(uint64(d.parts[s].state.Load()))
		}
	}
}

// stop ends it.
func (q *doubt) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.timer != nil {
		q.timer.Stop()
	}
}

// waited reports whether a goroutine of this process is parked.
func (p *parking) waited() bool {
	p.mu.Lock()
	queues := p.queues
	p.mu.Unlock()
	for _, l := range queues {
		if l.waiters.Load() != 0 {
			return true
		}
	}
	return false
}
