package shm

import (
	"context"
	"fmt"
	"math/bits"
)

// Reap takes back what participants that are proven dead have held, and returns how many it finished. Any process
// may call it at any time; a participant calls it by itself when it learns of a death. docs/memory.md has the steps.
func (d *Domain) Reap() (int, error) {
	if crashing && reaperHeld() {
		return 0, nil
	}
	d.hdr.obituary.Add(1)
	total := 0
	for {
		seen := d.hdr.obituary.Load()
		if holder, ok := d.lockRecovery(); !ok {
			d.wakeReaper(holder)
			return total, nil
		}
		n, err := d.reapDead()
		d.unlockRecovery()
		total += n
		if err != nil || d.hdr.obituary.Load() == seen {
			return total, err
		}
	}
}

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

// reapDead runs under the recovery lock.
func (d *Domain) reapDead() (int, error) {
	dead, n, err := d.findDead()
	if n == 0 || err != nil {
		return 0, err
	}
	l := &d.lanes[reaperLane]
	if !l.tryLock() { // Close has it, and waits for the recovery lock
		return 0, ErrClosed
	}
	defer l.unlock()
	n, err = d.reap(l, dead)
	d.hdr.reaped.Add(uint64(n))
	return n, err
}

// deadSet says which participants are being reaped.
type deadSet [maxParticipants]bool

func (s *deadSet) lane(id uint32) bool { return s[id/lanesPerSlot] }

func (s *deadSet) word(i int) (bits uint64) {
	for j := range 64 {
		if s[i*64+j] {
			bits |= 1 << j
		}
	}
	return bits
}

// findDead marks every participant DEAD whose proof of life is gone.
func (d *Domain) findDead() (*deadSet, int, error) {
	var dead deadSet
	n := 0
	for s := range d.parts {
		p := &d.parts[s]
		v := p.state.Load()
		if v&0xff == slotFree || s == d.slot {
			continue
		}
		alive, err := d.store.alive(s)
		if err != nil {
			return nil, 0, fmt.Errorf("ask whether participant %d lives: %w", s, err)
		}
		if alive {
			continue
		}
		if v&0xff != slotDead {
			p.state.CAS(v, v&^0xff|slotDead)
		}
		dead[s] = true
		n++
	}
	return &dead, n, nil
}

// Unreaped reports whether somebody has died of whom not everything was taken back yet, because another process is at it or has to wait.
func (d *Domain) Unreaped() (bool, error) {
	if d.closed.Load() {
		return false, ErrClosed
	}
	for s := range d.parts {
		v := d.parts[s].state.Load() & 0xff
		if v == slotFree || s == d.slot {
			continue
		}
		if alive, err := d.store.alive(s); err != nil || !alive {
			return true, err
		}
	}
	return false, nil
}

// depart reaps this process itself, in whose lanes nothing goes on any more.
func (d *Domain) depart() error {
	l := &d.lanes[reaperLane]
	l.lock()
	defer l.unlock()
	p := &d.parts[d.slot]
	v := p.state.Load()
	p.state.CAS(v, v&^0xff|slotDead)
	var dead deadSet
	dead[d.slot] = true
	for {
		if _, ok := d.lockRecovery(); ok {
			break
		}
		d.park.await(context.Background(), d, &d.hdr.xowait, func() bool {
			v := d.hdr.recovery.Load()
			return v == 0 || d.goneHolder(v)
		}, nil)
	}
	defer d.unlockRecovery()
	_, err := d.reap(l, &dead)
	return err
}

// reap is one pass of the reaper over the dead, in lane l. Every step may be repeated by another reaper after this
// one died in it.
func (d *Domain) reap(l *lane, dead *deadSet) (int, error) {
	l.reaping = dead
	defer func() { l.reaping = nil }()
	r := newReaper(d, l, dead)
	d.unfinished.Store(true) // before we ask to be rung
	if !r.operations() {
		return 0, nil // a living lane is in the way; its end rings us
	}
	d.unfinished.Store(false)
	r.resign()
	r.waiters()
	r.owners()
	return r.bury(), nil
}

