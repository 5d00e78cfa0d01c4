//go:build shoalcrash

package arena

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Autopsy looks for everything that a death may have left behind and returns one sentence for each
// thing found. The domain must be at rest: no operation is going on anywhere, and every death has
// been reaped.
func (d *Domain) Autopsy() []string {
	a := &auditor{d: d, transit: make(map[uint32]uint64)}
	a.participants()
	a.words()
	a.lanes()
	a.rings()
	a.states()
	a.extents()
	a.pages()
	a.hints()
	return a.found
}

// SeatFree reports whether participant seat s is free.
func (d *Domain) SeatFree(s int) bool { return d.parts[s].state.Load().is(participantFree) }

// Waiting reports whether somebody waits for the stamp on h's block to clear, or for that on the
// budget.
func (d *Domain) Waiting(h Handle) bool {
	return d.blocks[h.index()].w.Load()&waitBit != 0 || d.hdr.budget.Load()&budgetWait != 0
}

// Published returns how many messages stand FULL in the ring.
func (r *Ring) Published() (n int) {
	r.each(func(_ *slot, w slotWord) {
		if w.state() == slotFull {
			n++
		}
	})
	return n
}

// PunchIdle gives the pages of every idle block back, and sweeps the lists.
func (d *Domain) PunchIdle() {
	d.giveBack(1 << 50)
	d.sweep()
}

type auditor struct {
	d       *Domain
	living  [ownWords]uint64
	transit map[uint32]uint64 // references that messages hold, by block
	found   []string
}

