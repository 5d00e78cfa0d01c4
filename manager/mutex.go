package manager

import (
	"context"
	"fmt"
)

// A Mutex is a lock in the server. The process that locked it owns it, but any process may unlock
// it, as in Python.
//
// When the owner dies, the next caller of Lock gets the lock together with ErrOwnerDied. This
// caller repairs the data that the lock protects and calls MarkConsistent. If it unlocks without
// MarkConsistent, every later Lock returns ErrNotRecoverable.
type Mutex struct{ locker[Mutex] }

// NewMutex makes a lock that is free. The caller closes it.
func NewMutex(ctx context.Context, m *Manager) (*Mutex, error) {
	p, err := create[Mutex](ctx, m, mutexKind, in(false))
	return &Mutex{locker[Mutex]{p}}, err
}

// locker is the proxy of a lock, in a type T, as which it travels.
type locker[T any] struct{ typed[T] }

// Lock waits for the lock and takes it. If the error is ErrOwnerDied, the caller has the lock as
// well. The error is ErrNotRecoverable if an earlier owner did not repair the data.
func (l *locker[T]) Lock(ctx context.Context) error {
	return l.callUndo(ctx, mutexGiveBack.alone, mutexLock).none()
}

// TryLock takes the lock as Lock does, or returns ErrLocked at once.
func (l *locker[T]) TryLock(ctx context.Context) error {
	return l.callUndo(ctx, mutexGiveBack.alone, mutexTryLock).none()
}

// Unlock releases the lock once. The error is ErrNotOwner if the lock is free, or if it is a
// RecursiveMutex or a Cond that another proxy has.
func (l *locker[T]) Unlock(ctx context.Context) error { return l.call(ctx, mutexUnlock).none() }

// MarkConsistent says, after ErrOwnerDied, that the caller has repaired the data that the lock
// protects.
func (l *locker[T]) MarkConsistent(ctx context.Context) error { return l.call(ctx, mutexRepair).none() }

// An owner is a proxy in a process.
type owner struct {
	session *session
	proxy   uint64
}

// A mutex is the state of Mutex, RecursiveMutex and Cond.
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
		recursive, err := arg[bool](c, 0)
		return &mutex{recursive: recursive}, err
	})

	mutexLock     = define(mutexKind, "lock", (*mutex).lock)
	mutexTryLock  = define(mutexKind, "trylock", (*mutex).tryLock)
	mutexUnlock   = define(mutexKind, "unlock", (*mutex).unlock)
	mutexGiveBack = define(mutexKind, "giveback", (*mutex).giveBack)
	mutexRepair   = define(mutexKind, "repair", (*mutex).repair)
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
	default:
		return errWait
	}
	if l.dead != nil {
		return died(l.dead.pid, ErrOwnerDied)
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

// giveBack takes the lock from a caller whose context had ended before it knew that it has it. Such
// a caller could not mark it consistent: the next one is told of the owner's death again.
func (l *mutex) giveBack(c *call) error {
	if l.depth == 0 || l.owner != c.owner() {
		return fmt.Errorf("give back: %w", ErrNotOwner)
	}
	if l.depth--; l.depth == 0 {
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
