package arena

import (
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// wakeReaper tells the holder of the recovery lock that the death epoch has changed. The holder
// reads the epoch when it finishes or waits. If the holder is this process, only its wait queues
// are woken, because a full wakeup could start another Reap.
func (d *Domain) wakeReaper(holder int) {
	if holder == d.seat {
		d.park.HandleWakeup()
	} else {
		d.park.WakeSeat(holder, park.AllTopics)
	}
}

// recoveryHolderWord returns the value, without WAIT, that the recovery word has while this
// participant holds the lock.
func (d *Domain) recoveryHolderWord() uint64 { return uint64(d.epoch)<<32 | uint64(d.seat+1) }

// lockRecovery takes the recovery lock, if it is free or its holder is proven dead, and reports
// in ok whether it did. It does not wait. If ok is false, holder is the seat of the holder;
// otherwise the caller must call unlockRecovery.
//
// Invariant (docs/memory.md, "Notice"): only a watched participant may hold this lock, because
// others leave their dead participants to the holder. The word contains seat and epoch, so that
// a holder that was reaped differs from the next participant in its seat.
func (d *Domain) lockRecovery() (holder int, ok bool) {
	for {
		v := d.mem.Header.Recovery.Load()
		if v != 0 && !d.isReaperGone(v) {
			return int(v&layout.RecoverySeat) - 1, false
		}
		if d.mem.Header.Recovery.CAS(v, d.recoveryHolderWord()|v&layout.RecoveryWait) {
			return d.seat, true
		}
	}
}

// isReaperGone reports whether the holder named in recovery word v is dead or has been reaped.
// It also returns true if v names no valid seat.
func (d *Domain) isReaperGone(v uint64) bool {
	s := int(v&layout.RecoverySeat) - 1
	if s < 0 || s >= word.MaxParticipants {
		return true
	}
	if s == d.seat {
		return uint32(v>>32) != d.epoch
	}
	if uint32(d.mem.Participants[s].State.Load()>>32) != uint32(v>>32) {
		return true
	}
	alive, err := d.store.isAlive(s)
	return err == nil && !alive
}

// isRecoveryFree reports whether the recovery lock can be taken. If not, it sets WAIT, so that the
// holder wakes the participants in xowait when it releases the lock. To be woken, the caller must
// have set its bit in xowait before.
func (d *Domain) isRecoveryFree() bool {
	for {
		v := d.mem.Header.Recovery.Load()
		if v == 0 || d.isReaperGone(v) {
			return true
		}
		if v&layout.RecoveryWait != 0 || d.mem.Header.Recovery.CAS(v, v|layout.RecoveryWait) {
			return false
		}
	}
}

// unlockRecovery releases the recovery lock. It wakes only participants that wait in order to
// leave: a reaper that met an obstacle would find the same obstacle again.
//
// If another participant has taken the lock over, because this one was proven dead, unlockRecovery
// does nothing.
func (d *Domain) unlockRecovery() {
	for {
		v := d.mem.Header.Recovery.Load()
		if v&^layout.RecoveryWait != d.recoveryHolderWord() {
			return
		}
		if d.mem.Header.Recovery.CAS(v, 0) {
			if v&layout.RecoveryWait != 0 {
				d.park.WakeBits(&d.mem.Header.XOWait)
			}
			return
		}
	}
}
