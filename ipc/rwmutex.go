package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/shm"
)

// An RWMutex is a Mutex that any number of readers may hold instead of one writer. A writer that
// waits keeps new readers out. The death of a reader is nobody's concern; that of a writer is as
// with a Mutex. The zero RWMutex is closed.
type RWMutex struct{ cell[rwMutexCell] }

const rwMutexName = "RWMutex"

// NewRWMutex makes an RWMutex that is free. The caller closes it.
func NewRWMutex() (*RWMutex, error) {
	o, err := newObject(rwMutexName, shm.SyncOptions{Form: shm.FormRWMutex})
	if err != nil {
		return nil, err
	}
	return &RWMutex{cell[rwMutexCell]{o}}, nil
}

// Lock takes the lock for writing; see Mutex.Lock.
func (m *RWMutex) Lock(ctx context.Context) error {
	return m.obj.lock(ctx, func() error { return m.shm().Lock(ctx) })
}

// TryLock is Lock that returns ErrLocked instead of waiting.
func (m *RWMutex) TryLock() error {
	return m.obj.lock(context.Background(), func() error { return m.shm().TryLock() })
}

// Unlock gives back what Lock took. The error is ErrNotOwner if this process does not hold it.
func (m *RWMutex) Unlock() error { return m.obj.unlock(func() error { return m.shm().Unlock() }) }

// RLock takes the lock for reading, beside other readers. With any error it is not taken: one that
// wraps ErrOwnerDied says that a writer died, and only a Lock can make good what it left.
func (m *RWMutex) RLock(ctx context.Context) error {
	return m.read(ctx, func() error { return m.shm().RLock(ctx) })
}

// TryRLock is RLock that returns ErrLocked instead of waiting.
func (m *RWMutex) TryRLock() error {
	return m.read(context.Background(), func() error { return m.shm().TryRLock() })
}

func (m *RWMutex) read(ctx context.Context, f func() error) error {
	if err := m.obj.enter(); err != nil {
		return err
	}
	if err := f(); err != nil {
		m.obj.leave()
		return shmError(ctx, "lock for reading", err, ErrLocked)
	}
	m.obj.keep()
	return nil
}

// RUnlock gives back what RLock took. The error is ErrNotOwner if this process reads nothing.
func (m *RWMutex) RUnlock() error { return m.obj.unlock(func() error { return m.shm().RUnlock() }) }

// MarkConsistent is that of a Mutex.
func (m *RWMutex) MarkConsistent() error {
	return m.obj.during("mark consistent", func() error { return m.shm().MarkConsistent() })
}

func (m *RWMutex) shm() shm.RWMutex { return shm.RWMutex{Sync: m.obj.sync} }
