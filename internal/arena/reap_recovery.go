package arena

// wakeReaper tells the holder of the recovery lock of the new entry in the death epoch, at which
// the holder looks when it is done, or when it waits. A holder in this process is not woken, since
// a wakeup may begin another Reap.
func (d *Domain) wakeReaper(holder int) {
	if holder == d.seat {
		d.park.wakeup()
	} else {
		d.wakeSeat(holder)
	}
}

// The recovery word: epoch 32 | WAIT 1 | 0 15 | seat + 1 16. WAIT says that a participant that
// leaves waits for the lock.
const (
	recoverySeat = 1<<16 - 1
	recoveryWait = 1 << 31
)

func (d *Domain) reaperName() uint64 { return uint64(d.epoch)<<32 | uint64(d.seat+1) }

// lockRecovery takes the recovery lock, also from a holder that is proven dead.
//
// Invariant (docs/memory.md, "Notice"): the holder of this lock has a watcher, because others leave
// the dead to it. The word names seat and epoch, so a holder that was reaped, and whose seat
// another one has, is told from a living one.
func (d *Domain) lockRecovery() (holder int, ok bool) {
	for {
		v := d.hdr.recovery.Load()
		if v != 0 && !d.goneHolder(v) {
			return int(v&recoverySeat) - 1, false
		}
		if d.hdr.recovery.CAS(v, d.reaperName()|v&recoveryWait) {
			return d.seat, true
		}
	}
}

// goneHolder reports whether the holder v of the recovery lock is dead, or has been reaped.
func (d *Domain) goneHolder(v uint64) bool {
	s := int(v&recoverySeat) - 1
	if s < 0 || s >= maxParticipants {
		return true
	}
	if s == d.seat {
		return uint32(v>>32) != d.epoch
	}
	if uint32(d.parts[s].state.Load()>>32) != uint32(v>>32) {
		return true
	}
	alive, err := d.store.alive(s)
	return err == nil && !alive
}

// freeRecovery reports whether the recovery lock can be had, and asks to be woken when its holder
// lets go.
func (d *Domain) freeRecovery() bool {
	for {
		v := d.hdr.recovery.Load()
		if v == 0 || d.goneHolder(v) {
			return true
		}
		if v&recoveryWait != 0 || d.hdr.recovery.CAS(v, v|recoveryWait) {
			return false
		}
	}
}

// unlockRecovery gives the lock back. It wakes only participants that leave: a reaper that has
// found an obstacle would learn nothing.
//
// The CAS is from this participant's name: a lock that another one took, because this participant
// was proven dead, is not given back.
func (d *Domain) unlockRecovery() {
	for {
		v := d.hdr.recovery.Load()
		if v&^recoveryWait != d.reaperName() {
			return
		}
		if d.hdr.recovery.CAS(v, 0) {
			if v&recoveryWait != 0 {
				d.wakeBits(&d.hdr.xowait)
			}
			return
		}
	}
}
