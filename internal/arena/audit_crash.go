//go:build shoalcrash

package arena

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Autopsy searches the domain for everything that a death may have left behind, and returns one
// sentence for each finding. The domain must be at rest: no operation may be in progress in any
// process, and every death must have been reaped.
func (d *Domain) Autopsy() []string {
	a := &auditor{d: d, transit: make(map[uint32]uint64)}
	a.checkParticipants()
	a.checkHeader()
	a.checkLanes()
	a.checkRings()
	a.checkStates()
	a.checkExtents()
	a.checkPages()
	a.checkHints()
	return a.found
}

// SeatFree reports whether seat s is free.
func (d *Domain) SeatFree(s int) bool { return d.parts[s].state.Load().hasState(participantFree) }

// Waiting reports whether a participant waits for the stamp of h's block, or for the budget's
// stamp.
func (d *Domain) Waiting(h Handle) bool {
	return d.blocks[h.index()].w.Load()&waitBit != 0 || d.hdr.budget.Load()&budgetWait != 0
}

// Published returns the number of FULL slots in the ring.
func (r *Ring) Published() (n int) {
	r.forEachSlot(func(_ *slot, w slotWord) {
		if w.state() == slotFull {
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

// An auditor collects the findings of [Domain.Autopsy].
type auditor struct {
	d       *Domain
	living  [ownWords]uint64  // living participants as a bitmap
	transit map[uint32]uint64 // references held by messages, by block
	found   []string
}

// addFinding adds a finding.
func (a *auditor) addFinding(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// checkParticipants checks that every taken seat has a living participant, and fills a.living.
func (a *auditor) checkParticipants() {
	for s := range a.d.parts {
		v := a.d.parts[s].state.Load()
		if v.hasState(participantFree) {
			continue
		}
		alive, err := a.d.store.isAlive(s)
		if s != a.d.seat && (err != nil || !alive || !v.hasState(participantLive)) {
			a.addFinding("participant %d is in state %d, alive %v %v", s, v.state(), alive, err)
			continue
		}
		a.living[s/64] |= 1 << (s % 64)
	}
}

// checkLivingBits checks that a bitmap has bits of living participants only.
func (a *auditor) checkLivingBits(bitmap *[ownWords]Word, what string, block uint32) {
	for i := range bitmap {
		if v := bitmap[i].Load() &^ a.living[i]; v != 0 {
			a.addFinding("%s %d: bits %#x of word %d are nobody's", what, block, v, i)
		}
	}
}

// checkHeader checks the words and bitmaps of the header.
func (a *auditor) checkHeader() {
	h := a.d.hdr
	if v := h.budget.Load(); v&(budgetStamp|budgetWait) != 0 {
		a.addFinding("budget word %#x is stamped", v)
	}
	if v := h.recovery.Load(); v != 0 {
		a.addFinding("recovery lock is held: %#x", v)
	}
	a.checkLivingBits(&h.spinners, "spinners", 0)
	a.checkLivingBits(&h.xowait, "xowait", 0)
	a.checkLivingBits(&h.memwait, "memwait", 0)
}

// checkLanes checks that no lane record is in the middle of a commit.
func (a *auditor) checkLanes() {
	for i := range a.d.hdr.lanes.Load() * lanesPerSeat {
		if v := a.d.recs[i].phase.Load(); v != phaseIdle {
			a.addFinding("lane %d is in phase %d of block %d", i, v, a.d.recs[i].block.Load())
		}
	}
}

// forEachBlock calls f with each block.
func (a *auditor) forEachBlock(f func(uint32, *block, stateWord)) {
	for i := uint32(1); uint64(i) < a.d.blockCount(); i++ {
		f(i, &a.d.blocks[i], a.d.blocks[i].w.Load())
	}
}

// checkRings checks the waiters and slots of all rings and cells, and fills a.transit.
func (a *auditor) checkRings() {
	a.forEachBlock(func(i uint32, b *block, w stateWord) {
		a.checkWaiters(i, b, w)
		if w&allocBit == 0 || extKind(b.ext.Load()) != objectRing {
			return
		}
		if r, err := a.d.ringOf(b); err == nil {
			r.forEachSlot(func(s *slot, w slotWord) { a.checkSlot(i, s, w) })
		}
	})
}

// checkWaiters checks the bitmaps of waiters of block i, if it is a ring or a cell.
func (a *auditor) checkWaiters(i uint32, b *block, w stateWord) {
	if w&allocBit == 0 {
		return
	}
	switch extKind(b.ext.Load()) {
	case objectRing:
		if r, err := a.d.ringOf(b); err == nil {
			a.checkLivingBits(&r.hdr.notEmpty, "not empty of ring", i)
			a.checkLivingBits(&r.hdr.notFull, "not full of ring", i)
		}
	case objectSync:
		if c, err := a.d.cellOf(b); err == nil {
			a.checkLivingBits(&c.waiting, "waiting of cell", i)
			a.checkLivingBits(&c.watching, "watching of cell", i)
		}
	}
}

// checkSlot checks one slot of a ring, and counts the references of its message.
func (a *auditor) checkSlot(ring uint32, s *slot, w slotWord) {
	switch w.state() {
	case slotEmpty, slotSkip:
	case slotFull, slotLeased:
		if seat := w.lane() / lanesPerSeat; w.state() == slotLeased && a.living[seat/64]>>(seat%64)&1 == 0 {
			a.addFinding("ring %d has a message that is leased by lane %d, which is dead", ring, w.lane())
		}
		m := &Message{d: a.d}
		if err := m.readSlot(s); err != nil {
			a.addFinding("ring %d has an unreadable message: %v", ring, err)
			return
		}
		for _, i := range m.order {
			a.transit[i]++
		}
	default:
		a.addFinding("ring %d has a slot in state %d of lane %d", ring, w.state(), w.lane())
	}
}

// checkStates checks that every block has no stamp, the transit count of its messages, and living
// holders, and that this process's references agree with its bit.
func (a *auditor) checkStates() {
	a.forEachBlock(func(i uint32, b *block, w stateWord) {
		if w&(xoMask|waitBit) != 0 {
			a.addFinding("block %d is stamped: %#x", i, w)
		}
		a.checkLivingBits(&b.own, "owners of block", i)
		if t := w.transitCount(); t != a.transit[i] {
			a.addFinding("block %d: %d messages carry it and it counts %d", i, a.transit[i], t)
		}
		switch mine := b.own[a.d.word].Load()&a.d.bit != 0; {
		case w&allocBit == 0 && b.isOwned():
			a.addFinding("block %d is free and somebody holds it", i)
		case w&allocBit != 0 && !b.isOwned() && w.transitCount() == 0:
			a.addFinding("block %d is nobody's and not free", i)
		case mine != a.d.isHeld(i):
			a.addFinding("block %d: our bit is %v and our count says %v", i, mine, a.d.isHeld(i))
		}
	})
}

// checkExtents checks that no two blocks overlap.
func (a *auditor) checkExtents() {
	type extent struct{ off, end, index uint64 }
	var all []extent
	a.forEachBlock(func(i uint32, b *block, w stateWord) {
		e := b.ext.Load()
		if c := extClass(e); c != 0 {
			all = append(all, extent{extOffset(e), extOffset(e) + extentSize(c), uint64(i)})
		}
	})
	slices.SortFunc(all, func(x, y extent) int { return cmp.Compare(x.off, y.off) })
	for i := 1; i < len(all); i++ {
		if all[i].off < all[i-1].end {
			a.addFinding("blocks %d and %d overlap", all[i-1].index, all[i].index)
		}
	}
}

// checkPages checks that the charged bytes equal the committed bytes of all blocks, and the pages
// that the kernel has allocated.
func (a *auditor) checkPages() {
	charged, sum := a.d.hdr.budget.Load().pages()*pageSize, uint64(0)
	a.forEachBlock(func(_ uint32, b *block, _ stateWord) { sum += b.committed.Load() })
	if charged != sum {
		a.addFinding("%d bytes are charged and %d belong to blocks", charged, sum)
	}
	s, ok := a.d.store.(*memfds)
	if !ok {
		return
	}
	if n, err := sys.Allocated(s.dataFile); err != nil || uint64(n) != charged {
		a.addFinding("%d bytes are charged and the kernel has %d: %v", charged, n, err)
	}
}

// checkHints checks that an allocation can find every free block. It knows the magazines of this
// process only, so it checks nothing if there are other participants.
func (a *auditor) checkHints() {
	if a.d.hdr.lost.Load() != hintsKept || a.living != a.d.ownBits() {
		return
	}
	known := make(map[uint32]bool)
	for i := range a.d.lanes {
		mags := a.d.lanes[i].mags
		if mags == nil {
			continue
		}
		for _, m := range mags {
			for _, index := range m.index[:m.n] {
				known[index] = true
			}
		}
	}
	for c := range a.d.hdr.lists {
		steps := uint64(0)
		for i := uint32(a.d.hdr.lists[c].Load()); i != 0; i = uint32(a.d.blocks[i].next.Load()) {
			if steps++; steps > a.d.blockCount() {
				a.addFinding("free list %d runs in a circle", c)
				break
			}
			known[i] = true
		}
	}
	a.forEachBlock(func(i uint32, b *block, w stateWord) {
		if w&allocBit == 0 && !known[i] {
			a.addFinding("block %d of class %d is free and on no list", i, extClass(b.ext.Load()))
		}
	})
}

// ownBits returns a participant bitmap with this participant's bit.
func (d *Domain) ownBits() (bits [ownWords]uint64) {
	bits[d.word] = d.bit
	return bits
}

// MarkLost makes the next allocation that finds its list empty sweep.
func (d *Domain) MarkLost() { d.markHintsLost() }

// Parked reports whether another participant waits for a message or for room. It considers seats 0
// to 63 only.
func (r *Ring) Parked() bool {
	others := func(m *[ownWords]Word) bool {
		return m[0].Load()&^r.d.bit != 0
	}
	return others(&r.hdr.notEmpty) || others(&r.hdr.notFull)
}

// Parked reports whether another participant waits at the cell. It considers seats 0 to 63 only.
func (s *Sync) Parked() bool {
	return (s.c.waiting[0].Load()|s.c.watching[0].Load())&^s.d.bit != 0
}

// WaitsForMemory reports whether a participant waits for memory.
func (d *Domain) WaitsForMemory() bool { return !isEmptyBitmap(&d.hdr.memwait) }

// Collected reports whether this process has collected garbage for the latest participant that
// found the budget used up.
func (d *Domain) Collected() bool {
	n := d.hdr.pressure.Load()
	return n != 0 && d.parts[d.seat].collected.Load() == n
}

// ParkedForMemory reports whether a goroutine of this process is parked until memory becomes free,
// and all participants have collected garbage for it.
func (d *Domain) ParkedForMemory() bool {
	d.park.mu.Lock()
	queues := d.park.queues
	d.park.mu.Unlock()
	for _, l := range queues {
		if l.bits == &d.hdr.memwait && l.waiters.Load() != 0 {
			return d.allCollected(d.hdr.pressure.Load())
		}
	}
	return false
}

// Corrupt makes the oldest message unreadable.
func (r *Ring) Corrupt() { r.slot(r.hdr.head.Load()).meta.Store(^uint64(0)) }

// HideIdle removes every idle block from the free lists and from this process's magazines, so that
// the next allocation makes a new block. The sweep that follows a death finds them again.
func (d *Domain) HideIdle() {
	d.hdr.lost.Store(hintsKept)
	for c := range d.hdr.lists {
		d.hdr.lists[c].Store(headEpoch(d.hdr.lists[c].Load()) << 52)
	}
	for i := range d.lanes {
		d.lanes[i].mags = nil
		d.lanes[i].keeps.Store(0)
	}
}

// FillSeats makes every free seat DEAD, as if its participant had died and not been reaped.
func (d *Domain) FillSeats() {
	for s := range d.parts {
		if v := d.parts[s].state.Load(); v.hasState(participantFree) {
			// No participant may make this transition.
			d.parts[s].state.Word.Store(uint64(v) | participantDead)
		}
	}
}

// HoldRecovery takes the recovery lock. The caller must call wait, which waits until another
// participant waits for the lock, up to most, then releases it and reaps.
func (d *Domain) HoldRecovery(most time.Duration) (wait func()) {
	d.lockRecovery()
	return func() {
		for end := time.Now().Add(most); d.hdr.recovery.Load()&recoveryWait == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		d.unlockRecovery()
		d.Reap() // others have left their dead participants to this process
	}
}

// StrayBits returns a sentence for each bitmap in which a bit of a participant is set that is not
// alive. Unlike for [Domain.Autopsy], operations may be in progress.
func (d *Domain) StrayBits() []string {
	a := &auditor{d: d, transit: make(map[uint32]uint64)}
	a.checkParticipants()
	a.checkLivingBits(&d.hdr.spinners, "spinners", 0)
	a.checkLivingBits(&d.hdr.xowait, "xowait", 0)
	a.checkLivingBits(&d.hdr.memwait, "memwait", 0)
	a.forEachBlock(a.checkWaiters)
	return a.found
}

// IdleHeaders returns the number of free blocks without bytes.
func (d *Domain) IdleHeaders() (n int) {
	(&auditor{d: d}).forEachBlock(func(_ uint32, b *block, w stateWord) {
		if w&(allocBit|xoMask) == 0 && extClass(b.ext.Load()) == 0 {
			n++
		}
	})
	return n
}

// Form returns the form of the Sync.
func (s *Sync) Form() Form { return Form(s.c.form.Load()) }

// Later reports whether a goroutine of this process still has to end a get or to uncharge bytes.
func (d *Domain) Later() bool { return d.unfinishedGets.Load() != 0 || d.debt.Load() != 0 }

// ForgiveDebt uncharges the bytes that a killed process had still to uncharge, and returns their
// number. It does nothing if there are more than most. No commit may be in progress.
func (d *Domain) ForgiveDebt(most uint64) uint64 {
	sum := uint64(0)
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		sum += d.blocks[i].committed.Load()
	}
	owed := d.hdr.budget.Load().pages()*pageSize - sum
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
func (d *Domain) References(h Handle) int { return int(d.refs.entry(h.index()).Load() &^ refLocked) }