// reapStamps ends what the newly dead were in the middle of, for a reaper in lane l that has to wait for one of them.
// Those that it is reaping already it must leave alone: it is in the middle of one of their operations, which would
// be done twice.
func (d *Domain) reapStamps(l *lane) obstacle {
	dead, _, err := d.findDead()
	if err != nil {
		return obstacle{}
	}
	all := *l.reaping
	n := 0
	for s := range dead {
		if dead[s] = dead[s] && !all[s]; dead[s] {
			all[s] = true
			n++
		}
	}
	if n == 0 {
		return obstacle{}
	}
	defer func(old *deadSet) { l.reaping = old }(l.reaping)
	l.reaping = &all
	r := newReaper(d, l, dead)
	r.operations()
	return r.stuck
}

// An obstacle is a stamp that has to go before a reaper can go on.
type obstacle struct {
	b     *block
	stamp uint64
}

func (o obstacle) gone() bool { return o.b != nil && o.b.w.Load()&xoMask != o.stamp }

func newReaper(d *Domain, l *lane, dead *deadSet) *reaper {
	r := &reaper{d: d, l: l, dead: dead, published: make(map[uint32]bool)}
	for i := range r.bits {
		r.bits[i] = dead.word(i)
	}
	return r
}

// operations ends or undoes every operation of the dead. It waits for nobody: it reports false if a living lane
// stands in the way of one.
func (r *reaper) operations() bool {
	r.budget()
	r.rings()
	r.stamps()
	pending := r.readers()
	r.strayGets(pending)
	return len(pending) == 0
}

type reaper struct {
	d         *Domain
	l         *lane
	dead      *deadSet
	bits      [ownWords]uint64 // the dead as a participant bitmap
	published map[uint32]bool  // dead lanes whose newest put stands in a slot
	views     []*Ring          // rings that the dead hold
	cells     []*cell          // and what they synchronise by
	stuck     obstacle         // a living lane's stamp that is in the way
}

// budget ends a dead lane's change of the budget: its stamp says that the pages were added or taken.
func (r *reaper) budget() {
	w := r.d.hdr.budget.Load()
	if w&budgetStamp == 0 || !r.dead.lane(uint32(w&budgetLaneMask)) {
		return
	}
	phase, branch := uint64(phaseIdle), "budget sub"
	if w>>budgetKindShift&3 == budgetAdd {
		phase, branch = phaseCharged, "budget add"
	}
	if !disabled(branch) {
		r.d.recs[w&budgetLaneMask].phase.Store(phase)
	}
	r.d.unstampBudget()
}

// rings turns slots that the dead were writing into holes, and notes which of their puts were published. Only rings
// that one of the dead holds can have such slots, also while it finalises one; and those cannot be freed while we
// look, as others can.
func (r *reaper) rings() {
	for i := uint32(1); uint64(i) < r.d.hdr.blocks.Load(); i++ {
		b := &r.d.blocks[i]
		if !r.heldByDead(b) || !r.stays(b) {
			continue
		}
		switch extKind(b.ext.Load()) {
		case objectRing:
		case objectSync:
			if c, err := r.d.cellOf(b); err == nil {
				r.cells = append(r.cells, c)
			}
			continue
		default:
			continue
		}
		if v, err := r.d.ringOf(b); err == nil {
			r.views = append(r.views, v)
			v.each(r.slot)
		}
	}
}

// stays reports whether b will not be freed: the bit of a dead one that looked at the ring in endGone may have come too
// late to keep it.
func (r *reaper) stays(b *block) bool {
	w := b.w.Load()
	return stampKind(w) == kindFree && r.l.reaping.lane(stampLane(w)) || r.l.stays(b)
}

func (r *reaper) heldByDead(b *block) bool {
	for i := range b.own {
		if b.own[i].Load()&r.bits[i] != 0 {
			return true
		}
	}
	return false
}

func (r *Ring) each(f func(*slot, uint64)) {
	for i := uint64(0); i < r.cap && r.backed(i); i++ {
		s := r.slot(i)
		f(s, s.word.Load())
	}
}

