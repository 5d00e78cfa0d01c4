//go:build shoalcrash

package arena

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena/audit"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Autopsy searches the domain for everything that a death may have left behind, and returns one
// sentence for each finding. The domain must be at rest: no operation may be in progress in any
// process, and every death must have been reaped.
func (d *Domain) Autopsy() (found []string) {
	for _, v := range audit.Inspect(participantSource{d}, d.auditSelf()) {
		found = append(found, v.String())
	}
	return found
}

// auditSelf describes this participant to an auditor.
func (d *Domain) auditSelf() *audit.Self {
	self := &audit.Self{Seat: d.seat, IsHeld: d.isHeld, Kept: d.keptBlocks}
	if s, ok := d.store.(*memfds); ok {
		self.Allocated = func() (int64, error) { return sys.Allocated(s.dataFile) }
	}
	return self
}

// keptBlocks returns the blocks in the magazines of this process.
func (d *Domain) keptBlocks() (all []uint32) {
	for i := range d.lanes {
		if d.lanes[i].mags == nil {
			continue
		}
		for _, m := range d.lanes[i].mags {
			all = append(all, m.index[:m.n]...)
		}
	}
	return all
}

// SeatFree reports whether seat s is free.
func (d *Domain) SeatFree(s int) bool {
	return d.mem.Participants[s].State.Load().HasState(word.ParticipantFree)
}

// Waiting reports whether a participant waits for the stamp of h's block, or for the budget's
// stamp.
func (d *Domain) Waiting(h Handle) bool {
	return d.mem.Blocks[h.Block()].State.Load()&word.WaitBit != 0 || d.mem.Header.Budget.Load()&word.BudgetWait != 0
}

// Published returns the number of FULL slots in the ring.
func (r *Ring) Published() (n int) {
	r.forEachSlot(func(_ *layout.Slot, w word.Slot) {
		if w.State() == word.SlotFull {
			n++
		}
	})
	return n
}

// PunchIdle returns the pages of every idle block to the kernel, and sweeps the free lists.
func (d *Domain) PunchIdle() {
	d.punchIdleBlocks(1 << 50)
	d.sweepFree()
}

// MarkLost makes the next allocation that finds its free list empty sweep all blocks for free
// ones.
func (d *Domain) MarkLost() { d.markHintsLost() }

// Parked reports whether another participant waits for a message or for room. It considers seats 0
// to 63 only.
func (r *Ring) Parked() bool {
	others := func(m *layout.Bitmap) bool {
		return m[0].Load()&^r.d.bit != 0
	}
	return others(&r.hdr.NotEmpty) || others(&r.hdr.NotFull)
}

// Parked reports whether another participant waits at the cell. It considers seats 0 to 63 only.
func (s *Sync) Parked() bool {
	return (s.c.Waiting[0].Load()|s.c.Watching[0].Load())&^s.d.bit != 0
}

// WaitsForMemory reports whether a participant waits for memory.
func (d *Domain) WaitsForMemory() bool { return !d.mem.Header.MemWait.IsEmpty() }

// Collected reports whether this process has collected garbage for the latest participant that
// found the budget used up.
func (d *Domain) Collected() bool {
	n := d.mem.Header.Pressure.Load()
	return n != 0 && d.mem.Participants[d.seat].Collected.Load() == n
}

// ParkedForMemory reports whether a goroutine of this process is parked until memory becomes free,
// and all participants have collected garbage for it.
func (d *Domain) ParkedForMemory() bool {
	for _, l := range d.park.QueuesOf(d.park.TopicOf(&d.mem.Header.MemWait), nil) {
		if l.Waiters() != 0 {
			return d.allCollected(d.mem.Header.Pressure.Load())
		}
	}
	return false
}

// Corrupt overwrites the header of the oldest message, so that the get that takes it returns
// [ErrCorrupt].
func (r *Ring) Corrupt() { r.slot(r.hdr.Head.Load()).Meta.Store(^uint64(0)) }

// HideIdle removes every idle block from the free lists and from this process's magazines, so that
// the next allocation makes a new block. The sweep that follows a death finds them again.
func (d *Domain) HideIdle() {
	d.mem.Header.Lost.Store(layout.HintsKept)
	for c := range d.mem.Header.Lists {
		d.mem.Header.Lists[c].Store(headEpoch(d.mem.Header.Lists[c].Load()) << 52)
	}
	for i := range d.lanes {
		d.lanes[i].mags = nil
		d.lanes[i].keeps.Store(0)
	}
}

// FillSeats makes every free seat DEAD, as if its participant had died and not been reaped.
func (d *Domain) FillSeats() {
	for s := range d.mem.Participants {
		if v := d.mem.Participants[s].State.Load(); v.HasState(word.ParticipantFree) {
			// No participant may make this transition.
			d.mem.Participants[s].State.Word.Store(uint64(v) | word.ParticipantDead)
		}
	}
}

// HoldRecovery takes the recovery lock. The caller must call wait, which waits until another
// participant waits for the lock, up to most, then releases it and reaps.
func (d *Domain) HoldRecovery(most time.Duration) (wait func()) {
	d.lockRecovery()
	return func() {
		lock := &d.mem.Header.Recovery
		for end := time.Now().Add(most); lock.Load()&layout.RecoveryWait == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		d.unlockRecovery()
		d.Reap() // others have left their dead participants to this process
	}
}

// StrayBits returns a sentence for each bitmap in which a bit of a participant is set that is not
// alive. Unlike for [Domain.Autopsy], operations may be in progress.
func (d *Domain) StrayBits() (found []string) {
	for _, v := range audit.InspectBitmaps(participantSource{d}, d.auditSelf()) {
		found = append(found, v.String())
	}
	return found
}

// IdleHeaders returns the number of free blocks without bytes.
func (d *Domain) IdleHeaders() (n int) {
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		b := &d.mem.Blocks[i]
		if b.State.Load()&(word.AllocBit|word.StampMask) == 0 && layout.ExtentClass(b.Extent.Load()) == 0 {
			n++
		}
	}
	return n
}

// Form returns the form of the Sync.
func (s *Sync) Form() Form { return Form(s.c.Form.Load()) }

// Later reports whether a goroutine of this process still has to end a get or to uncharge bytes.
func (d *Domain) Later() bool { return d.unfinishedGets.Load() != 0 || d.debt.Load() != 0 }

// ForgiveDebt uncharges the bytes that a killed process had still to uncharge, and returns their
// number. If there are more than most, it does nothing and returns 0. No commit may be in
// progress.
func (d *Domain) ForgiveDebt(most uint64) uint64 {
	sum := uint64(0)
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		sum += d.mem.Blocks[i].Committed.Load()
	}
	owed := d.mem.Header.Budget.Load().Pages()*layout.PageSize - sum
	l, err := d.acquireLane()
	if owed == 0 || owed > most || err != nil {
		return 0
	}
	defer l.unlock()
	if l.subtractBudget(briefly, l.id, owed) == nil {
		d.clearBudgetStamp()
	}
	return owed
}

// References returns the number of references of h's block that this process has.
func (d *Domain) References(h Handle) int { return int(d.refs.entry(h.Block()).Load() &^ refLocked) }
