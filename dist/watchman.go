package dist

import (
	"context"
	"errors"
	"slices"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// A census is what the watchman looks at to find out whether anything has changed: quick to take, and different after every death,
// leaving and failure.
type census struct {
	lost   int
	left   int64
	broken bool
}

func (m *member) census() census {
	left, _ := m.ranks.At(2 * m.size)
	return census{m.life.Lost(), left, m.barrier.Broken()}
}

// watch has the box know who is gone, from now on until Close.
func (m *member) watch() {
	b := &m.box
	b.mu.Lock()
	first := !b.watching && !b.closed
	b.watching = true
	if first {
		b.servants.Add(1)
	}
	b.mu.Unlock()
	if first {
		seen := m.look()
		go func() {
			defer b.servants.Done()
			m.watchman(seen)
		}()
	}
}

func (m *member) watchman(seen census) {
	for m.life.Watch(context.Background(), m.differs(seen)) == nil {
		seen = m.look()
	}
}

// differs returns what reports whether anything has changed since. It may still be asked when the watchman has gone on.
func (m *member) differs(seen census) func() bool {
	return func() bool { return m.census() != seen }
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

// absent returns which other ranks have left or died. If a process died that was no rank, it is as if all ranks had died as
// which nobody has joined: it may have been to be any of them.
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
		dead[p.PID] = &shm.PeerError{PID: p.PID, Slot: p.Slot, Cause: errDied}
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
