package manager

import (
	"context"
	"fmt"
)

// A Mutex is a mutual exclusion lock in the server. The process that locked it owns it, but any
// process may unlock it, as in Python.
//
// If the owner dies, the next caller of Lock acquires the lock with [ErrOwnerDied]. That caller
// must repair the data that the lock guards and call MarkConsistent. If it unlocks without
// MarkConsistent, every later Lock returns [ErrNotRecoverable]. All methods may be called from
// several goroutines.
type Mutex struct{ locker[Mutex] }

// NewMutex creates an unlocked Mutex. The caller must close it.
func NewMutex(ctx context.Context, m *Manager) (*Mutex, error) {
	p, err := createTyped[Mutex](ctx, m, mutexKind, encodeArg(false))
	return &Mutex{locker[Mutex]{p}}, err
}

// locker is the common part of [Mutex], [RecursiveMutex] and [Cond]. T is the one that embeds
// it, and the type as which the proxy is sent to other processes.
type locker[T any] struct{ typed[T] }

// Lock acquires the lock, and blocks until it is available. If ctx is done first, it returns an
// error that wraps the cause of ctx, and the caller does not hold the lock. If the error is
// [ErrOwnerDied], the caller holds the lock as well. It returns [ErrNotRecoverable] if an
// earlier owner did not repair the data.
func (l *locker[T]) Lock(ctx context.Context) error {
	return l.callUndo(ctx, mutexGiveBack.bareRequest, mutexLock).noResult()
}

// TryLock acquires the lock as Lock does, or returns [ErrLocked] immediately. With
// [ErrOwnerDied] the caller holds the lock, as after Lock.
func (l *locker[T]) TryLock(ctx context.Context) error {
	return l.callUndo(ctx, mutexGiveBack.bareRequest, mutexTryLock).noResult()
}

// Unlock releases the lock once. It returns [ErrNotOwner] if the lock is not held, or if it is a
// [RecursiveMutex] or a [Cond] that is held by another proxy.
func (l *locker[T]) Unlock(ctx context.Context) error { return l.call(ctx, mutexUnlock).noResult() }

// MarkConsistent declares, after [ErrOwnerDied], that the guarded data was repaired. It returns
// [ErrNotOwner] if this process does not hold the lock.
func (l *locker[T]) MarkConsistent(ctx context.Context) error {
	return l.call(ctx, mutexRepair).noResult()
}

// An owner identifies a proxy in a process, which may hold a lock. The zero owner means that the
// lock is free.
type owner struct {
	session *session
	proxy   uint64
}

// A mutex is the server's state of a Mutex, a RecursiveMutex or a Cond.
type mutex struct {
	recursive bool
	owner     owner
	depth     int
	dead      *session // dead owner; nil after MarkConsistent
	lost      bool     // released without MarkConsistent after the owner's death
}

// Methods of a Mutex.
var (
	mutexKind = newKind("Mutex", func(c *call) (any, error) {
		recursive, err := decodeArg[bool](c, 0)
		return &mutex{recursive: recursive}, err
	})

	mutexLock     = defineMethod(mutexKind, "lock", (*mutex).lock)
	mutexTryLock  = defineMethod(mutexKind, "trylock", (*mutex).tryLock)
	mutexUnlock   = defineMethod(mutexKind, "unlock", (*mutex).unlock)
	mutexGiveBack = defineMethod(mutexKind, "giveback", (*mutex).releaseAbandoned)
	mutexRepair   = defineMethod(mutexKind, "repair", (*mutex).markConsistent)
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
		return newPeerError(l.dead.pid, ErrOwnerDied)
	}
	return nil
}

func (l *mutex) tryLock(c *call) error { return waitToState(l.lock(c), ErrLocked) }

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

// releaseAbandoned releases the lock once on behalf of a caller that stopped waiting before it
// learned that it holds the lock. Such a caller cannot mark the lock consistent, so the next
// holder gets [ErrOwnerDied] again. It returns [ErrNotOwner] if the caller does not hold the
// lock.
func (l *mutex) releaseAbandoned(c *call) error {
	if l.depth == 0 || l.owner != c.owner() {
		return fmt.Errorf("release lock of a canceled caller: %w", ErrNotOwner)
	}
	if l.depth--; l.depth == 0 {
		l.owner = owner{}
	}
	return nil
}

func (l *mutex) markConsistent(c *call) error {
	if l.depth == 0 || l.owner.session != c.session() {
		return fmt.Errorf("mark consistent: %w", ErrNotOwner)
	}
	l.dead = nil
	return nil
}

func (l *mutex) endSession(s *session) {
	if l.depth > 0 && l.owner.session == s {
		l.owner, l.depth, l.dead = owner{}, 0, s
	}
}
