package word

// States of a lock word. A free lock is the word 0.
const (
	LockFree = iota
	LockHeld // held; the holder may have died
	// LockDirty is held, and an earlier holder died. MarkConsistent has not been called since.
	LockDirty
	// LockLost is unusable for ever: a dirty lock was unlocked without MarkConsistent. The word
	// names the dead holder.
	LockLost
	LockMask = 3
)

// A Lock names the holder of a lock: identity 44 | seat 8 | 0 10 | state 2.
type Lock uint64

// State returns LockFree, LockHeld, LockDirty or LockLost.
func (w Lock) State() uint64 { return uint64(w & LockMask) }

func (w Lock) holderWord() Lock { return w &^ LockMask }

// PID returns the process ID in the word. It is 0 if the lock is free.
func (w Lock) PID() int { return int(w >> PIDShift) }

// Seat returns the seat of the participant in the word. It is 0 if the lock is free.
func (w Lock) Seat() int { return int(w >> SeatShift & (MaxParticipants - 1)) }

// IsHeld reports whether the word names a holder. The holder may have died.
func (w Lock) IsHeld() bool { return w.State() == LockHeld || w.State() == LockDirty }
