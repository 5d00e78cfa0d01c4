package model

// reap performs the next step in s of the reaper, which handles one dead actor after another. It
// returns false if there is none. A reaper that is killed leaves the actor to the next one,
// which repeats all of its steps.
func (c Lease) reap(s *leaseState) bool {
	switch leasePC(s.reaper) {
	case lsIdle:
		for i := range s.a {
			if p := &s.a[i]; p.is(killed) || p.is(marked) {
				p.life, s.reaped, s.reaper = marked, uint8(i), uint8(lsSlots)
				if c.Bug == LeaseReapCount {
					s.reaper = uint8(lsReapCount)
				}
				if c.Bug == LeaseSeat {
					p.life = reaped
				}
				return true
			}
		}
		return false
	case lsSlots:
		c.reapSlot(s, &s.slots[s.at])
		if s.at++; s.at == leaseSlots {
			s.at, s.reaper = 0, uint8(lsReapCount)
			if c.Bug == LeaseReapCount {
				s.reaper = uint8(lsGets)
			}
		}
	case lsReapCount:
		if s.leases && c.Bug != LeaseUncounted {
			s.count()
		}
		s.reaper = uint8(lsReapWake)
	case lsReapWake:
		s.asleep = 0
		if s.reaper = uint8(lsGets); c.Bug == LeaseReapCount {
			s.reaper = uint8(lsSlots)
		}
	case lsGets:
		if w := &s.slots[s.at]; w.status == leaseReading && w.by == s.reaped+1 && c.Bug != LeaseUndone {
			*w = leaseSlot{lap: w.lap + 1}
		}
		if s.at++; s.at == leaseSlots {
			s.at, s.reaper = 0, uint8(lsFree)
		}
	case lsFree: // all are woken, because the dead may have owed a wakeup
		s.asleep = 0
		if p := &s.a[s.reaped]; p.is(marked) {
			*p = leaseActor{process: process{reaped}}
		}
		s.reaper, s.reaped = 0, 0
	}
	return true
}

// reapSlot returns the message in slot w if the actor being reaped had leased it.
func (c Lease) reapSlot(s *leaseState, w *leaseSlot) {
	dead := w.by == s.reaped+1
	switch {
	case c.Bug == LeaseUndone && dead && w.status == leaseReading:
		w.status = leaseFull
	case w.status != leaseLeased || !dead && c.Bug != LeaseAll || c.Bug == LeaseForgotten:
	case c.Bug == LeaseDropped:
		*w = leaseSlot{lap: w.lap + 1}
	default:
		w.status = leaseFull
	}
}
