package shm

// wakeReaper tells the holder of the recovery lock of the new entry in the obituary: it looks there when it is done, or
// when it waits. In this process it is not rung, since the answer to that may be another Reap.
func (d *Domain) wakeReaper(holder int) {
	if holder == d.slot {
		d.park.rung()
	} else {
		d.ringSlot(holder)
	}
}

// lockRecovery takes the recovery lock, also from a holder that is proven dead.
func (d *Domain) lockRecovery() (holder int, ok bool) {
	me := uint64(d.epoch)<<32 | uint64(d.slot+1)
	for {
		v := d.hdr.recovery.Load()
		if v != 0 && !d.goneHolder(v) {
			return int(v&0xffffffff) - 1, false
		}
		if d.hdr.recovery.CAS(v, me) {
			return d.slot, true
		}
	}
}

// goneHolder reports whether the holder v of the recovery lock is dead, or has been reaped.
func (d *Domain) goneHolder(v uint64) bool {
	s := int(v&0xffffffff) - 1
	if s < 0 || s >= maxParticipants {
		return true
	}
	if s == d.slot {
		return uint32(v>>32) != d.epoch
	}
	if uint32(d.parts[s].state.Load()>>32) != uint32(v>>32) {
		return true
	}
	alive, err := d.store.alive(s)
	return err == nil && !alive
}

func (d *Domain) unlockRecovery() {
	d.hdr.recovery.CAS(uint64(d.epoch)<<32|uint64(d.slot+1), 0)
	d.ringBits(&d.hdr.xowait) // a leaver may wait for the lock
}
