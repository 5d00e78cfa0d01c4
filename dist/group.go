package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// A Group is a set of processes or goroutines, called ranks, that make collective calls. It can be
// sent to other processes, and each must [Group.Join] it as one rank before its first call. A
// process that acts as several ranks must have a Group for each. The death of any process that has
// the Group breaks it. The collective calls of one Group run one after another, in the order of the
// calls; [Group.Send] and [Group.Recv] do not wait for them. The zero Group is
// closed.
type Group struct {
	*member      // nil in the zero Group
	seated  bool // its calls already hold their ticket: see Async
}

// A member is the state of a group in one process.
type member struct {
	barrier *ipc.Barrier
	life    *ipc.Barrier // never completes; ranks watch it to learn of departures and deaths
	// [0, size) is the PID of each rank, negative once it has left; [size, 2·size) is the number of
	// turns that each rank has entered, or letDown; the last element is the number of ranks that
	// left
	ranks   *ipc.Array[int64]
	memory  *ipc.Memory // backs stage
	posts   posts
	seat    atomic.Int64 // 1 + rank; 0 before Join
	size    int
	outside error  // error of all calls in a process outside a subgroup; nil otherwise
	far     *far   // replaces the fields above in a group over a library; nil for shared memory
	library *Group // the library's group that Init created, closed with this one; may be nil

	line ticketLock
	box  box

	mu        sync.Mutex // protects the fields below
	place     ticket
	stage     stage
	turns     int64
	monitored int // number of monitored barriers so far
	call      call
}

// maxSize is the largest number of ranks of a group: the number of processes of a shm domain.
const maxSize = 256

// NewGroup creates a group of size ranks, 1 to 256. The caller must close it. It returns [ErrSize]
// if size is out of range, and an error that wraps shm.ErrNoSpace if shared memory is exhausted.
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
	if err = g.posts.createInboxes(size); err != nil {
		return nil, err
	}
	if err = g.setUp(size); err != nil {
		return nil, err
	}
	return g, nil
}

func (m *member) setUp(size int) (err error) {
	m.size = size
	m.box.openRanks(size)
	m.stage, err = newStage(m.memory, size)
	return err
}

