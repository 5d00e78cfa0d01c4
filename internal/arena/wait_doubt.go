package arena

import (
	"sync"
	"sync/atomic"
	"time"
)

// Note [Doubt] The watchers of a participant notice its death, and all of them may be stopped
// (SIGSTOP, a debugger, a frozen control group). So a process in which a goroutine has waited for a
// while doubts that the others live, and asks every participant for its proof of life. It marks the
// dead: a waiter for a lock needs no more. Then it reaps, which ends the waits for what else the
// dead had. It asks after 100 ms, and then less and less often, each second at last, as long as no
// other goroutine begins to wait. There is no timer where nobody waits.

const (
	doubtAfter = 100 * time.Millisecond
	doubtMost  = time.Second
)

// doubt is the timer of a process for these looks.
type doubt struct {
	pace  atomic.Int64 // the time between two looks, 0 while there is no timer
	mu    sync.Mutex
	timer *time.Timer
	over  bool
	known [maxParticipants]atomic.Uint64 // the state words of the dead for whom it had the recovery lock
}

// doubtSoon is called by each goroutine that parks.
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
		if !d.park.waited() { // a goroutine that parks sees the 0, or is seen here
			return
		}
	}
	pace := min(max(2*time.Duration(q.pace.Load()), doubtAfter), doubtMost)
	q.pace.Store(int64(pace))
	q.timer.Reset(pace)
	if d.unreaped() {
		d.park.wakeup()
		d.reapSoon()
	}
}

// unreaped marks the dead, and reports whether there is one for which this process has not had the
// recovery lock yet. The others need no second time: whatever keeps a reaper from a dead one wakes
// this process when it ends.
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

// reaps notes the dead for which this process has the recovery lock.
func (q *doubt) reaps(d *Domain, dead *deadSet) {
	for s := range dead {
		if dead[s] {
			q.known[s].Store(uint64(d.parts[s].state.Load()))
		}
	}
}

// stop ends the looks.
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
