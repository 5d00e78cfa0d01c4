package arena

import (
	"context"
	"errors"
)

// States of a lock word. A free lock is the word 0.
const (
	lockFree  = iota
	lockHeld  // by a participant, which may be gone
	lockDirty // the same, after one before it died and what the lock guards was not said to be consistent since
	lockLost  // for ever: a dirty lock was unlocked without MarkConsistent. The word names the dead
	lockMask  = 3
)

// A lockWord says who holds a lock: identity 44 | seat 8 | 0 10 | state 2.
type lockWord uint64

func (w lockWord) state() uint64    { return uint64(w & lockMask) }
func (w lockWord) holder() lockWord { return w &^ lockMask }
func (w lockWord) pid() int         { return int(w >> idPIDShift) }
func (w lockWord) seat() int        { return int(w >> idSeatShift & (maxParticipants - 1)) }

// held reports whether a participant has the lock, which may be gone.
func (w lockWord) held() bool { return w.state() == lockHeld || w.state() == lockDirty }

// A Mutex is a lock that survives its holder. A participant holds it, not a goroutine; any
// goroutine of the participant may unlock it.
type Mutex struct{ *Sync }

// Lock waits until the lock is this participant's, or until ctx ends. A *PeerError with
// ErrOwnerDied means that the lock is held, and that its last holder died. The caller then repairs
// what the lock guards and calls MarkConsistent; an Unlock without it ends the lock for good. The
// error of a lock that has ended wraps ErrNotRecoverable, and the lock is not held.
func (m Mutex) Lock(ctx context.Context) error {
	if !m.over() && m.c.lock.CAS(lockFree, m.me|lockHeld) {
		return nil
	}
	return m.acquire(ctx, m.TryLock)
}

// TryLock is Lock that returns ErrLocked instead of waiting.
//
// Invariant (docs/memory.md, "Cells"): the word names its holder from the CAS that takes the lock
// on. So a lock never needs a reaper: a participant that wants it asks whether the holder is gone,
// and takes the lock by the same word.
func (m Mutex) TryLock() error {
	for {
		w := m.c.lock.Load()
		switch {
		case w == lockFree:
			if m.c.lock.CAS(lockFree, m.me|lockHeld) {
				return nil
			}
		case w.state() == lockLost:
			return bereaved(w, ErrNotRecoverable)
		case !m.d.holderGone(w):
			return ErrLocked
		case m.c.lock.CAS(w, m.me|lockDirty):
			m.c.dead.Store(uint64(w))
			return bereaved(w, ErrOwnerDied)
		}
	}
}

// Unlock gives the lock back. The error is ErrNotOwner if this participant does not hold it.
func (m Mutex) Unlock() error {
	if m.c.lock.CAS(m.me|lockHeld, lockFree) {
		if !disabled("unlock wakes") {
			m.waiting.rewake()
		}
		return nil
	}
	if !m.c.lock.CAS(m.me|lockDirty, lockWord(m.c.dead.Load())|lockLost) {
		return ErrNotOwner
	}
	m.d.wakeBits(&m.c.waiting)
	return nil
}

// MarkConsistent says that what the lock guards is all right after its holder died. The error is
// ErrNotOwner if this participant does not hold the lock of a dead one.
func (m Mutex) MarkConsistent() error {
	if !m.c.lock.CAS(m.me|lockDirty, m.me|lockHeld) {
		return ErrNotOwner
	}
	return nil
}

// Holder returns the process that holds the lock, or 0.
func (m Mutex) Holder() (pid int) {
	if w := m.c.lock.Load(); w.state() != lockLost {
		pid = w.pid()
	}
	return pid
}

// got reports whether the error of a Lock means that the lock is held.
func got(err error) bool { return err == nil || errors.Is(err, ErrOwnerDied) }

// withdraw undoes a Lock: the next holder finds the same death.
func (m Mutex) withdraw() {
	if !m.c.lock.CAS(m.me|lockHeld, lockFree) {
		m.c.lock.CAS(m.me|lockDirty, lockWord(m.c.dead.Load()))
	}
	m.waiting.rewake()
}

// orphaned reports whether the holder of the lock is gone.
func (s *Sync) orphaned() bool {
	w := s.c.lock.Load()
	return w != lockFree && w.state() != lockLost && s.d.holderGone(w)
}

// troubled reports whether a holder died and nobody has called MarkConsistent since.
func (m Mutex) troubled() bool { return m.c.lock.Load()&lockMask > lockHeld || m.orphaned() }

// lockReady reports whether a TryLock would not return ErrLocked.
func (s *Sync) lockReady() bool {
	w := s.c.lock.Load()
	return w == lockFree || w.state() == lockLost || s.orphaned() || s.over()
}

func (m Mutex) holds() bool {
	w := m.c.lock.Load()
	return w == m.me|lockHeld || w == m.me|lockDirty
}
