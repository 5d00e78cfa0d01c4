package arena

import "context"

// A RecursiveMutex is a Mutex that its owner may lock again. An owner is a number other than 0 that
// nobody else uses, since a goroutine has no number that a program can ask for.
type RecursiveMutex struct{ *Sync }

// Lock is Mutex.Lock for owner, at once if the lock is owner's already. There must be an Unlock for
// each.
func (m RecursiveMutex) Lock(ctx context.Context, owner uint64) error {
	if m.again(owner) {
		return nil
	}
	return m.own(owner, Mutex(m).Lock(ctx))
}

// TryLock is Lock that returns ErrLocked instead of waiting.
func (m RecursiveMutex) TryLock(owner uint64) error {
	if m.again(owner) {
		return nil
	}
	return m.own(owner, Mutex(m).TryLock())
}

// Unlock undoes one Lock. The error is ErrNotOwner if the lock is not owner's.
func (m RecursiveMutex) Unlock(owner uint64) error {
	if !m.owns(owner) {
		return ErrNotOwner
	}
	if n := m.c.depth.Load(); n > 1 {
		m.c.depth.Store(n - 1)
		return nil
	}
	m.c.owner.Store(0)
	return Mutex(m).Unlock()
}

// MarkConsistent is Mutex.MarkConsistent.
func (m RecursiveMutex) MarkConsistent(owner uint64) error {
	if !m.owns(owner) {
		return ErrNotOwner
	}
	return Mutex(m).MarkConsistent()
}

func (m RecursiveMutex) own(owner uint64, err error) error {
	if got(err) {
		m.c.depth.Store(1)
		m.c.owner.Store(owner)
	}
	return err
}

func (m RecursiveMutex) again(owner uint64) bool {
	if !m.owns(owner) {
		return false
	}
	m.c.depth.Store(m.c.depth.Load() + 1)
	return true
}

// owns reports whether the lock is owner's. Only owner itself can make that true or false, unless
// it died.
func (m RecursiveMutex) owns(owner uint64) bool { return Mutex(m).holds() && m.c.owner.Load() == owner }
