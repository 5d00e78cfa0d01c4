package arena

import (
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// ThreadWait is the context of a wait of a caller that owns its thread; see [park.ThreadWait].
type ThreadWait = park.ThreadWait

// Errors of a wait with a [ThreadWait].
var (
	ErrNapOver     = park.ErrNapOver
	ErrInterrupted = park.ErrInterrupted
)

// A parker is a participant as package park uses it. It implements [park.Domain].
type parker struct{ d *Domain }

// RunInLane implements [park.Domain].
func (p parker) RunInLane(f func()) {
	l, err := p.d.acquireLane()
	if err != nil {
		return
	}
	defer l.unlock()
	f()
}

// HasUnreaped implements [park.Domain]. The participants that this process has reaped need no
// second attempt: if an obstacle kept this process from finishing them, it is woken when the
// obstacle is gone.
func (p parker) HasUnreaped() (found bool) {
	dead, n, err := p.d.findDead()
	if n == 0 || err != nil {
		return false
	}
	for s := range dead {
		found = found || dead[s] && p.d.reaped[s].Load() != uint64(p.d.mem.Participants[s].State.Load())
	}
	return found
}

// ReapSoon implements [park.Domain].
func (p parker) ReapSoon() { p.d.reapSoon() }

// RetryReap implements [park.Domain].
func (p parker) RetryReap() { word.Spawn(func() { p.d.Reap() }) }

// recordReaped records the dead participants, which this process is about to reap, for
// [parker.HasUnreaped]. The caller must hold the recovery lock.
func (d *Domain) recordReaped(dead *deadSet) {
	for s := range dead {
		if dead[s] {
			d.reaped[s].Store(uint64(d.mem.Participants[s].State.Load()))
		}
	}
}

// serveBell runs in a goroutine of its own until the doorbell is closed. After each wakeup it
// has the wait queues of the topics test their conditions.
func (d *Domain) serveBell(b bell) {
	defer d.done.Done()
	seen := news{pressure: d.mem.Participants[d.seat].Collected.Load()}
	for {
		topics, err := b.Wait()
		if err != nil {
			return
		}
		d.park.HandleBell(topics)
		seen = d.handleNews(seen)
	}
}
