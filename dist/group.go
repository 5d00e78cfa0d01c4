package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
)

// A Group is a number of processes, or goroutines, that compute together. It travels to other
// processes, and each joins it as one rank. The death of a process that has the Group breaks it.
// The calls of one Group happen one after another, in the order in which they were made. Send and
// Recv do not wait for calls of all ranks. A process that is several ranks has a Group for each.
// The zero Group is closed.
type Group struct {
	*member      // nil in the zero Group
	seated  bool // its calls have their place in the line: see Async
}

// A member is what a process has of a group.
type member struct {
	barrier *ipc.Barrier
	life    *ipc.Barrier // at which nobody meets: by watching it a rank learns which others are gone
	// of each its process, negative once it has left; behind them, to how many turns each has come,
	// or letDown; then how many have left
	ranks   *ipc.Array[int64]
	memory  *ipc.Memory // see stage
	posts   posts
	seat    atomic.Int64 // 1 + rank, 0 before Join
	size    int
	outside error  // why this process cannot make calls, if it is no member
	far     *far   // in place of what stands above; nil for ranks that share memory
	library *Group // of Init, which is closed with this one; nil if there is none

	line line
	box  box

	mu        sync.Mutex // for what follows
	place     place
	stage     stage
	turns     int64
	monitored int // monitored barriers
	call      call
}

// maxSize is how many ranks a group has at most: as many as a domain has processes.
const maxSize = 256

// NewGroup makes a group of size ranks, 1 to 256. The caller closes it. The error is ErrSize, or
// wraps shm.ErrNoSpace.
func NewGroup(size int) (_ *Group, err error) {
	if size < 1 || size > maxSize {
		return nil, fmt.Errorf("%w: %d: want 1 to %d", ErrSize, size, maxSize)
	}
	g := &Group{member: new(member)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("new group: %w", err), g.Close())
		}
	}()
	if g.barrier, err = ipc.NewBarrier(size); err != nil {
		return nil, err
	}
	if g.life, err = ipc.NewBarrier(size + 1); err != nil {
		return nil, err
	}
	if g.ranks, err = ipc.NewArray[int64](2*size + 1); err != nil {
		return nil, err
	}
	if g.memory, err = ipc.NewMemory("", stageBytes(size)); err != nil {
		return nil, err
	}
	if err = g.posts.make(size); err != nil {
		return nil, err
	}
	if err = g.setUp(size); err != nil {
		return nil, err
	}
	return g, nil
}

func (m *member) setUp(size int) (err error) {
	m.size = size
	m.box.open(size)
	m.stage, err = newStage(m.memory, size)
	return err
}

