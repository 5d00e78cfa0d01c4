package arena

// The identity of a participant, in the upper bits of a word that says what it has. Its seat alone
// is not enough, since another participant may take it, and neither is its process number.
//
//	63    42 41    20 19              0
//	| pid  | epoch  | what it is about |
const (
	idPIDShift   = 42
	idEpochShift = 20
	idEpochMask  = 1<<22 - 1
	idMask       = 1<<64 - 1<<idEpochShift
	countMask    = 1<<idEpochShift - 1

	idSeatShift = 12      // in a lock word and in who is dead
	idUnborn    = 1 << 11 // in who is dead: it may never have had a seat
)

func (d *Domain) identity() uint64 { return identity(d.parts[d.seat].pid.Load(), uint64(d.epoch)) }

func identity(pid, epoch uint64) uint64 { return pid<<idPIDShift | epoch&idEpochMask<<idEpochShift }

// gone reports whether the participant of this identity has died, or has left, and a reaper has
// proof of it.
//
// Identity is process number and epoch. A seat that has a new participant has a new epoch, so the
// words of the old one still name a participant that is gone.
func (d *Domain) gone(seat int, id uint64) bool {
	v := d.parts[seat].state.Load()
	return !v.is(participantLive) && !v.is(participantJoining) ||
		(uint64(v.epoch())^id>>idEpochShift)&idEpochMask != 0
}

// holderGone reports whether the holder that a lock word names is gone.
func (d *Domain) holderGone(w lockWord) bool { return d.gone(w.seat(), uint64(w)) }

// unborn names a process that died before it was known by a seat.
func unborn(pid int) uint64 { return identity(uint64(pid), 0) | idUnborn }

// bereaved returns an error that names the dead participant, as in a lock word, and the cause.
func bereaved(w lockWord, cause error) error {
	if w&idUnborn != 0 {
		return &PeerError{PID: w.pid(), Seat: -1, Cause: cause}
	}
	return &PeerError{PID: w.pid(), Seat: w.seat(), Cause: cause}
}

// share adds one to this participant's share, and reports false where that is full. unshare takes
// one away and returns what is left, or -1 if there was nothing.
func (s *Sync) share() bool  { return s.more(&s.c.shares[s.d.seat]) }
func (s *Sync) unshare() int { return s.less(&s.c.shares[s.d.seat]) }

// more adds one to a count of this participant. The count begins anew where the word is of a
// participant that is gone.
//
// Only this participant changes its own word, besides those that find it gone (docs/memory.md,
// "Cells"). A word of another identity is of a dead participant in this seat, whose share counts as
// gone.
func (s *Sync) more(w *Word) bool {
	for {
		v := w.Load()
		n := v
		if v&idMask != s.id {
			n = s.id
		}
		if n&countMask == countMask {
			return false
		}
		if w.CAS(v, n+1) {
			return true
		}
	}
}

func (s *Sync) less(w *Word) int {
	for {
		v := w.Load()
		if v&idMask != s.id || v&countMask == 0 {
			return -1
		}
		if w.CAS(v, v-1) {
			return int(v&countMask) - 1
		}
	}
}

// sharesOfDead calls f for each participant that has a share and is gone, until f returns false.
func (s *Sync) sharesOfDead(f func(seat int, v uint64) bool) {
	for i := range s.seats() {
		if v := s.c.shares[i].Load(); v&countMask != 0 && s.d.gone(i, v) && !f(i, v) {
			return
		}
	}
}

// bereft reports whether a participant with a share is gone.
func (s *Sync) bereft() (found bool) {
	s.sharesOfDead(func(int, uint64) bool { found = true; return false })
	return found
}

// seats returns how many seats were ever taken.
func (s *Sync) seats() int { return int(min(s.d.hdr.lanes.Load(), maxParticipants)) }
