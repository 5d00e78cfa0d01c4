package arena

import "github.com/shoal-mp/shoal/internal/arena/word"

// identity returns the identity of this participant: its process number and the epoch of its
// seat, in the bits of word.IdentityMask.
func (d *Domain) identity() uint64 {
	return word.MakeIdentity(d.mem.Participants[d.seat].PID.Load(), uint64(d.epoch))
}

// isGone reports whether the participant with this identity has left the domain or is marked DEAD.
// A participant is marked DEAD only by itself, when it leaves, or by a process that found its proof
// of life free.
//
// The identity contains the epoch of the seat. A later participant in the same seat has another
// epoch, so words of an earlier one keep naming a participant that is gone.
func (d *Domain) isGone(seat int, id uint64) bool {
	v := d.mem.Participants[seat].State.Load()
	return !v.HasState(word.ParticipantLive) && !v.HasState(word.ParticipantJoining) ||
		(uint64(v.Epoch())^id>>word.EpochShift)&word.EpochMask != 0
}

// isHolderGone reports whether the participant named in a lock word is gone.
func (d *Domain) isHolderGone(w word.Lock) bool { return d.isGone(w.Seat(), uint64(w)) }

// unbornIdentity returns the value of a dead word for a process that may have died before it had a
// seat.
func unbornIdentity(pid int) uint64 { return word.MakeIdentity(uint64(pid), 0) | word.Unborn }

// newPeerError returns a *PeerError with the given cause for the participant named in w, the value
// of a lock word or of a dead word. Its Seat is -1 if the process may never have had one.
func newPeerError(w word.Lock, cause error) error {
	if w&word.Unborn != 0 {
		return &PeerError{PID: w.PID(), Seat: -1, Cause: cause}
	}
	return &PeerError{PID: w.PID(), Seat: w.Seat(), Cause: cause}
}

// addShare adds one to this participant's share. It reports false if the share has reached its
// maximum.
//
// dropShare subtracts one and returns the new share. It returns -1 if the share was 0 or belonged
// to an earlier participant in this seat.
func (s *Sync) addShare() bool { return s.incrementCount(&s.c.Shares[s.d.seat]) }
func (s *Sync) dropShare() int { return s.decrementCount(&s.c.Shares[s.d.seat]) }

// incrementCount adds one to a counter word of this participant and reports false if it has reached
// its maximum. If the word has the identity of an earlier participant in this seat, the count
// restarts from 0.
//
// Only the participant itself increments its word. Other participants change it only after they
// have found the participant dead (docs/memory.md, "Cells").
func (s *Sync) incrementCount(w *word.Word) bool {
	for {
		v := w.Load()
		n := v
		if v&word.IdentityMask != s.id {
			n = s.id
		}
		if n&word.CountMask == word.CountMask {
			return false
		}
		if w.CAS(v, n+1) {
			return true
		}
	}
}

// decrementCount subtracts one from a counter word of this participant and returns the new count.
// It returns -1 if the count was 0 or the word has another identity.
func (s *Sync) decrementCount(w *word.Word) int {
	for {
		v := w.Load()
		if v&word.IdentityMask != s.id || v&word.CountMask == 0 {
			return -1
		}
		if w.CAS(v, v-1) {
			return int(v&word.CountMask) - 1
		}
	}
}

// forEachDeadShare calls f with the seat and the share word of each participant that is gone and
// has a share, until f returns false.
func (s *Sync) forEachDeadShare(f func(seat int, v uint64) bool) {
	for i := range s.d.mem.CountSeats() {
		if v := s.c.Shares[i].Load(); v&word.CountMask != 0 && s.d.isGone(i, v) && !f(i, v) {
			return
		}
	}
}

// hasDeadShare reports whether a participant that is gone has a share.
func (s *Sync) hasDeadShare() (found bool) {
	s.forEachDeadShare(func(int, uint64) bool { found = true; return false })
	return found
}
