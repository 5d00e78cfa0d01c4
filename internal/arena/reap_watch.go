package arena

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Notice of death] Every participant watches the next two living ones, in the circular order
// of seats, by pidfds in Go's netpoller (https://man7.org/linux/man-pages/man2/pidfd_open.2.html):
// two descriptors each, however many participants there are. So each participant has two watchers,
// and one of them may be stopped. When a pidfd fires, the watcher reaps, and finds all other dead
// participants as well. A participant that joins or leaves wakes the two living ones before it,
// which choose again which seats to watch. If both watchers are stopped, waiters notice the death
// (Note [Death checks] in package park).

// watched is the number of participants that each participant watches.
const watched = 2

// watchParticipants watches the next living participants until ctx ends, when the domain is closed.
func (d *Domain) watchParticipants(ctx context.Context) {
	defer d.done.Done()
	for again := time.Duration(0); ctx.Err() == nil; {
		if d.watchNextLiving(ctx) {
			again = 0
			continue
		}
		again = min(max(2*again, time.Millisecond), time.Second)
		d.pauseWatch(ctx, again)
	}
}

// watchNextLiving watches the next living participants until one of them dies, the set of
// participants changes, or ctx ends. It returns false if a process seems to have ended, but its
// proof of life is still held. The caller must then pause before it tries again.
func (d *Domain) watchNextLiving(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		seat int
		err  error
	}
	seats := d.nextLivingSeats()
	ended := make(chan end, watched)
	for _, s := range seats {
		go func() { ended <- end{s, d.store.awaitDeath(ctx, int(d.mem.Participants[s].PID.Load()), s)} }()
	}
	select {
	case <-ctx.Done():
	case <-d.relink:
	case e := <-ended:
		alive, unknown := d.store.isAlive(e.seat)
		if e.err != nil || unknown != nil || alive {
			return false
		}
		d.reapSoon()
	}
	return true
}

// reapSoon calls [Domain.Reap] in a new goroutine. A reaper may wait for a living participant, and
// meanwhile this process must go on watching: it may be the only watcher of that participant.
func (d *Domain) reapSoon() {
	if word.Crashing && word.IsControlled() {
		word.Spawn(func() { d.Reap() })
		return
	}
	d.done.Go(func() { d.Reap() })
}

// pauseWatch pauses until after has passed, the set of participants changes, or ctx ends. It is
// called if a process has ended and its proof of life is still held: a child that it was forking
// shares the open file description, and with it the lock, until exec closes the descriptor.
func (d *Domain) pauseWatch(ctx context.Context, after time.Duration) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.relink:
	case <-t.C:
	}
}

// nextLivingSeats returns the seats of the next living participants, at most [watched] of them. If
// it finds dead ones on the way, it starts a reaper.
//
// Invariant (docs/memory.md, "Notice"): every living participant is watched by the two living ones
// before it in the circle. The dead ones between them have no watcher, so the participant that
// finds them must reap them.
func (d *Domain) nextLivingSeats() (seats []int) {
	dead := false
	for i := 1; i < word.MaxParticipants && len(seats) < watched; i++ {
		s := (d.seat + i) % word.MaxParticipants
		if d.mem.Participants[s].State.Load().HasState(word.ParticipantFree) {
			continue
		}
		if alive, err := d.store.isAlive(s); err != nil || alive {
			seats = append(seats, s)
		} else {
			dead = true
		}
	}
	if dead {
		d.reapSoon()
	}
	return seats
}

// announceLeave has other participants look again for what this one leaves to them. It must be
// called after the participant has released the recovery lock, and again after it has freed its
// seat. quiet reports whether only its watchers are concerned; otherwise all participants look for
// dead ones and test all conditions.
func (d *Domain) announceLeave(quiet bool) {
	if quiet {
		d.announceSeat()
	} else {
		d.announceChange(park.AllTopics)
	}
}

// leavesQuietly reports whether a participant that has reaped itself leaves nothing to others: no
// lock has lost its holder, and no participant has died, whose reaper may have given up because
// this one had the recovery lock. A participant that dies later is noticed by its watchers.
func (d *Domain) leavesQuietly() bool {
	unreaped, err := d.hasDead()
	return !d.named.Load() && !unreaped && err == nil
}

// announceChange has every other participant choose again which seats to watch, look for dead ones,
// and test the conditions of the topic.
func (d *Domain) announceChange(t park.Topic) {
	d.mem.Header.Members.Add(1)
	d.park.WakeAll(t)
}

// announceSeat has the participants that watch this one's seat choose again. They are the [watched]
// living ones before it in the circle. The watchers of a dead one look again in any case.
func (d *Domain) announceSeat() {
	d.mem.Header.Members.Add(1)
	for i, n := 1, 0; i < word.MaxParticipants && n < watched; i++ {
		s := (d.seat - i + word.MaxParticipants) % word.MaxParticipants
		if d.mem.Participants[s].State.Load().HasState(word.ParticipantFree) {
			continue
		}
		if alive, err := d.store.isAlive(s); err != nil || alive {
			d.park.RingBell(s, park.NoTopic)
			n++
		}
	}
}

// news has the counters of the events that this process has handled.
type news struct{ members, pressure uint64 }

// handleNews handles the events that the doorbell announces in addition to wakeups: changes of
// the set of participants, requests to collect garbage, and the end of an obstacle to a reap.
// seen has the counters of the call before. handleNews returns the counters that are handled
// now.
func (d *Domain) handleNews(seen news) news {
	now := news{d.mem.Header.Members.Load(), d.mem.Header.Pressure.Load()}
	if now.members != seen.members {
		select {
		case d.relink <- struct{}{}:
		default:
		}
	}
	if now.pressure != seen.pressure {
		go d.collectForOthers()
	}
	if d.park.Unfinished.Load() {
		d.reapSoon()
	}
	return now
}
