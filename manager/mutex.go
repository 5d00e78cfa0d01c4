package manager

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Mutex is a lock in the server. It belongs to the process that has acquired it, but anybody may
// release it, as in Python.
//
// When its owner dies, the next one to lock it gets it together with ErrOwnerDied: it repairs what
// the lock protects and calls MarkConsistent. If it unlocks without, everybody gets
// ErrNotRecoverable from then on.
type Mutex struct{ Proxy }

// NewMutex makes a lock that nobody has. The caller closes it.
func NewMutex(ctx context.Context, m *Manager) (*Mutex, error) {
	p, err := m.create(ctx, mutexKind, in(false))
	return &Mutex{p}, err
}

// Lock acquires the lock and waits for it. With ErrOwnerDied the lock is the caller's as well.
func (l *Mutex) Lock(ctx context.Context) error { return l.acquire(ctx) }

// TryLock is Lock that returns ErrLocked instead of waiting.
func (l *Mutex) TryLock(ctx context.Context) error { return l.try(ctx) }

// Unlock releases the lock; ErrNotOwner if nobody has it.
func (l *Mutex) Unlock(ctx context.Context) error { return l.release(ctx) }

// MarkConsistent says that what the lock protects is in order again, after ErrOwnerDied.
func (l *Mutex) MarkConsistent(ctx context.Context) error { return l.repair(ctx) }

// MarshalWire lets a Mutex be part of a value that is sent.
func (l *Mutex) MarshalWire(e *wire.Encoder) error { return l.marshal(e, "Mutex") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another
// type.
func (l *Mutex) UnmarshalWire(d *wire.Decoder) error { return l.unmarshal(d, "Mutex") }

func (p *Proxy) acquire(ctx context.Context) error {
	return p.callUndo(ctx, mutexUnlock.alone, mutexLock).none()
}

func (p *Proxy) try(ctx context.Context) error {
	return p.callUndo(ctx, mutexUnlock.alone, mutexTryLock).none()
}

func (p *Proxy) release(ctx context.Context) error { return p.call(ctx, mutexUnlock).none() }

func (p *Proxy) repair(ctx context.Context) error { return p.call(ctx, mutexRepair).none() }

// An owner is a proxy in a process.
type owner struct {
	session *session
	proxy   uint64
}

// A lock is the state of Mutex, RecursiveMutex and Cond.
type mutex struct {
	recursive bool
	owner     owner
	depth     int
	dead      *session // the owner died with it, and nobody has marked it consistent
	lost      bool     // and it was unlocked all the same
}

// What can be asked of a Mutex.
var (
	mutexKind = newKind("Mutex", func(c *call) (any, error) {
		recursive, err := arg[bool](c, 1)
		return &mutex{recursive: recursive}, err
	})

	mutexLock    = define(mutexKind, "lock", (*mutex).lock)
	mutexTryLock = define(mutexKind, "trylock", (*mutex).tryLock)
	mutexUnlock  = define(mutexKind, "unlock", (*mutex).unlock)
	mutexRepair  = define(mutexKind, "repair", (*mutex).repair)
)

func (c *call) owner() owner { return owner{c.session(), c.Owner} }

func (l *mutex) lock(c *call) error {
	switch {
	case l.lost:
		return ErrNotRecoverable
	case l.depth == 0:
		l.owner, l.depth = c.owner(), 1
	case l.recursive && l.owner == c.owner():
		l.depth++
		return nil
	default:
		return errWait
	}
	if l.dead != nil {
		return &OwnerError{PID: l.dead.pid, Err: ErrOwnerDied}
	}
	return nil
}

func (l *mutex) tryLock(c *call) error { return orState(l.lock(c), ErrLocked) }

func (l *mutex) unlock(c *call) error {
	if l.depth == 0 || l.recursive && l.owner != c.owner() {
		return fmt.Errorf("unlock: %w", ErrNotOwner)
	}
	if l.depth--; l.depth == 0 {
		l.lost = l.dead != nil
		l.owner = owner{}
	}
	return nil
}

func (l *mutex) repair(c *call) error {
	if l.depth == 0 || l.owner.session != c.session() {
		return fmt.Errorf("mark consistent: %w", ErrNotOwner)
	}
	l.dead = nil
	return nil
}

func (l *mutex) leave(s *session) {
	if l.depth > 0 && l.owner.session == s {
		l.owner, l.depth, l.dead = owner{}, 0, s
	}
}
