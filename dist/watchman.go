package dist

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"weak"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/ipc"
)

// A census is what the watchman looks at to find out whether anything has changed: quick to take,
// and different after every death, leaving and failure.
type census struct {
	lost   int
	left   int64
	broken bool
}

func (m *member) census() census { return m.roll().census() }

// roll is what a census is taken of.
func (m *member) roll() roll { return roll{m.barrier, m.life, m.ranks, m.size} }

type roll struct {
	barrier, life *ipc.Barrier
	ranks         *ipc.Array[int64]
	size          int
}

func (r roll) census() census {
	left, _ := r.ranks.At(2 * r.size)
	return census{r.life.Lost(), left, r.barrier.Broken()}
}

// differs reports whether anything has changed since. It may still be asked when the watchman has
// gone on.
func (r roll) differs(seen census) func() bool { return func() bool { return r.census() != seen } }

// watch has the box know who is gone, from now on until Close, or until nobody has the group any
// more who could close it.
func (m *member) watch() {
	if m.far != nil {
		return // the pump takes notices
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
	go watchman(ctx, m.look(), m.roll(), weak.Make(m), b.watched)
}

// watchman has no hold of the group while nothing happens.
func watchman(ctx context.Context, seen census, r roll, of weak.Pointer[member], ended chan<- struct{}) {
	defer close(ended)
	for r.life.Watch(ctx, r.differs(seen)) == nil {
		m := of.Value()
		if m == nil {
			return
		}
		seen = m.look()
	}
}

// look tells the box who is gone. What changes meanwhile is not in the census that it returns.
func (m *member) look() census {
	seen := m.census()
	var broken error
	if seen.broken {
		broken = ErrBroken
	}
	m.box.note(m.absent(), broken)
	return seen
}

// absent returns which other ranks have left or died. If a process died that was no rank, it is as
// if all ranks had died as which nobody has joined: it may have been to be any of them.
func (m *member) absent() map[int]error {
	pids := make([]int64, m.size)
	if m.ranks.Read(0, pids) != nil {
		return nil // closed
	}
	dead := m.deaths()
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

// deaths returns the processes of the group that have died, each with an error that says so.
func (m *member) deaths() map[int]error {
	dead := map[int]error{}
	add := func(p *shm.PeerError) {
		dead[p.PID] = &shm.PeerError{PID: p.PID, Seat: p.Seat, Cause: errDied}
	}
	for _, b := range []*ipc.Barrier{m.life, m.barrier} {
		for _, d := range b.Dead() {
			add(d)
		}
		if b.Broken() {
			_, err := b.Wait(context.Background()) // does not wait
			if p := peerOf(err); p != nil {
				add(p)
			}
		}
	}
	return dead
}

var errDied = errors.New("it sends and receives no more")