// Join makes this process rank, from 0 to Size()-1. It does not wait for the other ranks; the first
// call does. The error is ErrRank if rank is out of range, or if a process has joined as this rank
// before, even one that is gone.
func (g *Group) Join(rank int) error {
	if g.member == nil {
		return ErrClosed
	}
	if g.outside != nil {
		return fmt.Errorf("join as rank %d: %w", rank, g.outside)
	}
	if g.far != nil {
		return fmt.Errorf("join as rank %d after %d: %w", rank, g.Rank(), ErrRank)
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

// Rank returns the rank that this Group joined as. It is -1 before Join, and in a Group of NewGroup
// of which this process is not a member.
func (g *Group) Rank() int {
	if g.member == nil {
		return -1
	}
	return int(g.seat.Load()) - 1
}

// Size returns how many ranks there are: the world size.
func (g *Group) Size() int {
	if g.member == nil {
		return 0
	}
	return g.size
}

// Close leaves the group. Calls of other ranks that need this rank fail with ErrLeft. Messages that
// this rank has sent can still be received. Close is idempotent. If a Group is dropped without
// Close, the garbage collector frees its memory, but the other ranks do not learn that the rank has
// left while its process lives.
func (g *Group) Close() error {
	if g.member == nil || g.outside != nil {
		return nil
	}
	if g.far != nil {
		return g.closeFar()
	}
	g.leave()
	err := errors.Join(g.shut(), g.box.close())
	g.mu.Lock()
	defer g.mu.Unlock()
	err = errors.Join(err, g.stage.close())
	if g.ranks != nil {
		err = errors.Join(err, g.ranks.Close())
	}
	if g.memory != nil {
		err = errors.Join(err, g.memory.Close())
	}
	if g.library != nil {
		err = errors.Join(err, g.library.Close())
	}
	return err
}

// leave says that this rank takes part no more.
func (m *member) leave() {
	rank := int(m.seat.Load()) - 1
	if rank < 0 {
		return
	}
	left, _ := m.ranks.CompareAndSwap(rank, int64(os.Getpid()), -int64(os.Getpid()))
	if left {
		m.ranks.Add(2*m.size, 1)
	}
	m.abort()
}

// abort ends the calls of all ranks, and has those who wait for letters look whether they wait for
// anything.
func (m *member) abort() {
	if m.far != nil {
		g := &Group{member: m}
		g.breakFar(context.Canceled, g.Rank())
		return
	}
	m.barrier.Abort()
	m.life.Abort()
}

// shut closes what calls wait at, which wakes them.
func (m *member) shut() (err error) {
	for _, b := range []*ipc.Barrier{m.barrier, m.life} {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	return errors.Join(err, m.posts.close())
}

// groupTags are those of [barrier, life, ranks, memory, parcel of the inboxes].
var groupTags = &wire.Tags{Type: "Group", Fields: []int{5}}

func init() { wire.Custom((*Group).marshal, (*Group).unmarshal) }

// marshal lets a Group be part of a value that is sent. Its receiver has one that is not joined
// yet.
func (g *Group) marshal(e *wire.Encoder) error {
	if g.member == nil {
		return fmt.Errorf("send group: %w", ErrClosed)
	}
	if g.outside != nil {
		return fmt.Errorf("send group: %w", g.outside)
	}
	if g.far != nil {
		return fmt.Errorf("send group: %w: its ranks are processes of several machines, and each calls Init", ipc.ErrShared)
	}
	e.Tag(groupTags, 0)
	return errors.Join(wire.Encode(e, *g.barrier), wire.Encode(e, *g.life), wire.Encode(e, *g.ranks),
		wire.Encode(e, *g.memory), g.posts.marshal(e))
}

// decodeInto returns a function that decodes a value into *v.
func decodeInto[T any](v *T) func(*wire.Decoder) error {
	return func(d *wire.Decoder) (err error) {
		*v, err = wire.Decode[T](d)
		return err
	}
}

// unmarshal reads what marshal wrote. The error wraps wire.ErrFormat if the parts are
// of different groups.
func (g *Group) unmarshal(d *wire.Decoder) error {
	if err := d.OnlyTag(groupTags); err != nil {
		return err
	}
	m := &member{barrier: new(ipc.Barrier), life: new(ipc.Barrier), ranks: new(ipc.Array[int64]),
		memory: new(ipc.Memory)}
	for _, decode := range []func(*wire.Decoder) error{decodeInto(m.barrier), decodeInto(m.life),
		decodeInto(m.ranks), decodeInto(m.memory)} {
		if err := decode(d); err != nil {
			return err
		}
	}
	if err := m.posts.parcel.unmarshal(d); err != nil {
		return err
	}
	size := m.barrier.Parties()
	if size > maxSize || m.life.Parties() != size+1 || m.ranks.Len() != 2*size+1 ||
		m.memory.Size() != stageBytes(size) {
		return fmt.Errorf("read a group of %d ranks in %d bytes: %w", size, m.memory.Size(), wire.ErrFormat)
	}
	if err := m.setUp(size); err != nil {
		return err
	}
	g.member = m
	d.OnDone(wire.WatcherFunc(func(kept bool) {
		if kept {
			m.posts.dropped = runtime.AddCleanup(m, func(p parcel) { p.release() }, m.posts.parcel)
		} else {
			m.stage.close()
		}
	}))
	d.OnEnd(wire.WatcherFunc(func(bool) { (&Group{member: m}).Close() }))
	return nil
}