func (r *reaper) slot(s *slot, w uint64) {
	switch slotState(w) {
	case slotWriting:
		if r.dead.lane(slotLane(w)) && !disabled("writing") {
			s.word.CAS(w, slotWord(slotLap(w), slotSkip, 0))
		}
	case slotFull, slotReading:
		id, opseq := uint32(s.meta.Load()>>32), s.opseq.Load()
		if s.word.Load() != w && slotLap(s.word.Load()) != slotLap(w) {
			return // another message by now: lane and number may be of different ones
		}
		if id < maxLanes && r.dead.lane(id) && opseq == r.d.recs[id].opseq.Load() && !disabled("published") {
			r.published[id] = true
		}
	}
}

// stamps ends or undoes what the dead were in the middle of on each block, except gets, which readers ends.
func (r *reaper) stamps() {
	for i := uint32(1); uint64(i) < r.d.hdr.blocks.Load(); i++ {
		b := &r.d.blocks[i]
		w := b.w.Load()
		id := stampLane(w)
		if stampKind(w) == kindNone || !r.dead.lane(id) {
			continue
		}
		switch stampKind(w) {
		case kindAlloc, kindGrow, kindPunch:
			r.finishCommit(b, i, id)
			r.d.unstamp(b)
		case kindPut:
			r.finishPut(b, id)
		case kindFree:
			if !disabled("free") {
				r.d.unstamp(b)
			}
		}
	}
}

func (r *reaper) finishPut(b *block, id uint32) {
	switch {
	case r.published[id] && !disabled("put published"):
		r.d.endPut(b, id)
	case !r.published[id] && !disabled("put undone"):
		r.d.change(b, 0, ^uint64(tOne)+1)
	}
}

// finishCommit ends or undoes a dead lane's commit of block i.
func (r *reaper) finishCommit(b *block, i, id uint32) {
	rec := &r.d.recs[id]
	if rec.block.Load() != uint64(i) {
		return
	}
	done := b.committed.Load() == rec.target.Load()
	switch phase := rec.phase.Load(); {
	case phase == phaseCharged && done && !disabled("commit done"):
		rec.phase.Store(phaseIdle)
	case phase == phaseCharged && !done && !disabled("commit undo"):
		r.l.refund(b, id)
	case phase == phaseShrink && !disabled("shrink"):
		r.l.finishShrink(b, id)
	}
}

// readers ends the gets of the dead: the message is dropped, never delivered twice. It returns the lanes for which it
// has to come back, because a living lane stands in the way. A message that waits for another dead reader's comes
// round again.
func (r *reaper) readers() map[uint32]bool {
	for {
		pending, progress := make(map[uint32]bool), false
		for _, v := range r.views {
			v.each(func(s *slot, w uint64) {
				if slotState(w) != slotReading || !r.dead.lane(slotLane(w)) || disabled("reader") {
					return
				}
				if r.finishGet(s, w) {
					progress = true
				} else {
					pending[slotLane(w)] = true
				}
			})
		}
		if len(pending) == 0 || !progress {
			return pending
		}
	}
}

// finishGet takes the references of a message in the name of the dead reader, whose bits go later.
func (r *reaper) finishGet(s *slot, w uint64) bool {
	id := slotLane(w)
	mine := stamp(id, kindGet)
	m := &Message{d: r.d}
	if err := m.readAgain(s); err != nil {
		s.word.Store(slotWord(slotLap(w)+1, slotEmpty, 0))
		return true
	}
	for _, i := range m.order {
		b := &r.d.blocks[i]
		for {
			bw := b.w.Load()
			if bw&xoMask == mine {
				break
			}
			if bw&xoMask != 0 {
				if r.waitFor(b, bw) {
					return false
				}
				continue
			}
			if b.w.CAS(bw, bw-tOne|mine) {
				break
			}
		}
	}
	r.d.hdr.dropped.Add(1)
	s.word.Store(slotWord(slotLap(w)+1, slotEmpty, 0))
	for _, i := range m.order {
		r.d.unstamp(&r.d.blocks[i])
	}
	return true
}

// waitFor asks to be rung when the stamp in w clears, and reports false if it has cleared already.
func (r *reaper) waitFor(b *block, w uint64) bool {
	r.d.setBit(&r.d.hdr.xowait)
	if w&waitBit == 0 && !b.w.CAS(w, w|waitBit) {
		return false
	}
	r.stuck = obstacle{b, w & xoMask}
	return true
}

