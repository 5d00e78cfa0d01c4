package arena

import "context"

// An RWMutex is a lock of one writer or many readers. A writer takes the lock and then waits for
// the readers that are there; a reader counts itself and then looks whether there is a writer. So
// no reader gets past a writer that waits.
type RWMutex struct{ *Sync }

// Lock is Mutex.Lock, and waits for the living readers. Dead ones have changed nothing.
func (m RWMutex) Lock(ctx context.Context) error {
	err := Mutex(m).Lock(ctx)
	if !got(err) {
		return err
	}
	if e := m.watch(ctx, m.drained); e != nil {
		Mutex(m).withdraw()
		return e
	}
	return err
}

// TryLock is Lock that returns ErrLocked instead of waiting.
func (m RWMutex) TryLock() error {
	err := Mutex(m).TryLock()
	if got(err) && !m.drained() {
		Mutex(m).withdraw()
		return ErrLocked
	}
	return err
}

// Unlock and MarkConsistent are those of a Mutex.
func (m RWMutex) Unlock() error {
	err := Mutex(m).Unlock()
	m.d.wakeBits(&m.c.waiting) // all readers may go on
	return err
}

// MarkConsistent is Mutex.MarkConsistent.
func (m RWMutex) MarkConsistent() error { return Mutex(m).MarkConsistent() }

// RLock waits until this participant may read beside others, or until ctx ends. With any error it
// may not: a *PeerError with ErrOwnerDied says that a writer died, and that only the next writer
// can repair what the lock guards.
func (m RWMutex) RLock(ctx context.Context) error { return m.acquire(ctx, m.TryRLock) }

// TryRLock is RLock that returns ErrLocked instead of waiting.
func (m RWMutex) TryRLock() error {
	for {
		switch w := m.c.lock.Load(); {
		case w == lockFree:
			if !m.share() {
				return ErrLocked
			}
			if m.c.lock.Load() == lockFree {
				return nil
			}
			m.RUnlock()
		case w.state() == lockLost:
			return bereaved(w, ErrNotRecoverable)
		case m.d.holderGone(w):
			return bereaved(w, ErrOwnerDied)
		default:
			return ErrLocked
		}
	}
}

// RUnlock ends one read. The error is ErrNotOwner if this participant reads nothing.
func (m RWMutex) RUnlock() error {
	n := m.unshare()
	if n < 0 {
		return ErrNotOwner
	}
	if n == 0 {
		m.d.wakeBits(&m.c.watching)
	}
	return nil
}

// drained reports whether no living participant reads.
func (m RWMutex) drained() bool {
	for i := range m.seats() {
		if v := m.c.shares[i].Load(); v&countMask != 0 && !m.d.gone(i, v) {
			return false
		}
	}
	return true
}
