package arena

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Doubt] All watchers of a participant may be stopped when it dies (SIGSTOP, a debugger, a
// frozen control group). So a process in which a goroutine has been parked for a while asks for the
// proof of life of every participant itself. It marks the dead ones, which is enough for goroutines
// that wait for a cell. Then it reaps, which is needed for everything else that the dead
// participants held. The first look comes after 100 ms. Further looks come at growing intervals, up
// to a second, until another goroutine parks. No timer runs while no goroutine is parked.

const (
	doubtAfter = 100 * time.Millisecond
	doubtMost  = time.Second
)

// A doubt schedules these looks. A process has one timer for them.
type doubt struct {
	pace  atomic.Int64 // interval between two looks, 0 while no timer is set
	mu    sync.Mutex
	timer *time.Timer
	over  bool // stop was called
	// known has the state words of the dead participants that this process has reaped, or begun to
	// reap, under the recovery lock.
	known [word.MaxParticipants]atomic.Uint64
}

// scheduleDeathCheck schedules the next look for [doubtAfter] from now. Each goroutine must call it
// before it parks.
func (d *Domain) scheduleDeathCheck() {
	if q := &d.park.doubt; q.pace.Load() != int64(doubtAfter) && !(word.Crashing && word.IsControlled()) {
		q.schedule(doubtAfter, d.checkForDeaths)
	}
}

// schedule has look called after pace, unless stop was called.
func (q *doubt) schedule(pace time.Duration, look func()) {
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

// checkForDeaths does one look and schedules the next one. It holds the lock of doubt throughout,
// so that Close, which calls stop, does not release the memory meanwhile.
func (d *Domain) checkForDeaths() {
	q := &d.park.doubt
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	if !d.park.hasWaiters() {
		q.pace.Store(0)
		// Test again after the store: a goroutine that parks either sees the 0 and sets the timer,
		// or is seen here.
		if !d.park.hasWaiters() {
			return
		}
	}
	pace := min(max(2*time.Duration(q.pace.Load()), doubtAfter), doubtMost)
	q.pace.Store(int64(pace))
	q.timer.Reset(pace)
	if d.hasUnreaped() {
		d.park.handleWakeup()
		d.reapSoon()
	}
}

// hasUnreaped marks the dead participants. It reports whether one of them was not in the set when
// this process last held the recovery lock. The others need no second attempt: if an obstacle kept
// this process from finishing them, it is woken when the obstacle is gone.
func (d *Domain) hasUnreaped() (found bool) {
	dead, n, err := d.findDead()
	if n == 0 || err != nil {
		return false
	}
	for s := range dead {
		found = found || dead[s] && d.park.doubt.known[s].Load() != uint64(d.mem.Participants[s].State.Load())
	}
	return found
}

// recordReaped records the participants that this process reaps. The caller must hold the recovery
// lock.
func (q *doubt) recordReaped(d *Domain, dead *deadSet) {
	for s := range dead {
		if dead[s] {
			q.known[s].Store(uint64(d.mem.Participants[s].State.Load()))
		}
	}
}

// stop cancels the timer and waits for a test in progress. No test begins after it.
func (q *doubt) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.timer != nil {
		q.timer.Stop()
	}
}

// hasWaiters reports whether a goroutine of this process is parked.
func (p *parking) hasWaiters() bool { return p.waiters.Load() != 0 }
