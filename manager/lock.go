package manager

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A Lock is a lock in the server. It belongs to the process that has acquired it, but anybody may
// release it, as in Python.
//
// When its owner dies, the next one to lock it gets it together with ErrOwnerDied: it repairs what
// the lock protects and calls MarkConsistent. If it unlocks without, everybody gets
// ErrNotRecoverable from then on.
type Lock struct{ Proxy }

// NewLock makes a lock that nobody has. The caller closes it.
func NewLock(ctx context.Context, m *Manager) (*Lock, error) {
	p, err := m.create(ctx, lockKind, in(false))
	return &Lock{p}, err
}

// Lock acquires the lock and waits for it. With ErrOwnerDied the lock is the caller's as well.
func (l *Lock) Lock(ctx context.Context) error { return l.acquire(ctx) }

// TryLock acquires the lock if it is free, and reports whether it was.
func (l *Lock) TryLock(ctx context.Context) (bool, error) { return l.try(ctx) }

// Unlock releases the lock; ErrNotOwner if nobody has it.
func (l *Lock) Unlock(ctx context.Context) error { return l.release(ctx) }

// MarkConsistent says that what the lock protects is in order again, after ErrOwnerDied.
func (l *Lock) MarkConsistent(ctx context.Context) error { return l.repair(ctx) }

// MarshalWire lets a Lock be part of a value that is sent.
func (l *Lock) MarshalWire(e *wire.Encoder) error { return l.marshal(e, "Lock") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another
// type.
func (l *Lock) UnmarshalWire(d *wire.Decoder) error { return l.unmarshal(d, "Lock") }

// An RLock is a Lock that its owner may acquire again, and releases as often. The owner is the
// proxy: what is received, or made by sending it through a queue, is another one, also in the same
// process.
type RLock struct{ Proxy }

// NewRLock makes a lock that nobody has. The caller closes it.
func NewRLock(ctx context.Context, m *Manager) (*RLock, error) {
	p, err := m.create(ctx, lockKind, in(true))
	return &RLock{p}, err
}

// Lock acquires the lock once more, and waits while another proxy has it. With ErrOwnerDied the
// lock is the caller's as well.
func (l *RLock) Lock(ctx context.Context) error { return l.acquire(ctx) }

// TryLock acquires the lock if it is free or this proxy's, and reports whether it was.
func (l *RLock) TryLock(ctx context.Context) (bool, error) { return l.try(ctx) }

// Unlock releases the lock once; ErrNotOwner if this proxy does not have it.
func (l *RLock) Unlock(ctx context.Context) error { return l.release(ctx) }

// MarkConsistent says that what the lock protects is in order again, after ErrOwnerDied.
func (l *RLock) MarkConsistent(ctx context.Context) error { return l.repair(ctx) }

// MarshalWire lets an RLock be part of a value that is sent.
func (l *RLock) MarshalWire(e *wire.Encoder) error { return l.marshal(e, "RLock") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another
// type.
func (l *RLock) UnmarshalWire(d *wire.Decoder) error { return l.unmarshal(d, "RLock") }

func (p *Proxy) acquire(ctx context.Context) error {
	return p.callUndo(ctx, lockUnlock.alone, lockLock).none()
}

func (p *Proxy) try(ctx context.Context) (bool, error) {
	a := p.callUndo(ctx, lockUnlock.alone, lockTryLock)
	if len(a.items) == 0 { // ErrOwnerDied: it was free
		return a.err != nil && isOwnerDied(a.err), a.none()
	}
	return one[bool](a)
}

func (p *Proxy) release(ctx context.Context) error { return p.call(ctx, lockUnlock).none() }

func (p *Proxy) repair(ctx context.Context) error { return p.call(ctx, lockRepair).none() }

// An owner is a proxy in a process.
type owner struct {
	session *session
	proxy   uint64
}

// A lock is the state of Lock, RLock and Condition.
type lock struct {
	recursive bool
	owner     owner
	depth     int
	dead      *session // the owner died with it, and nobody has marked it consistent
	lost      bool     // and it was unlocked all the same
}

// What can be asked of a Lock.
var (
	lockKind = newKind("Lock", func(c *call) (any, error) {
		recursive, err := arg[bool](c, 1)
		return &lock{recursive: recursive}, err
	})

	lockLock    = define(lockKind, "lock", (*lock).lock)
	lockTryLock = define(lockKind, "trylock", (*lock).tryLock)
	lockUnlock  = define(lockKind, "unlock", (*lock).unlock)
	lockRepair  = define(lockKind, "repair", (*lock).repair)
)

func (c *call) owner() owner { return owner{c.session(), c.Owner} }

func (l *lock) lock(c *call) error {
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

func (l *lock) tryLock(c *call) error {
	switch err := l.lock(c); err {
	case nil:
		return give(c, true)
	case errWait:
		return give(c, false)
	default:
		return err
	}
}

func (l *lock) unlock(c *call) error {
	if l.depth == 0 || l.recursive && l.owner != c.owner() {
		return fmt.Errorf("unlock: %w", ErrNotOwner)
	}
	if l.depth--; l.depth == 0 {
		l.lost = l.dead != nil
		l.owner = owner{}
	}
	return nil
}

func (l *lock) repair(c *call) error {
	if l.depth == 0 || l.owner.session != c.session() {
		return fmt.Errorf("mark consistent: %w", ErrNotOwner)
	}
	l.dead = nil
	return nil
}

func (l *lock) leave(s *session) {
	if l.depth > 0 && l.owner.session == s {
		l.owner, l.depth, l.dead = owner{}, 0, s
	}
}
