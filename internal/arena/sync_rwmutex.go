package arena

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// An RWMutex is a robust reader/writer lock. A writer takes the lock and then waits for the active
// readers; a reader increments its share and then tests for a writer. So new readers cannot
// overtake a waiting writer.
type RWMutex struct{ *Sync }

// Lock locks m for writing, like [Mutex.Lock], and then waits until no living participant reads. It
// ignores the shares of dead readers, because readers change nothing.
func (m RWMutex) Lock(ctx context.Context) error {
	err := Mutex(m).Lock(ctx)
	if !isAcquired(err) {
		return err
	}
	if e := m.watchUntil(ctx, m.hasNoReaders); e != nil {
		Mutex(m).revertLock()
		return e
	}
	return err
}

// TryLock is like [RWMutex.Lock], but returns [ErrLocked] instead of waiting.
func (m RWMutex) TryLock() error {
	err := Mutex(m).TryLock()
	if isAcquired(err) && !m.hasNoReaders() {
		Mutex(m).revertLock()
		return ErrLocked
	}
	return err
}

// Unlock releases a write lock. It returns [ErrNotOwner] if this participant does not hold it.
func (m RWMutex) Unlock() error {
	err := Mutex(m).Unlock()
	m.d.park.WakeBits(&m.c.Waiting) // every waiting reader may proceed
	return err
}

// MarkConsistent is like [Mutex.MarkConsistent].
func (m RWMutex) MarkConsistent() error { return Mutex(m).MarkConsistent() }

// RLock blocks until this participant may read, together with other readers, or ctx ends. On any
// error the caller must not read. In particular a *PeerError that wraps [ErrOwnerDied] means
// that a writer died, and that the next writer must repair the data first. RLock also returns
// the errors of [Mutex.Lock].
func (m RWMutex) RLock(ctx context.Context) error { return m.retryUntilAcquired(ctx, m.TryRLock) }

// TryRLock is like [RWMutex.RLock], but returns [ErrLocked] instead of waiting.
func (m RWMutex) TryRLock() error {
	for {
		switch w := m.c.Lock.Load(); {
		case w == word.LockFree:
			if !m.addShare() {
				return ErrLocked
			}
			if m.c.Lock.Load() == word.LockFree {
				return nil
			}
			m.RUnlock()
		case w.State() == word.LockLost:
			return newPeerError(w, ErrNotRecoverable)
		case m.d.isHolderGone(w):
			return newPeerError(w, ErrOwnerDied)
		default:
			return ErrLocked
		}
	}
}

// RUnlock undoes one RLock. It returns [ErrNotOwner] if this participant does not read.
func (m RWMutex) RUnlock() error {
	n := m.dropShare()
	if n < 0 {
		return ErrNotOwner
	}
	if n == 0 {
		m.d.park.WakeBits(&m.c.Watching)
	}
	return nil
}

// hasNoReaders reports whether no living participant reads.
func (m RWMutex) hasNoReaders() bool {
	for i := range m.d.mem.CountSeats() {
		if v := m.c.Shares[i].Load(); v&word.CountMask != 0 && !m.d.isGone(i, v) {
			return false
		}
	}
	return true
}
