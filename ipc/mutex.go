package ipc

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Mutex is a lock for goroutines of any processes of the domain. It travels to other processes,
// like a queue's end, and survives them: if the process that holds it dies, the next one to lock it
// gets it, and is told.
//
// A process holds it, not a goroutine: any goroutine of that process may unlock it, with the Mutex
// that locked it or a copy, and no other process may. For a lock that another one gives back, use a
// Semaphore of one permit.
//
// Its methods may be called by several goroutines. The zero Mutex is closed.
type Mutex struct{ cell }

const mutexName = "Mutex"

// NewMutex makes a Mutex that is free. The caller closes it.
func NewMutex() (*Mutex, error) {
	o, err := newObject(mutexName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	m := mutexOf(o)
	return &m, nil
}

// mutexOf returns the Mutex of an object.
func mutexOf(o *object) Mutex { return Mutex{cell{o}} }

// Lock waits for the lock and takes it. The error is ErrLocked and context.DeadlineExceeded if ctx
// had a deadline, and names the process that holds it.
//
// An error that wraps ErrOwnerDied comes *with* the lock, and with a *shm.PeerError: its holder
// died, and what it guards may be half done. The new holder repairs that, notifies all that wait in
// a Cond of the Mutex, calls MarkConsistent and then Unlock. An Unlock without MarkConsistent gives
// the Mutex up: every Lock then returns ErrNotRecoverable.
func (m *Mutex) Lock(ctx context.Context) error {
	if err := m.obj.enter(); err != nil {
		return err
	}
	if err := (arena.Mutex{Sync: m.obj.sync}).Lock(ctx); err != nil {
		return m.obj.locked(ctx, err)
	}
	m.obj.keep()
	return nil
}

// TryLock takes the lock as Lock does, or returns ErrLocked at once.
func (m *Mutex) TryLock() error {
	return m.obj.lock(context.Background(), func() error { return m.shm().TryLock() })
}

// Unlock gives the lock back. The error is ErrNotOwner if this process does not hold it.
func (m *Mutex) Unlock() error { return m.obj.unlock(func() error { return m.shm().Unlock() }) }

// MarkConsistent says that the data that the lock guards is repaired after its holder died. The
// error is ErrNotOwner if this process does not hold the lock of a dead one.
func (m *Mutex) MarkConsistent() error {
	return m.obj.during("mark consistent", func() error { return m.shm().MarkConsistent() })
}

// Locked reports whether a process holds the lock, and false if m is closed.
func (m *Mutex) Locked() bool {
	if m.obj.enter() != nil {
		return false
	}
	defer m.obj.leave()
	return m.shm().Holder() != 0
}

func (m *Mutex) shm() arena.Mutex { return arena.Mutex{Sync: m.obj.sync} }

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (m *Mutex) unmarshalWire(d *codec.Decoder) (err error) {
	m.obj, err = readObject(d, mutexName, arena.FormMutex)
	return err
}
