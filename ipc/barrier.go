package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Barrier lets a number of goroutines, of any processes, go on together.
//
// Every process that has the barrier is a member, from its start on if the barrier is in the
// argument of its function. The death of a member breaks the barrier, whether the member was
// waiting or still to come, and the members that wait are told at once. A Close is no death, and
// neither is the end of a worker's function. The zero Barrier is closed.
type Barrier struct {
	cell

	// Action is called once in each turn, by the last one to come and before anybody goes on. If it
	// returns an error or panics, the barrier is broken. It does not travel: a process that has
	// none calls none. Set it in every process that may be the last one.
	Action func() error `wire:"-"`
}

const barrierName = "Barrier"

// NewBarrier makes a barrier for so many parties, 1 to 1,048,575, or else ErrSize. The caller
// closes it.
func NewBarrier(parties int) (*Barrier, error) {
	if err := sized(barrierName, parties, 1, maxCount); err != nil {
		return nil, err
	}
	o, err := newObject(barrierName, arena.SyncOptions{Form: arena.FormBarrier, Limit: parties})
	if err != nil {
		return nil, err
	}
	return &Barrier{cell: cell{o}}, nil
}

// Wait waits until all parties have come, and returns how many had come before this one: 0 for one
// of them, so that one can be told apart.
//
// If ctx ends first, the barrier is broken until Reset: every Wait returns ErrBroken. An Abort, an
// Action that fails and the death of a member break it as well; after a death the error wraps a
// *shm.PeerError that names the member.
func (b *Barrier) Wait(ctx context.Context) (before int, err error) {
	if err := b.obj.enter(); err != nil {
		return 0, err
	}
	defer b.obj.leave()
	before, err = b.shm().Wait(ctx, b.Action)
	if err = shmError(ctx, "wait", err, nil); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return before, err
}

// Abort breaks the barrier: every Wait returns ErrBroken until Reset.
func (b *Barrier) Abort() error {
	return b.obj.do(context.Background(), "abort", nil, func() error { b.shm().Abort(); return nil })
}

// Watch waits until ready returns true or ctx ends. A watcher is no party: it neither completes a
// turn nor breaks the barrier. Watch calls ready at once, at the end of each turn, after each Abort
// and when a process of the domain was found dead. ready must be quick and call nothing that waits.
func (b *Barrier) Watch(ctx context.Context, ready func() bool) error {
	return b.obj.do(ctx, "watch", nil, func() error { return b.shm().Watch(ctx, ready) })
}

// Lost returns how many members are known to be gone, 0 if the barrier is closed. The ready
// function of a Watch may call it. Dead names the members.
func (b *Barrier) Lost() int { return b.count(arena.Barrier.Lost) }

// Reset makes the barrier as new: a Wait that is going on returns ErrBroken, and members that have
// died are members no more.
func (b *Barrier) Reset() error {
	return b.obj.do(context.Background(), "reset", nil, func() error { b.shm().Reset(); return nil })
}

// Broken reports whether the barrier is broken, or closed.
func (b *Barrier) Broken() bool {
	if b.obj.enter() != nil {
		return true
	}
	defer b.obj.leave()
	return b.shm().Broken()
}

// Dead returns the members that have died since the last Reset, as errors that wrap ErrBroken. Dead
// looks at every member itself, so a death that has just happened counts.
func (b *Barrier) Dead() []*arena.PeerError {
	if b.obj.enter() != nil {
		return nil
	}
	defer b.obj.leave()
	return b.shm().Dead()
}

// Parties returns how many parties the barrier waits for, 0 if it is closed.
func (b *Barrier) Parties() int { return b.count(arena.Barrier.Parties) }

// Waiting returns how many parties are waiting, 0 if the barrier is broken or closed.
func (b *Barrier) Waiting() int { return b.count(arena.Barrier.Waiting) }

func (b *Barrier) count(f func(arena.Barrier) int) int {
	if b.obj.enter() != nil {
		return 0
	}
	defer b.obj.leave()
	return f(b.shm())
}

func (b *Barrier) shm() arena.Barrier { return arena.Barrier{Sync: b.obj.sync} }

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (b *Barrier) unmarshalWire(d *codec.Decoder) (err error) {
	b.obj, err = readObject(d, barrierName, arena.FormBarrier)
	return err
}