// Join makes this process the given rank, from 0 to Size()-1. It must be called once, before the
// first call. It does not wait for the other ranks; the first collective call does. It returns
// [ErrRank] if rank is out of range, if this Group has joined already, or if a process has joined
// as this rank before, even if that process has ended.
func (g *Group) Join(rank int) error {
	if g.member == nil {
		return ErrClosed
	}
	if g.outside != nil {
		return fmt.Errorf("join as rank %d: %w", rank, g.outside)
	}
	if g.far != nil {
		return fmt.Errorf("join as rank %d: this process is already rank %d: %w", rank, g.Rank(), ErrRank)
	}
	if rank < 0 || rank >= g.Size() {
		return fmt.Errorf("join as rank %d: rank out of range, group size is %d: %w", rank, g.Size(), ErrRank)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Rank() >= 0 {
		return fmt.Errorf("join as rank %d: this process is already rank %d: %w", rank, g.Rank(), ErrRank)
	}
	free, err := g.ranks.CompareAndSwap(rank, 0, int64(os.Getpid()))
	if err != nil {
		return err
	}
	if !free {
		pid, _ := g.ranks.At(rank)
		return fmt.Errorf("join as rank %d: rank already used by process %d: %w", rank, max(pid, -pid), ErrRank)
	}
	g.seat.Store(int64(rank) + 1)
	return nil
}

// Rank returns the rank of this process. It is -1 before [Group.Join], and in a Group returned by
// [Group.NewGroup] if this process is not a member.
func (g *Group) Rank() int {
	if g.member == nil {
		return -1
	}
	return int(g.seat.Load()) - 1
}

// Size returns the number of ranks, called the world size in torch. It is 0 in the zero Group.
func (g *Group) Size() int {
	if g.member == nil {
		return 0
	}
	return g.size
}

// Close leaves the group and releases its memory. Calls of other ranks that need this rank fail
// with [ErrLeft]. Messages that this rank has sent can still be received. Close is idempotent. If a
// Group becomes unreachable without Close, the garbage collector frees its memory, but other ranks
// learn that the rank has left only when its process ends.
func (g *Group) Close() error {
	if g.member == nil || g.outside != nil {
		return nil
	}
	if g.far != nil {
		return g.closeFar()
	}
	g.markGone()
	err := errors.Join(g.closeBarriers(), g.box.close())
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

// markGone marks this rank as gone and wakes the other ranks.
func (m *member) markGone() {
	rank := int(m.seat.Load()) - 1
	if rank < 0 {
		return
	}
	left, _ := m.ranks.CompareAndSwap(rank, int64(os.Getpid()), -int64(os.Getpid()))
	if left {
		m.ranks.Add(2*m.size, 1)
	}
	m.abortCalls()
}

// abortCalls fails the collective calls of all ranks. It also wakes pending receives, so that they
// check whether their senders still exist.
func (m *member) abortCalls() {
	if m.far != nil {
		g := &Group{member: m}
		g.breakFar(context.Canceled, g.Rank())
		return
	}
	m.barrier.Abort()
	m.life.Abort()
}

// closeBarriers closes the barriers and the inboxes, which wakes the blocked calls of this
// process.
func (m *member) closeBarriers() (err error) {
	for _, b := range []*ipc.Barrier{m.barrier, m.life} {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	return errors.Join(err, m.posts.close())
}

// groupTags describes the encoding: [barrier, life, ranks, memory, inboxes as a payload].
var groupTags = &codec.Tags{Type: "Group", Fields: []int{5}}

func init() { codec.Custom((*Group).marshal, (*Group).unmarshal) }

// marshal encodes a Group that is part of a sent value. The decoded Group has not joined. It
// returns an error that wraps ipc.ErrShared for a group over a library, because such a group has no
// shared state.
func (g *Group) marshal(e *codec.Encoder) error {
	if g.member == nil {
		return fmt.Errorf("send group: %w", ErrClosed)
	}
	if g.outside != nil {
		return fmt.Errorf("send group: %w", g.outside)
	}
	if g.far != nil {
		return fmt.Errorf("send group: %w: its ranks span several machines: call Init in each process instead",
			ipc.ErrShared)
	}
	e.Tag(groupTags, 0)
	return errors.Join(codec.Encode(e, *g.barrier), codec.Encode(e, *g.life), codec.Encode(e, *g.ranks),
		codec.Encode(e, *g.memory), g.posts.marshal(e))
}

// decodeInto returns a function that decodes a value into *v.
func decodeInto[T any](v *T) func(*codec.Decoder) error {
	return func(d *codec.Decoder) (err error) {
		*v, err = codec.Decode[T](d)
		return err
	}
}

// unmarshal decodes the encoding of marshal. It returns an error that wraps wire.ErrFormat if the
// parts do not belong to one group.
func (g *Group) unmarshal(d *codec.Decoder) error {
	if err := d.OnlyTag(groupTags); err != nil {
		return err
	}
	m := &member{barrier: new(ipc.Barrier), life: new(ipc.Barrier), ranks: new(ipc.Array[int64]),
		memory: new(ipc.Memory)}
	for _, decode := range []func(*codec.Decoder) error{decodeInto(m.barrier), decodeInto(m.life),
		decodeInto(m.ranks), decodeInto(m.memory)} {
		if err := decode(d); err != nil {
			return err
		}
	}
	if err := m.posts.payload.unmarshal(d); err != nil {
		return err
	}
	size := m.barrier.Parties()
	if size > maxSize || m.life.Parties() != size+1 || m.ranks.Len() != 2*size+1 ||
		m.memory.Size() != stageBytes(size) {
		return fmt.Errorf("read group: %d ranks do not fit in %d bytes: %w", size, m.memory.Size(), codec.ErrFormat)
	}
	if err := m.setUp(size); err != nil {
		return err
	}
	g.member = m
	d.OnDone(codec.WatcherFunc(func(kept bool) {
		if kept {
			m.posts.dropped = runtime.AddCleanup(m, func(p payload) { p.releaseBlocks() }, m.posts.payload)
		} else {
			m.stage.close()
		}
	}))
	d.OnEnd(codec.WatcherFunc(func(bool) { (&Group{member: m}).Close() }))
	return nil
}
