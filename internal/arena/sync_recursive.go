package arena

import "context"

// A RecursiveMutex is a [Mutex] that its owner may lock again. An owner is a number other than 0.
// The caller must choose it, and it must be unique within the process, because Go does not expose
// goroutine IDs.
type RecursiveMutex struct{ *Sync }

// Lock locks m for owner, like [Mutex.Lock]. If owner holds the lock already, Lock returns at once.
// Each Lock must be matched by an [RecursiveMutex.Unlock].
func (m RecursiveMutex) Lock(ctx context.Context, owner uint64) error {
	if m.lockAgain(owner) {
		return nil
	}
	return m.recordOwner(owner, Mutex(m).Lock(ctx))
}

// TryLock is like [RecursiveMutex.Lock], but returns [ErrLocked] instead of waiting.
func (m RecursiveMutex) TryLock(owner uint64) error {
	if m.lockAgain(owner) {
		return nil
	}
	return m.recordOwner(owner, Mutex(m).TryLock())
}

// Unlock undoes one Lock. It returns [ErrNotOwner] if owner does not hold the lock.
func (m RecursiveMutex) Unlock(owner uint64) error {
	if !m.isOwner(owner) {
		return ErrNotOwner
	}
	if n := m.c.Depth.Load(); n > 1 {
		m.c.Depth.Store(n - 1)
		return nil
	}
	m.c.Owner.Store(0)
	return Mutex(m).Unlock()
}

// MarkConsistent is like [Mutex.MarkConsistent]. It returns [ErrNotOwner] if owner does not hold
// the lock.
func (m RecursiveMutex) MarkConsistent(owner uint64) error {
	if !m.isOwner(owner) {
		return ErrNotOwner
	}
	return Mutex(m).MarkConsistent()
}

// recordOwner records owner if err means that the lock is held, and returns err.
func (m RecursiveMutex) recordOwner(owner uint64, err error) error {
	if isAcquired(err) {
		m.c.Depth.Store(1)
		m.c.Owner.Store(owner)
	}
	return err
}

// lockAgain increments the depth if owner holds the lock, and reports whether it does.
func (m RecursiveMutex) lockAgain(owner uint64) bool {
	if !m.isOwner(owner) {
		return false
	}
	m.c.Depth.Store(m.c.Depth.Load() + 1)
	return true
}

// isOwner reports whether owner holds the lock. The answer cannot change while owner does nothing,
// because only owner itself changes it, or other participants after this process has died.
func (m RecursiveMutex) isOwner(owner uint64) bool {
	return Mutex(m).isHolder() && m.c.Owner.Load() == owner
}
