package shm

import (
	"context"
	"time"
)

// Note [Notice of death] Every participant watches the next living one, seat by seat round the
// table, through a pidfd in Go's netpoller: one descriptor each, however many they are. When the
// pidfd fires, the watcher reaps, and everybody who was dead on the way is found with it. A
// participant that joins or leaves rings everybody, and each looks again whom to watch.

// watch runs until the domain is closed.
func (d *Domain) watch(ctx context.Context) {
	defer d.done.Done()
	for again := time.Duration(0); ctx.Err() == nil; {
		if d.watchOne(ctx) {
			again = 0
			continue
		}
		again = min(max(2*again, time.Millisecond), time.Second)
		d.lookAgain(ctx, again)
	}
}

// watchOne reports false if the next participant has ended, as far as can be seen, and its proof of
// life stands.
func (d *Domain) watchOne(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, ok := d.nextLiving()
	ended := make(chan error, 1)
	if ok {
		go func() { ended <- d.store.await(ctx, int(d.parts[s].pid.Load()), s) }()
	}
	select {
	case <-ctx.Done():
	case <-d.relink:
	case err := <-ended:
		alive, unknown := d.store.alive(s)
		if err != nil || unknown != nil || alive {
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

// lookAgain is for the moments in which a process has ended and its proof of life stands, because a
// child that it was just making has not reached exec.
func (d *Domain) lookAgain(ctx context.Context, after time.Duration) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-d.relink:
	case <-t.C:
	}
}

// nextLiving returns the seat of the next participant after us that lives.
//
// Invariant (docs/memory.md, "Notice"): every living participant is watched by the one before it in
// the table. The dead between two of them have no watcher, so who finds them reaps them.
func (d *Domain) nextLiving() (int, bool) {
	dead := false
	for i := 1; i < maxParticipants; i++ {
		s := (d.seat + i) % maxParticipants
		if d.parts[s].state.Load().is(participantFree) {
			continue
		}
		if alive, err := d.store.alive(s); err != nil || alive {
			if dead {
				d.reapSoon()
			}
			return s, true
		}
		dead = true
	}
	if dead {
		d.reapSoon()
	}
	return 0, false
}

// announce has every other participant look again whom to watch.
func (d *Domain) announce() {
	d.hdr.members.Add(1)
	d.wakeAll()
}

// news is what a process has already answered to.
type news struct{ members, pressure uint64 }

// hear looks why the doorbell may have rung, besides the wait queues.
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