// strayGets clears the stamps of gets whose slot has been given back already.
func (r *reaper) strayGets(pending map[uint32]bool) {
	for i := uint32(1); uint64(i) < r.d.hdr.blocks.Load(); i++ {
		b := &r.d.blocks[i]
		if w := b.w.Load(); stampKind(w) == kindGet && r.dead.lane(stampLane(w)) && !pending[stampLane(w)] && !disabled("stray get") {
			r.d.unstamp(b)
		}
	}
}

// resign takes this participant, which leaves in order, from the members of barriers in which it does not wait: only
// a death breaks them.
func (r *reaper) resign() {
	s := r.d.slot
	for _, c := range r.cells {
		if !r.dead[s] || Form(c.form.Load()) != FormBarrier { // other cells are smaller
			continue
		}
		if v := c.tickets[s].Load(); v&countMask == 0 || v&idMask != r.d.identity() {
			c.shares[s].Store(0)
		}
	}
}

// waiters takes the dead from those who wait, while their bits still keep what they wait for from being freed.
func (r *reaper) waiters() {
	if disabled("waiter bits") {
		return
	}
	for _, v := range r.views {
		for i := range v.hdr.notEmpty {
			v.hdr.notEmpty[i].AndNot(r.bits[i])
			v.hdr.notFull[i].AndNot(r.bits[i])
		}
	}
	for _, c := range r.cells {
		if disabled("cell waiter bits") {
			break
		}
		for i := range c.waiting {
			c.waiting[i].AndNot(r.bits[i])
			c.watching[i].AndNot(r.bits[i])
		}
	}
}

// owners takes the dead from every block's holders and frees what nobody holds.
func (r *reaper) owners() {
	for i := uint32(1); uint64(i) < r.d.hdr.blocks.Load(); i++ {
		b := &r.d.blocks[i]
		for j, dead := range r.bits {
			if held := b.own[j].Load() & dead; held != 0 && !disabled("owner bits") {
				r.blame(b, j*64+bits.TrailingZeros64(held))
				b.own[j].AndNot(dead)
			}
		}
		if !disabled("try free") {
			r.l.tryFree(i)
		}
	}
}

// blame writes into a ring with whom its last sender or receiver goes, before the bit goes that says so. Who leaves in
// order is not blamed.
func (r *reaper) blame(b *block, slot int) {
	kind := extKind(b.ext.Load())
	if kind != objectSenders && kind != objectReceivers || slot == r.d.slot || transit(b.w.Load()) != 0 || r.heldByLiving(b) {
		return
	}
	p := &r.d.parts[slot]
	who := identity(p.pid.Load(), p.state.Load()>>32) | uint64(slot)<<idSlotShift
	r.l.withRing(b, func(hdr *ring) { hdr.dead[kind-objectSenders].Store(who) })
}

func (r *reaper) heldByLiving(b *block) bool {
	for i := range b.own {
		if b.own[i].Load()&^r.bits[i] != 0 {
			return true
		}
	}
	return false
}

// bury makes the slots of the dead free again and wakes everybody: a ring that the dead owed is rung now.
func (r *reaper) bury() int {
	d, n := r.d, 0
	for i := range d.hdr.spinners {
		if disabled("spinner bits") {
			break
		}
		d.hdr.spinners[i].AndNot(r.bits[i])
		d.hdr.xowait[i].AndNot(r.bits[i])
		d.hdr.memwait[i].AndNot(r.bits[i])
	}
	if !disabled("lost hints") {
		d.hdr.lost.Store(1)
	}
	if !disabled("relief") {
		d.relieve() // one of the dead may have freed a block and told nobody
	}
	// Before the slots are free: a reaper that dies in between leaves them to the next one, which rings.
	if !disabled("ring all") {
		d.ringAll()
		d.park.rung()
	}
	for s := range r.dead {
		if !r.dead[s] {
			continue
		}
		p := &d.parts[s]
		if v := p.state.Load(); v&0xff == slotDead && !disabled("bury") {
			p.state.CAS(v, v&^0xff+1<<32)
			n++
		}
	}
	return n
}
