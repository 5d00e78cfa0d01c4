package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Mutex is a mutual exclusion lock for goroutines in any processes of the domain. It can be sent
// to other processes like an end of a queue. It is robust: if the process that holds it dies, the
// next process to lock it acquires it and gets [ErrOwnerDied].
//
// The holder is a process, not a goroutine. Any goroutine of that process may unlock the Mutex, by
// the same Mutex or a copy of it; no other process may. For a lock that another process may
// release, use a [Semaphore] with one permit.
//
// All methods may be called from several goroutines. The zero Mutex is closed.
type Mutex struct{ cell }

const mutexName = "Mutex"

// NewMutex returns an unlocked Mutex. The caller must close it.
func NewMutex() (*Mutex, error) {
	o, err := newObject(mutexName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	m := mutexOf(o)
	return &m, nil
}

// mutexOf returns a Mutex that uses the object o without a reference of its own: closing it
// closes o.
func mutexOf(o *object) Mutex { return Mutex{cell{o}} }

// Lock acquires the lock, and blocks until it is available. It returns [ErrLocked] with
// [context.DeadlineExceeded] if the deadline of ctx expires; the message contains the holder's
// process id.
//
// If the error wraps [ErrOwnerDied], the caller *does* hold the lock. The error is a
// *shm.PeerError: the previous holder died, and the guarded data may be inconsistent. The caller
// must repair the data, notify all goroutines that wait on a [Cond] of the Mutex, and call
// [Mutex.MarkConsistent] before Unlock. If it unlocks without MarkConsistent, the Mutex becomes
// unusable: every Lock returns [ErrNotRecoverable].
func (m *Mutex) Lock(ctx context.Context) error {
	if err := m.obj.beginOp(); err != nil {
		return err
	}
	if err := (arena.Mutex{Sync: m.obj.sync}).Lock(ctx); err != nil {
		return m.obj.finishLock(ctx, err)
	}
	m.obj.keepHeld()
	return nil
}

// TryLock acquires the lock as [Mutex.Lock] does, or returns [ErrLocked] immediately. With
// [ErrOwnerDied] the caller holds the lock, as after Lock.
func (m *Mutex) TryLock() error {
	return m.obj.acquireLock(context.Background(), func() error { return m.shm().TryLock() })
}

// Unlock releases the lock. It returns [ErrNotOwner] if this process does not hold it.
func (m *Mutex) Unlock() error { return m.obj.releaseLock(func() error { return m.shm().Unlock() }) }

// MarkConsistent declares that the guarded data was repaired after the previous holder died. It
// returns [ErrNotOwner] if this process does not hold the lock of a dead process.
func (m *Mutex) MarkConsistent() error {
	return m.obj.runLocked("mark consistent", func() error { return m.shm().MarkConsistent() })
}

// Locked reports whether any process holds the lock, which may have changed by the time it
// returns. It returns false if m is closed.
func (m *Mutex) Locked() bool {
	if m.obj.beginOp() != nil {
		return false
	}
	defer m.obj.endOp()
	return m.shm().Holder() != 0
}

func (m *Mutex) shm() arena.Mutex { return arena.Mutex{Sync: m.obj.sync} }

// unmarshalWire decodes a Mutex. It returns [ErrType] if the value is of another type.
func (m *Mutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, mutexName, arena.FormMutex)
	return err
}