func (a *auditor) say(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

func (a *auditor) participants() {
	for s := range a.d.parts {
		v := a.d.parts[s].state.Load()
		if v.is(participantFree) {
			continue
		}
		alive, err := a.d.store.alive(s)
		if s != a.d.seat && (err != nil || !alive || !v.is(participantLive)) {
			a.say("participant %d is in state %d, alive %v %v", s, v.state(), alive, err)
			continue
		}
		a.living[s/64] |= 1 << (s % 64)
	}
}

// only reports bits of others than the living.
func (a *auditor) only(bitmap *[ownWords]Word, what string, block uint32) {
	for i := range bitmap {
		if v := bitmap[i].Load() &^ a.living[i]; v != 0 {
			a.say("%s %d: bits %#x of word %d are nobody's", what, block, v, i)
		}
	}
}

func (a *auditor) words() {
	h := a.d.hdr
	if v := h.budget.Load(); v&(budgetStamp|budgetWait) != 0 {
		a.say("budget word %#x is stamped", v)
	}
	if v := h.recovery.Load(); v != 0 {
		a.say("recovery lock is held: %#x", v)
	}
	a.only(&h.spinners, "spinners", 0)
	a.only(&h.xowait, "xowait", 0)
	a.only(&h.memwait, "memwait", 0)
}

func (a *auditor) lanes() {
	for i := range a.d.hdr.lanes.Load() * lanesPerSeat {
		if v := a.d.recs[i].phase.Load(); v != phaseIdle {
			a.say("lane %d is in phase %d of block %d", i, v, a.d.recs[i].block.Load())
		}
	}
}

func (a *auditor) blocks(f func(uint32, *block, stateWord)) {
	for i := uint32(1); uint64(i) < a.d.count(); i++ {
		f(i, &a.d.blocks[i], a.d.blocks[i].w.Load())
	}
}

func (a *auditor) rings() {
	a.blocks(func(i uint32, b *block, w stateWord) {
		a.waiters(i, b, w)
		if w&allocBit == 0 || extKind(b.ext.Load()) != objectRing {
			return
		}
		if r, err := a.d.ringOf(b); err == nil {
			r.each(func(s *slot, w slotWord) { a.slot(i, s, w) })
		}
	})
}

// waiters looks for the dead among those who wait for a block.
func (a *auditor) waiters(i uint32, b *block, w stateWord) {
	if w&allocBit == 0 {
		return
	}
	switch extKind(b.ext.Load()) {
	case objectRing:
		if r, err := a.d.ringOf(b); err == nil {
			a.only(&r.hdr.notEmpty, "not empty of ring", i)
			a.only(&r.hdr.notFull, "not full of ring", i)
		}
	case objectSync:
		if c, err := a.d.cellOf(b); err == nil {
			a.only(&c.waiting, "waiting of cell", i)
			a.only(&c.watching, "watching of cell", i)
		}
	}
}

func (a *auditor) slot(ring uint32, s *slot, w slotWord) {
	switch w.state() {
	case slotEmpty, slotSkip:
	case slotFull, slotLeased:
		if seat := w.lane() / lanesPerSeat; w.state() == slotLeased && a.living[seat/64]>>(seat%64)&1 == 0 {
			a.say("ring %d has a message that is leased by lane %d, which is dead", ring, w.lane())
		}
		m := &Message{d: a.d}
		if err := m.read(s); err != nil {
			a.say("ring %d has an unreadable message: %v", ring, err)
			return
		}
		for _, i := range m.order {
			a.transit[i]++
		}
	default:
		a.say("ring %d has a slot in state %d of lane %d", ring, w.state(), w.lane())
	}
}

func (a *auditor) states() {
	a.blocks(func(i uint32, b *block, w stateWord) {
		if w&(xoMask|waitBit) != 0 {
			a.say("block %d is stamped: %#x", i, w)
		}
		a.only(&b.own, "owners of block", i)
		if t := w.transit(); t != a.transit[i] {
			a.say("block %d: %d messages carry it and it counts %d", i, a.transit[i], t)
		}
		switch mine := b.own[a.d.word].Load()&a.d.bit != 0; {
		case w&allocBit == 0 && b.owned():
			a.say("block %d is free and somebody holds it", i)
		case w&allocBit != 0 && !b.owned() && w.transit() == 0:
			a.say("block %d is nobody's and not free", i)
		case mine != a.d.held(i):
			a.say("block %d: our bit is %v and our count says %v", i, mine, a.d.held(i))
		}
	})
}

// extents looks for two blocks at one address.
func (a *auditor) extents() {
	type extent struct{ off, end, index uint64 }
	var all []extent
	a.blocks(func(i uint32, b *block, w stateWord) {
		e := b.ext.Load()
		if c := extClass(e); c != 0 {
			all = append(all, extent{extOffset(e), extOffset(e) + extentSize(c), uint64(i)})
		}
	})
	slices.SortFunc(all, func(x, y extent) int { return cmp.Compare(x.off, y.off) })
	for i := 1; i < len(all); i++ {
		if all[i].off < all[i-1].end {
			a.say("blocks %d and %d overlap", all[i-1].index, all[i].index)
		}
	}
}

func (a *auditor) pages() {
	charged, sum := a.d.hdr.budget.Load().pages()*pageSize, uint64(0)
	a.blocks(func(_ uint32, b *block, _ stateWord) { sum += b.committed.Load() })
	if charged != sum {
		a.say("%d bytes are charged and %d belong to blocks", charged, sum)
	}
	s, ok := a.d.store.(*memfds)
	if !ok {
		return
	}
	if n, err := sys.Allocated(s.dataFile); err != nil || uint64(n) != charged {
		a.say("%d bytes are charged and the kernel has %d: %v", charged, n, err)
	}
}

// hints looks for free blocks that no allocation of a living participant would find. Only our own
// magazines are known, so we must be the only participant.
func (a *auditor) hints() {
	if a.d.hdr.lost.Load() != hintsKept || a.living != a.d.own() {
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
			if steps++; steps > a.d.count() {
				a.say("free list %d runs in a circle", c)
				break
			}
			known[i] = true
		}
	}
	a.blocks(func(i uint32, b *block, w stateWord) {
		if w&allocBit == 0 && !known[i] {
			a.say("block %d of class %d is free and on no list", i, extClass(b.ext.Load()))
		}
	})
}

