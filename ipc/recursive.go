package ipc

import (
	"context"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An Owner identifies the holder of a [RecursiveMutex]. Goroutines have no identity, so a function
// must pass its Owner to the functions that it calls. An Owner cannot be sent to another process.
type Owner struct{ id uint64 }

// NewOwner returns a new, unique Owner. The zero Owner cannot hold a lock.
func NewOwner() Owner { return Owner{rand.Uint64() | 1} }

// A RecursiveMutex is a Mutex that its [Owner] may lock repeatedly, with one Unlock per Lock,
// like Python's RLock. All methods may be called from several goroutines. The zero
// RecursiveMutex is closed.
type RecursiveMutex struct{ cell }

const recursiveName = "RecursiveMutex"

// NewRecursiveMutex returns an unlocked RecursiveMutex. The caller must close it.
func NewRecursiveMutex() (*RecursiveMutex, error) {
	o, err := newObject(recursiveName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	return &RecursiveMutex{cell{o}}, nil
}

// Lock acquires the lock for owner, and blocks until it is available. If owner already holds it,
// Lock returns immediately. The errors are the same as for [Mutex.Lock], and [ErrNotOwner] for the
// zero Owner.
func (m *RecursiveMutex) Lock(ctx context.Context, owner Owner) error {
	return m.obj.acquireLock(ctx, owner.requireOwner(func() error { return m.shm().Lock(ctx, owner.id) }))
}

// TryLock acquires the lock as [RecursiveMutex.Lock] does, or returns [ErrLocked] immediately.
func (m *RecursiveMutex) TryLock(owner Owner) error {
	return m.obj.acquireLock(context.Background(), owner.requireOwner(func() error {
		return m.shm().TryLock(owner.id)
	}))
}

func (o Owner) requireOwner(f func() error) func() error {
	if o.id == 0 {
		return func() error { return ErrNotOwner }
	}
	return f
}

// Unlock undoes one Lock. It returns [ErrNotOwner] if owner does not hold the lock.
func (m *RecursiveMutex) Unlock(owner Owner) error {
	return m.obj.releaseLock(func() error { return m.shm().Unlock(owner.id) })
}

// MarkConsistent declares that the guarded data was repaired after the previous holder died. It
// returns [ErrNotOwner] if owner does not hold the lock of a dead process.
func (m *RecursiveMutex) MarkConsistent(owner Owner) error {
	return m.obj.runLocked("mark consistent", func() error { return m.shm().MarkConsistent(owner.id) })
}

func (m *RecursiveMutex) shm() arena.RecursiveMutex { return arena.RecursiveMutex{Sync: m.obj.sync} }

// unmarshalWire decodes a RecursiveMutex. It returns [ErrType] if the value is of another type.
func (m *RecursiveMutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, recursiveName, arena.FormMutex)
	return err
}
