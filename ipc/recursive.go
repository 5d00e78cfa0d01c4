package ipc

import (
	"context"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/shm"
)

// An Owner is who locks a RecursiveMutex: a call and what it calls. In Go it has to be passed on,
// since a goroutine has no name. Owners stay in their process.
type Owner struct{ id uint64 }

// NewOwner returns an Owner that is no other's. The zero Owner owns nothing.
func NewOwner() Owner { return Owner{rand.Uint64() | 1} }

// A RecursiveMutex is a Mutex that its Owner may lock again, with an Unlock for each Lock: Python's
// RLock. The zero RecursiveMutex is closed.
type RecursiveMutex struct{ cell[recursiveCell] }

const recursiveName = "RecursiveMutex"

// NewRecursiveMutex makes a RecursiveMutex that is free. The caller closes it.
func NewRecursiveMutex() (*RecursiveMutex, error) {
	o, err := newObject(recursiveName, shm.SyncOptions{Form: shm.FormMutex})
	if err != nil {
		return nil, err
	}
	return &RecursiveMutex{cell[recursiveCell]{o}}, nil
}

// Lock waits for the lock and takes it for owner, at once if owner has it; see Mutex.Lock. The
// error is ErrNotOwner for the zero Owner.
func (m *RecursiveMutex) Lock(ctx context.Context, owner Owner) error {
	return m.obj.lock(ctx, owner.check(func() error { return m.shm().Lock(ctx, owner.id) }))
}

// TryLock is Lock that returns ErrLocked instead of waiting.
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

// MarkConsistent is that of a Mutex.
func (m *RecursiveMutex) MarkConsistent(owner Owner) error {
	return m.obj.during("mark consistent", func() error { return m.shm().MarkConsistent(owner.id) })
}

func (m *RecursiveMutex) shm() shm.RecursiveMutex { return shm.RecursiveMutex{Sync: m.obj.sync} }