func (d *Domain) own() (bits [ownWords]uint64) {
	bits[d.word] = d.bit
	return bits
}

// MarkLost makes the next allocation that finds a list empty sweep.
func (d *Domain) MarkLost() { d.loseHints() }

// Parked reports whether another participant waits for a message, or for room.
func (r *Ring) Parked() bool {
	others := func(m *[ownWords]Word) bool {
		return m[0].Load()&^r.d.bit != 0
	}
	return others(&r.hdr.notEmpty) || others(&r.hdr.notFull)
}

// Parked reports whether another participant waits.
func (s *Sync) Parked() bool {
	return (s.c.waiting[0].Load()|s.c.watching[0].Load())&^s.d.bit != 0
}

// WaitsForMemory reports whether a participant waits for memory.
func (d *Domain) WaitsForMemory() bool { return !empty(&d.hdr.memwait) }

// Collected reports whether this process has collected garbage for all that ran out of budget.
func (d *Domain) Collected() bool {
	n := d.hdr.pressure.Load()
	return n != 0 && d.parts[d.seat].collected.Load() == n
}

// ParkedForMemory reports whether a goroutine of this process is parked until memory becomes free,
// everybody having collected.
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

// HideIdle takes every idle block from the lists and from this process's magazines: the next
// allocation anywhere makes a new one. The death that follows lets a sweep find them again.
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

// FillSeats makes every free seat that of a participant that is dead and was not reaped.
func (d *Domain) FillSeats() {
	for s := range d.parts {
		if v := d.parts[s].state.Load(); v.is(participantFree) {
			d.parts[s].state.Word.Store(uint64(v) | participantDead) // as no participant may
		}
	}
}

// HoldRecovery keeps the recovery lock until another participant waits for it, for so long at most,
// and reaps then. The function that it returns does the waiting.
func (d *Domain) HoldRecovery(most time.Duration) (wait func()) {
	d.lockRecovery()
	return func() {
		for end := time.Now().Add(most); d.hdr.recovery.Load()&recoveryWait == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		d.unlockRecovery()
		d.Reap() // what was left to us
	}
}

// StrayBits returns a sentence for each bitmap in which a participant waits that does not live.
// Others may be at work.
func (d *Domain) StrayBits() []string {
	a := &auditor{d: d, transit: make(map[uint32]uint64)}
	a.participants()
	a.only(&d.hdr.spinners, "spinners", 0)
	a.only(&d.hdr.xowait, "xowait", 0)
	a.only(&d.hdr.memwait, "memwait", 0)
	a.blocks(a.waiters)
	return a.found
}

// IdleHeaders returns how many blocks are free and have no bytes.
func (d *Domain) IdleHeaders() (n int) {
	(&auditor{d: d}).blocks(func(_ uint32, b *block, w stateWord) {
		if w&(allocBit|xoMask) == 0 && extClass(b.ext.Load()) == 0 {
			n++
		}
	})
	return n
}

// Form returns what the Sync is.
func (s *Sync) Form() Form { return Form(s.c.form.Load()) }

// Later reports whether goroutines of this process are still to end a get, or to uncharge bytes.
func (d *Domain) Later() bool { return d.unfinishedGets.Load() != 0 || d.debt.Load() != 0 }

// ForgiveDebt uncharges what a process has owed that was killed, at most so many bytes, and returns
// how many these were.
func (d *Domain) ForgiveDebt(most uint64) uint64 {
	sum := uint64(0)
	for i := uint32(1); uint64(i) < d.count(); i++ {
		sum += d.blocks[i].committed.Load()
	}
	owed := d.hdr.budget.Load().pages()*pageSize - sum
	l, err := d.enter()
	if owed == 0 || owed > most || err != nil {
		return 0
	}
	defer l.unlock()
	if l.takeFromBudget(briefly, l.id, owed) == nil {
		d.unstampBudget()
	}
	return owed
}

// References returns how many references this process has of a block.
func (d *Domain) References(h Handle) int { return int(d.refs.entry(h.index()).Load() &^ refLocked) }
