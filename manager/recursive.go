package manager

import (
	"context"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A RecursiveMutex is a Mutex that its owner may acquire again, and releases as often. The owner is
// the proxy: what is received, or made by sending it through a queue, is another one, also in the
// same process.
type RecursiveMutex struct{ Proxy }

// NewRecursiveMutex makes a lock that nobody has. The caller closes it.
func NewRecursiveMutex(ctx context.Context, m *Manager) (*RecursiveMutex, error) {
	p, err := m.create(ctx, mutexKind, in(true))
	return &RecursiveMutex{p}, err
}

// Lock acquires the lock once more, and waits while another proxy has it. With ErrOwnerDied the
// lock is the caller's as well.
func (l *RecursiveMutex) Lock(ctx context.Context) error { return l.acquire(ctx) }

// TryLock is Lock that returns ErrLocked instead of waiting.
func (l *RecursiveMutex) TryLock(ctx context.Context) error { return l.try(ctx) }

// Unlock releases the lock once; ErrNotOwner if this proxy does not have it.
func (l *RecursiveMutex) Unlock(ctx context.Context) error { return l.release(ctx) }

// MarkConsistent says that what the lock protects is in order again, after ErrOwnerDied.
func (l *RecursiveMutex) MarkConsistent(ctx context.Context) error { return l.repair(ctx) }

// MarshalWire lets a RecursiveMutex be part of a value that is sent.
func (l *RecursiveMutex) MarshalWire(e *wire.Encoder) error { return l.marshal(e, "RecursiveMutex") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another
// type.
func (l *RecursiveMutex) UnmarshalWire(d *wire.Decoder) error {
	return l.unmarshal(d, "RecursiveMutex")
}
