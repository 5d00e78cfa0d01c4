package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Barrier blocks a fixed number of goroutines, in any processes of the domain, until all of them
// have arrived.
//
// Every process that holds a reference to the barrier is a member. A worker that receives the
// barrier in the argument of its function is a member from its start. The death of a member breaks
// the barrier, whether or not that member was waiting, and wakes the waiting members at once.
// [Barrier.Close] and the return of a worker's function do not count as a death. The zero Barrier
// is closed.
type Barrier struct {
	cell

	// Action, if not nil, is called once per round by the last goroutine to arrive, before any of
	// them is released. The barrier breaks if Action returns an error or panics. Action is not sent
	// with the barrier, so every process that may arrive last must set it.
	Action func() error `wire:"-"`
}

const barrierName = "Barrier"

// NewBarrier returns a barrier for the given number of parties. The caller must close it. It
// returns [ErrSize] unless parties is between 1 and 1,048,575.
func NewBarrier(parties int) (*Barrier, error) {
	if err := checkSize(barrierName, parties, 1, maxCount); err != nil {
		return nil, err
	}
	o, err := newObject(barrierName, arena.SyncOptions{Form: arena.FormBarrier, Limit: parties})
	if err != nil {
		return nil, err
	}
	return &Barrier{cell: cell{o}}, nil
}

// Wait blocks until all parties have arrived. It returns the number of parties that arrived
// earlier, from 0 to Parties()-1, so that exactly one caller gets 0 and can act as the leader.
//
// If ctx is done first, Wait breaks the barrier: all parties get [ErrBroken] until
// [Barrier.Reset], and the error of this call also wraps the error of ctx. [Barrier.Abort], a
// failing Action and the death of a member break it as well. After a death the error wraps a
// *shm.PeerError that identifies the dead member.
func (b *Barrier) Wait(ctx context.Context) (before int, err error) {
	if err := b.obj.beginOp(); err != nil {
		return 0, err
	}
	defer b.obj.endOp()
	before, err = b.shm().Wait(ctx, b.Action)
	if err = shmError(ctx, "wait", err, nil); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return before, err
}

// Abort breaks the barrier: every Wait returns [ErrBroken] until [Barrier.Reset].
func (b *Barrier) Abort() error {
	return b.obj.runOp(context.Background(), "abort", nil, func() error { b.shm().Abort(); return nil })
}

// Watch blocks until ready returns true, and then returns nil, or until ctx is done, and then
// returns an error that wraps the error of ctx. The watcher is not a party: it neither completes
// a round nor breaks the barrier. Watch calls ready immediately, at the end of each round, after
// each Abort, and when a process of the domain was found dead. ready must return quickly and
// must not block.
func (b *Barrier) Watch(ctx context.Context, ready func() bool) error {
	return b.obj.runOp(ctx, "watch", nil, func() error { return b.shm().Watch(ctx, ready) })
}

// Lost returns the number of members known to be dead, or 0 if the barrier is closed. The ready
// function of [Barrier.Watch] may call it. [Barrier.Dead] identifies the members.
func (b *Barrier) Lost() int { return b.readCount(arena.Barrier.Lost) }

// Reset restores the barrier to its initial state. Waiting parties get [ErrBroken], and dead
// processes are removed from the members.
func (b *Barrier) Reset() error {
	return b.obj.runOp(context.Background(), "reset", nil, func() error { b.shm().Reset(); return nil })
}

// Broken reports whether the barrier is broken or closed.
func (b *Barrier) Broken() bool {
	if b.obj.beginOp() != nil {
		return true
	}
	defer b.obj.endOp()
	return b.shm().Broken()
}

// Dead returns one error per member that has died since the last [Barrier.Reset]. Each wraps
// [ErrBroken]. Dead probes every member, so it detects a death that was not noticed before. It
// returns nil if no member died or if the barrier is closed.
func (b *Barrier) Dead() []*arena.PeerError {
	if b.obj.beginOp() != nil {
		return nil
	}
	defer b.obj.endOp()
	return b.shm().Dead()
}

// Parties returns the number of parties for which the barrier waits, or 0 if the barrier is closed.
func (b *Barrier) Parties() int { return b.readCount(arena.Barrier.Parties) }

// Waiting returns the number of waiting parties, or 0 if the barrier is broken or closed.
func (b *Barrier) Waiting() int { return b.readCount(arena.Barrier.Waiting) }

func (b *Barrier) readCount(f func(arena.Barrier) int) int {
	if b.obj.beginOp() != nil {
		return 0
	}
	defer b.obj.endOp()
	return f(b.shm())
}

func (b *Barrier) shm() arena.Barrier { return arena.Barrier{Sync: b.obj.sync} }

// unmarshalWire decodes a Barrier. It returns [ErrType] if the value is of another type.
func (b *Barrier) unmarshalWire(d *codec.Decoder) (err error) {
	b.obj, err = readObject(d, barrierName, arena.FormBarrier)
	return err
}
