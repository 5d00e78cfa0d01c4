package dist

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"weak"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
)

// A census is a snapshot that differs after every death, departure and failure. It is cheap, so the
// watchman compares it at every wakeup.
type census struct {
	lost   int
	left   int64
	broken bool
}

func (m *member) takeCensus() census { return m.sharedState().takeCensus() }

// sharedState returns the shared state that a census reads.
func (m *member) sharedState() roll { return roll{m.barrier, m.life, m.ranks, m.size} }

type roll struct {
	barrier, life *ipc.Barrier
	ranks         *ipc.Array[int64]
	size          int
}

func (r roll) takeCensus() census {
	left, _ := r.ranks.At(2 * r.size)
	return census{r.life.Lost(), left, r.barrier.Broken()}
}

// changedSince returns a function that reports whether a census taken now differs from seen. The
// function may still be called after the watchman has moved on.
func (r roll) changedSince(seen census) func() bool {
	return func() bool { return r.takeCensus() != seen }
}

// startWatchman starts the watchman unless it is running. It updates the box until Close, or until
// the group becomes unreachable in this process.
func (m *member) startWatchman() {
	if m.far != nil {
		return // the pump handles notices instead
	}
	b := &m.box
	b.mu.Lock()
	first := b.watched == nil && !b.closed
	if first {
		b.watched = make(chan struct{})
	}
	b.mu.Unlock()
	if !first {
		return
	}
	ctx, forgotten := context.WithCancel(context.Background())
	runtime.AddCleanup(m, func(cancel context.CancelFunc) { cancel() }, forgotten)
	go runWatchman(ctx, m.updateBox(), m.sharedState(), weak.Make(m), b.watched)
}

// runWatchman waits for changes and updates the box until ctx ends, or the group is closed or
// unreachable. Then it closes ended. It holds only a weak reference to the member, so that an
// abandoned group can be collected.
func runWatchman(ctx context.Context, seen census, r roll, of weak.Pointer[member], ended chan<- struct{}) {
	defer close(ended)
	for r.life.Watch(ctx, r.changedSince(seen)) == nil {
		m := of.Value()
		if m == nil {
			return
		}
		seen = m.updateBox()
	}
}

// updateBox records in the box the ranks that are gone and whether the group is broken. It
// returns the census, which it takes first, so that later changes make the next census differ.
func (m *member) updateBox() census {
	seen := m.takeCensus()
	var broken error
	if seen.broken {
		broken = ErrBroken
	}
	m.box.recordGone(m.absentRanks(), broken)
	return seen
}

// absentRanks returns, by rank, the reason for each other rank that is gone: [ErrLeft] or a
// *shm.PeerError. It returns nil after Close. If a process died before it joined, all unjoined
// ranks count as dead, because it may have been meant for any of them.
func (m *member) absentRanks() map[int]error {
	pids := make([]int64, m.size)
	if m.ranks.Read(0, pids) != nil {
		return nil // closed
	}
	dead := m.deadProcesses()
	var stray error
	for pid, err := range dead {
		if !slices.Contains(pids, int64(pid)) && !slices.Contains(pids, -int64(pid)) {
			stray = err
		}
	}
	gone := map[int]error{}
	for r, pid := range pids {
		switch err := dead[int(pid)]; {
		case r == int(m.seat.Load())-1:
		case pid < 0:
			gone[r] = ErrLeft
		case err != nil:
			gone[r] = err
		case pid == 0 && stray != nil:
			gone[r] = stray
		}
	}
	return gone
}

// deadProcesses returns a [*arena.PeerError] for each process of the group that has died, by
// PID.
func (m *member) deadProcesses() map[int]error {
	dead := map[int]error{}
	add := func(p *arena.PeerError) {
		dead[p.PID] = &arena.PeerError{PID: p.PID, Seat: p.Seat, Cause: errDied}
	}
	for _, b := range []*ipc.Barrier{m.life, m.barrier} {
		for _, d := range b.Dead() {
			add(d)
		}
		if b.Broken() {
			_, err := b.Wait(context.Background()) // returns at once
			if p := peerOf(err); p != nil {
				add(p)
			}
		}
	}
	return dead
}

var errDied = errors.New("process stopped sending and receiving")
