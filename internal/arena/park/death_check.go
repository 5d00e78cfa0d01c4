package park

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Death checks] All watchers of a participant may be stopped when it dies (SIGSTOP, a
// debugger, a frozen control group). So a process with a goroutine that has been parked for a while
// asks for the proof of life of every participant itself. It marks the dead ones, which is enough
// for goroutines that wait for a cell. Then it reaps, which is needed for everything else that the
// dead participants held. The first check comes after 100 ms. Further checks come at growing
// intervals, up to a second, until another goroutine parks. No timer runs while no goroutine is
// parked.

const (
	firstDeathCheck   = 100 * time.Millisecond
	slowestDeathCheck = time.Second
)

// A deathChecks schedules the checks of Note [Death checks] for one participant, with one timer.
type deathChecks struct {
	pace  atomic.Int64 // interval between two checks, 0 while no timer is set
	mu    sync.Mutex
	timer *time.Timer
	over  bool // StopDeathChecks was called
}

// scheduleDeathCheck schedules the next check for [firstDeathCheck] from now. Each goroutine must
// call it before it parks.
func (p *Lot) scheduleDeathCheck() {
	if d := &p.deathChecks; d.pace.Load() != int64(firstDeathCheck) && !(word.Crashing && word.IsControlled()) {
		d.schedule(firstDeathCheck, p.checkForDeaths)
	}
}

// schedule calls check in another goroutine after pace, or restarts the timer if there is one. All
// calls must pass the same check, because the timer keeps the first one. schedule does nothing
// after StopDeathChecks.
func (d *deathChecks) schedule(pace time.Duration, check func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.pace.Store(int64(pace))
	if d.timer == nil {
		d.timer = time.AfterFunc(pace, check)
	} else {
		d.timer.Reset(pace)
	}
}

// checkForDeaths does one check and schedules the next one. It holds the lock of the checks
// throughout, so that Close of the domain, which calls StopDeathChecks, does not release the memory
// meanwhile.
func (p *Lot) checkForDeaths() {
	d := &p.deathChecks
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if !p.hasWaiters() {
		d.pace.Store(0)
		// Test again after the store: a goroutine that parks either sees the 0 and sets the timer,
		// or is seen here.
		if !p.hasWaiters() {
			return
		}
	}
	pace := min(max(2*time.Duration(d.pace.Load()), firstDeathCheck), slowestDeathCheck)
	d.pace.Store(int64(pace))
	d.timer.Reset(pace)
	if p.domain.HasUnreaped() {
		p.HandleWakeup()
		p.domain.ReapSoon()
	}
}

// StopDeathChecks cancels the timer and waits for a check in progress. No check begins after it.
func (p *Lot) StopDeathChecks() {
	d := &p.deathChecks
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// hasWaiters reports whether a goroutine of this process is parked.
func (p *Lot) hasWaiters() bool { return p.waiters.Load() != 0 }
