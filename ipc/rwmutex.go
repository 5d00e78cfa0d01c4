package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An RWMutex is a Mutex that any number of readers may hold instead of one writer. A writer that
// waits keeps new readers out. The death of a reader releases its lock; the death of a writer is
// told to the next one, as with a Mutex. The zero RWMutex is closed.
type RWMutex struct{ cell }

const rwMutexName = "RWMutex"

// NewRWMutex makes an RWMutex that is free. The caller closes it.
func NewRWMutex() (*RWMutex, error) {
	o, err := newObject(rwMutexName, arena.SyncOptions{Form: arena.FormRWMutex})
	if err != nil {
		return nil, err
	}
	return &RWMutex{cell{o}}, nil
}

// Lock waits for the lock and takes it for writing. The errors are those of Mutex.Lock.
func (m *RWMutex) Lock(ctx context.Context) error {
	return m.obj.lock(ctx, func() error { return m.shm().Lock(ctx) })
}

// TryLock takes the lock for writing, or returns ErrLocked at once.
func (m *RWMutex) TryLock() error {
	return m.obj.lock(context.Background(), func() error { return m.shm().TryLock() })
}

// Unlock gives back what Lock took. The error is ErrNotOwner if this process does not hold it.
func (m *RWMutex) Unlock() error { return m.obj.unlock(func() error { return m.shm().Unlock() }) }

// RLock takes the lock for reading, beside other readers. With any error the lock is not taken:
// ErrOwnerDied says that a writer died, and the data is to be repaired under Lock.
func (m *RWMutex) RLock(ctx context.Context) error {
	return m.read(ctx, func() error { return m.shm().RLock(ctx) })
}

// TryRLock takes the lock for reading, or returns ErrLocked at once.
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

// MarkConsistent says that the data that the lock guards is repaired after a writer died. The error
// is ErrNotOwner if this process does not hold the lock of a dead one.
func (m *RWMutex) MarkConsistent() error {
	return m.obj.during("mark consistent", func() error { return m.shm().MarkConsistent() })
}

func (m *RWMutex) shm() arena.RWMutex { return arena.RWMutex{Sync: m.obj.sync} }

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (m *RWMutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, rwMutexName, arena.FormRWMutex)
	return err
}
