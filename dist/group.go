package dist

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/wire"
)

// A Group is some processes, or goroutines, that compute together. It travels to other processes; each joins it as one of
// its ranks. The death of any process that has it breaks it. The calls of one Group happen one after another; a process that is several ranks has a Group for each.
// The zero Group is closed.
type Group struct {
	barrier *ipc.Barrier
	ranks   *ipc.Array[int64] // of each its process, negative once it has left; behind them, to how many turns each has come, or letDown
	memory  *ipc.Memory       // see stage
	seat    atomic.Int64      // 1 + rank, 0 before Join

	mu    sync.Mutex // for what follows
	stage stage
	turns int64
	call  call
}

// maxSize is how many ranks a group has at most: as many as a domain has processes.
const maxSize = 256

// NewGroup makes a group of so many ranks, 1 to 256. The caller closes it.
func NewGroup(size int) (_ *Group, err error) {
	if size < 1 || size > maxSize {
		return nil, fmt.Errorf("%w: %d: want 1 to %d", ErrSize, size, maxSize)
	}
	g := new(Group)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("new group: %w", err), g.Close())
		}
	}()
	if g.barrier, err = ipc.NewBarrier(size); err != nil {
		return nil, err
	}
	if g.ranks, err = ipc.NewArray[int64](2 * size); err != nil {
		return nil, err
	}
	if g.memory, err = ipc.NewMemory(stageBytes(size)); err != nil {
		return nil, err
	}
	if err = g.setUp(size); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Group) setUp(size int) (err error) {
	g.stage, err = newStage(g.memory, size)
	return err
}

// Join makes this process a rank, from 0 to Size()-1. It does not wait for the others; their first call does. The error is
// ErrRank if there is no such rank, or somebody is it or was: a group does not take the place of a rank that is gone.
func (g *Group) Join(rank int) error {
	if g.barrier == nil {
		return ErrClosed
	}
	if rank < 0 || rank >= g.Size() {
		return fmt.Errorf("join as rank %d of %d: %w", rank, g.Size(), ErrRank)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Rank() >= 0 {
		return fmt.Errorf("join as rank %d after %d: %w", rank, g.Rank(), ErrRank)
	}
	free, err := g.ranks.CompareAndSwap(rank, 0, int64(os.Getpid()))
	if err != nil {
		return err
	}
	if !free {
		pid, _ := g.ranks.At(rank)
		return fmt.Errorf("join as rank %d, which process %d is or was: %w", rank, max(pid, -pid), ErrRank)
	}
	g.seat.Store(int64(rank) + 1)
	return nil
}

// Rank returns the rank as which this Group was joined, -1 before.
func (g *Group) Rank() int { return int(g.seat.Load()) - 1 }

// Size returns how many ranks there are: the world size.
func (g *Group) Size() int { return g.stage.size }

// Close leaves the group: calls of other ranks that this one has not taken part in fail with ErrLeft, now and later. It is idempotent.
func (g *Group) Close() error {
	if g.barrier == nil {
		return nil
	}
	if rank := g.Rank(); rank >= 0 {
		g.ranks.CompareAndSwap(rank, int64(os.Getpid()), -int64(os.Getpid()))
		g.barrier.Abort()
	}
	err := g.barrier.Close() // wakes the call that is going on
	g.mu.Lock()
	defer g.mu.Unlock()
	err = errors.Join(err, g.stage.close())
	if g.ranks != nil {
		err = errors.Join(err, g.ranks.Close())
	}
	if g.memory != nil {
		err = errors.Join(err, g.memory.Close())
	}
	return err
}

// MarshalWire lets a Group be part of a value that is sent. Whoever receives it has one that is not joined yet.
func (g *Group) MarshalWire(e *wire.Encoder) error {
	if g.barrier == nil {
		return fmt.Errorf("send group: %w", ErrClosed)
	}
	e.ArrayLen(3)
	return errors.Join(g.barrier.MarshalWire(e), g.ranks.MarshalWire(e), g.memory.MarshalWire(e))
}

// UnmarshalWire is the counterpart of MarshalWire. The error wraps wire.ErrFormat if the parts are of different groups.
func (g *Group) UnmarshalWire(d *wire.Decoder) error {
	if err := d.ArrayOf(3); err != nil {
		return err
	}
	g.barrier, g.ranks, g.memory = new(ipc.Barrier), new(ipc.Array[int64]), new(ipc.Memory)
	for _, part := range []wire.Unmarshaler{g.barrier, g.ranks, g.memory} {
		if err := part.UnmarshalWire(d); err != nil {
			return err
		}
	}
	size := g.barrier.Parties()
	if size > maxSize || g.ranks.Len() != 2*size || g.memory.Size() != stageBytes(size) {
		return fmt.Errorf("read a group of %d ranks in %d bytes: %w", size, g.memory.Size(), wire.ErrFormat)
	}
	if err := g.setUp(size); err != nil {
		return err
	}
	d.OnDone(func(kept bool) {
		if !kept {
			g.stage.close()
		}
	})
	return nil
}
