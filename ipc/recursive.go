package ipc

import (
	"context"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An Owner holds a RecursiveMutex: a call and the functions that it calls, to which it passes the
// Owner on, since a goroutine has no name. Owners stay in their process.
type Owner struct{ id uint64 }

// NewOwner returns an Owner that differs from every other. The zero Owner locks nothing.
func NewOwner() Owner { return Owner{rand.Uint64() | 1} }

// A RecursiveMutex is a Mutex that its Owner may lock again, with an Unlock for each Lock: Python's
// RLock. The zero RecursiveMutex is closed.
type RecursiveMutex struct{ cell }

const recursiveName = "RecursiveMutex"

// NewRecursiveMutex makes a RecursiveMutex that is free. The caller closes it.
func NewRecursiveMutex() (*RecursiveMutex, error) {
	o, err := newObject(recursiveName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	return &RecursiveMutex{cell{o}}, nil
}

// Lock waits for the lock and takes it for owner, at once if owner has it. The errors are those of
// Mutex.Lock, and ErrNotOwner for the zero Owner.
func (m *RecursiveMutex) Lock(ctx context.Context, owner Owner) error {
	return m.obj.lock(ctx, owner.check(func() error { return m.shm().Lock(ctx, owner.id) }))
}

// TryLock takes the lock as Lock does, or returns ErrLocked at once.
func (m *RecursiveMutex) TryLock(owner Owner) error {
	return m.obj.lock(context.Background(), owner.check(func() error { return m.shm().TryLock(owner.id) }))
}

func (o Owner) check(f func() error) func() error {
	if o.id == 0 {
		return func() error { return ErrNotOwner }
	}
	return f
}

// Unlock undoes one Lock. The error is ErrNotOwner if the lock is not owner's.
func (m *RecursiveMutex) Unlock(owner Owner) error {
	return m.obj.unlock(func() error { return m.shm().Unlock(owner.id) })
}

// MarkConsistent says that the data that the lock guards is repaired after its holder died. The
// error is ErrNotOwner if owner does not hold the lock of a dead one.
func (m *RecursiveMutex) MarkConsistent(owner Owner) error {
	return m.obj.during("mark consistent", func() error { return m.shm().MarkConsistent(owner.id) })
}

func (m *RecursiveMutex) shm() arena.RecursiveMutex { return arena.RecursiveMutex{Sync: m.obj.sync} }

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (m *RecursiveMutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, recursiveName, arena.FormMutex)
	return err
}
