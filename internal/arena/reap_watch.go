package arena

import (
	"context"
	"time"
)

// Note [Notice of death] Every participant watches the next two living ones, seat by seat round the
// table, through pidfds in Go's netpoller: two descriptors each, however many participants there
// are. So each participant has two watchers, of which one may be stopped. When a pidfd fires, its
// watcher reaps, and finds all others that are dead as well. A participant that joins or leaves
// wakes everybody, and each one looks again which participants to watch. Where both watchers are
// stopped, waiters find the death (Note [Doubt]).

// watched is how many participants each one watches.
const watched = 2

// watch runs until the domain is closed.
func (d *Domain) watch(ctx context.Context) {
	defer d.done.Done()
	for again := time.Duration(0); ctx.Err() == nil; {
		if d.watchNext(ctx) {
			again = 0
			continue
		}
		again = min(max(2*again, time.Millisecond), time.Second)
		d.lookAgain(ctx, again)
	}
}

// watchNext reports false where one of the next participants seems to have ended, and its proof of
// life stands.
func (d *Domain) watchNext(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		seat int
		err  error
	}
	seats := d.nextLiving()
	ended := make(chan end, watched)
	for _, s := range seats {
		go func() { ended <- end{s, d.store.await(ctx, int(d.parts[s].pid.Load()), s)} }()
	}
	select {
	case <-ctx.Done():
	case <-d.relink:
	case e := <-ended:
		alive, unknown := d.store.alive(e.seat)
		if e.err != nil || unknown != nil || alive {
			return false
		}
		d.reapSoon()
	}
	return true
}

// reapSoon reaps in a goroutine of its own: a reaper may have to wait for a living participant, and
// this process must go on watching meanwhile, since it may be the one that watches that
// participant.
func (d *Domain) reapSoon() {
	if crashing && controlled() {
		spawn(func() { d.Reap() })
		return
	}
	d.done.Go(func() { d.Reap() })
}

// lookAgain is the pause before another look, where a process has ended and its proof of life
// stands: a child that it was making has not reached exec.
func (d *Domain) lookAgain(ctx context.Context, after time.Duration) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.relink:
	case <-t.C:
	}
}

// nextLiving returns the seats of the next participants after us that live.
//
// Invariant (docs/memory.md, "Notice"): every living participant is watched by the two before it in
// the table. The dead between them have no watcher, so the participant that finds them reaps them.
func (d *Domain) nextLiving() (seats []int) {
	dead := false
	for i := 1; i < maxParticipants && len(seats) < watched; i++ {
		s := (d.seat + i) % maxParticipants
		if d.parts[s].state.Load().is(participantFree) {
			continue
		}
		if alive, err := d.store.alive(s); err != nil || alive {
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

// announce has every other participant look again which ones to watch.
func (d *Domain) announce() {
	d.hdr.members.Add(1)
	d.wakeAll()
}

// news is the events to which a process has already answered.
type news struct{ members, pressure uint64 }

// hear looks for what the doorbell may have announced besides the wait queues.
func (d *Domain) hear(seen news) news {
	now := news{d.hdr.members.Load(), d.hdr.pressure.Load()}
	if now.members != seen.members {
		select {
		case d.relink <- struct{}{}:
		default:
		}
	}
	if now.pressure != seen.pressure {
		go d.collectForOthers()
	}
	if d.unfinished.Load() {
		d.reapSoon()
	}
	return now
}
