package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An RWMutex is a reader/writer lock for goroutines in any processes of the domain: any number of
// readers or one writer may hold it. A waiting writer blocks new readers. The lock of a dead reader
// is released. After the death of a writer, the next holder gets [ErrOwnerDied], as with a [Mutex].
// The zero RWMutex is closed.
type RWMutex struct{ cell }

const rwMutexName = "RWMutex"

// NewRWMutex returns an unlocked RWMutex. The caller must close it.
func NewRWMutex() (*RWMutex, error) {
	o, err := newObject(rwMutexName, arena.SyncOptions{Form: arena.FormRWMutex})
	if err != nil {
		return nil, err
	}
	return &RWMutex{cell{o}}, nil
}

// Lock acquires the lock for writing, and blocks until it is available. The errors are the same
// as for [Mutex.Lock].
func (m *RWMutex) Lock(ctx context.Context) error {
	return m.obj.acquireLock(ctx, func() error { return m.shm().Lock(ctx) })
}

// TryLock acquires the lock for writing, or returns [ErrLocked] immediately. Other errors are
// the same as for [Mutex.Lock]: with [ErrOwnerDied] the caller holds the lock.
func (m *RWMutex) TryLock() error {
	return m.obj.acquireLock(context.Background(), func() error { return m.shm().TryLock() })
}

// Unlock releases the write lock. It returns [ErrNotOwner] if this process does not hold it.
func (m *RWMutex) Unlock() error { return m.obj.releaseLock(func() error { return m.shm().Unlock() }) }

// RLock acquires the lock for reading, shared with other readers, and blocks while a writer
// holds it or waits for it. It returns [ErrLocked] with [context.DeadlineExceeded] if the
// deadline of ctx expires. With any error the lock is not held. If the error wraps
// [ErrOwnerDied], a writer died, and a process must repair the data under [RWMutex.Lock].
func (m *RWMutex) RLock(ctx context.Context) error {
	return m.acquireRead(ctx, func() error { return m.shm().RLock(ctx) })
}

// TryRLock acquires the lock for reading, or returns [ErrLocked] immediately.
func (m *RWMutex) TryRLock() error {
	return m.acquireRead(context.Background(), func() error { return m.shm().TryRLock() })
}

func (m *RWMutex) acquireRead(ctx context.Context, f func() error) error {
	if err := m.obj.beginOp(); err != nil {
		return err
	}
	if err := f(); err != nil {
		m.obj.endOp()
		return shmError(ctx, "lock for reading", err, ErrLocked)
	}
	m.obj.keepHeld()
	return nil
}

// RUnlock releases a read lock. It returns [ErrNotOwner] if this process holds none.
func (m *RWMutex) RUnlock() error {
	return m.obj.releaseLock(func() error { return m.shm().RUnlock() })
}

// MarkConsistent declares that the guarded data was repaired after a writer died. It returns
// [ErrNotOwner] if this process does not hold the lock of a dead writer.
func (m *RWMutex) MarkConsistent() error {
	return m.obj.runLocked("mark consistent", func() error { return m.shm().MarkConsistent() })
}

func (m *RWMutex) shm() arena.RWMutex { return arena.RWMutex{Sync: m.obj.sync} }

// unmarshalWire decodes an RWMutex. It returns [ErrType] if the value is of another type.
func (m *RWMutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, rwMutexName, arena.FormRWMutex)
	return err
}
