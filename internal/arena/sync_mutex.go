package arena

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Mutex is a robust lock: it can be recovered when its holder dies. It is held by a participant,
// not by a goroutine, so any goroutine of the participant may unlock it.
type Mutex struct{ *Sync }

// Lock blocks until this participant holds the lock or ctx ends, and then returns nil or the
// cause of ctx. It returns [ErrClosed] if the view or the domain is closed.
//
// A *PeerError that wraps [ErrOwnerDied] means that the caller holds the lock, and that the last
// holder died with it. The caller must repair the protected data and call [Mutex.MarkConsistent]
// before [Mutex.Unlock]; an Unlock without it makes the lock permanently unusable. Later calls
// of Lock then return a *PeerError that wraps [ErrNotRecoverable], and the caller does not hold
// the lock. Robust mutexes in POSIX have the same contract:
// https://man7.org/linux/man-pages/man3/pthread_mutexattr_setrobust.3.html.
func (m Mutex) Lock(ctx context.Context) error {
	if !m.isClosed() && m.c.Lock.CAS(word.LockFree, m.me|word.LockHeld) {
		return nil
	}
	return m.retryUntilAcquired(ctx, m.TryLock)
}

// TryLock is like [Mutex.Lock], but returns [ErrLocked] instead of waiting.
//
// Invariant (docs/memory.md, "Cells"): the CAS that takes the lock writes the holder's identity
// into the same word. So no reaper has to release a lock: a participant that wants it tests whether
// the holder is gone, and takes the lock over by a CAS on that word.
func (m Mutex) TryLock() error {
	for {
		w := m.c.Lock.Load()
		switch {
		case w == word.LockFree:
			if m.c.Lock.CAS(word.LockFree, m.me|word.LockHeld) {
				return nil
			}
		case w.State() == word.LockLost:
			return newPeerError(w, ErrNotRecoverable)
		case !m.d.isHolderGone(w):
			return ErrLocked
		case m.c.Lock.CAS(w, m.me|word.LockDirty):
			m.c.Dead.Store(uint64(w))
			return newPeerError(w, ErrOwnerDied)
		}
	}
}

// Unlock releases the lock. It returns [ErrNotOwner] if this participant does not hold the lock.
func (m Mutex) Unlock() error {
	if m.c.Lock.CAS(m.me|word.LockHeld, word.LockFree) {
		if !word.IsDisabled("unlock wakes") {
			m.waiting.WakeParticipant()
		}
		return nil
	}
	if !m.c.Lock.CAS(m.me|word.LockDirty, word.Lock(m.c.Dead.Load())|word.LockLost) {
		return ErrNotOwner
	}
	m.d.park.WakeBits(&m.c.Waiting)
	return nil
}

// MarkConsistent declares the protected data consistent again after a holder died. It returns
// [ErrNotOwner] unless this participant holds the lock after such a death.
func (m Mutex) MarkConsistent() error {
	if !m.c.Lock.CAS(m.me|word.LockDirty, m.me|word.LockHeld) {
		return ErrNotOwner
	}
	return nil
}

// Holder returns the ID of the process that holds the lock, or 0 if there is none. The process
// may have died with it.
func (m Mutex) Holder() (pid int) {
	if w := m.c.Lock.Load(); w.State() != word.LockLost {
		pid = w.PID()
	}
	return pid
}

// isAcquired reports whether the error of a Lock means that the caller holds the lock.
func isAcquired(err error) bool { return err == nil || errors.Is(err, ErrOwnerDied) }

// revertLock undoes a Lock. If the lock was taken over from a dead holder, the word names that
// holder again, so that the next one to lock it is told.
func (m Mutex) revertLock() {
	if !m.c.Lock.CAS(m.me|word.LockHeld, word.LockFree) {
		m.c.Lock.CAS(m.me|word.LockDirty, word.Lock(m.c.Dead.Load()))
	}
	m.waiting.WakeParticipant()
}

// isOrphaned reports whether the lock has a holder that is gone.
func (s *Sync) isOrphaned() bool {
	w := s.c.Lock.Load()
	return w != word.LockFree && w.State() != word.LockLost && s.d.isHolderGone(w)
}

// isInconsistent reports whether a holder died and [Mutex.MarkConsistent] has not been called
// since.
func (m Mutex) isInconsistent() bool {
	return m.c.Lock.Load()&word.LockMask > word.LockHeld || m.isOrphaned()
}

// isLockReady reports whether a TryLock would return a result other than [ErrLocked]. It is also
// true once the view is closed.
func (s *Sync) isLockReady() bool {
	w := s.c.Lock.Load()
	return w == word.LockFree || w.State() == word.LockLost || s.isOrphaned() || s.isClosed()
}

// isHolder reports whether this participant holds the lock.
func (m Mutex) isHolder() bool {
	w := m.c.Lock.Load()
	return w == m.me|word.LockHeld || w == m.me|word.LockDirty
}
