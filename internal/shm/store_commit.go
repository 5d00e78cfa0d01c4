package shm

import (
	"fmt"
)

// The budget word: pages 40 | 0 7 | WAIT 1 | kind 2 | lane 14. A change of the pages stamps the
// word with the lane that does it, as changes of t do in a block's state word; docs/memory.md has
// the order of the steps and what a reaper makes of each.
const (
	budgetPageShift = 24
	budgetLaneMask  = 1<<14 - 1
	budgetKindShift = 14
	budgetStamp     = 1<<16 - 1
	budgetWait      = 1 << 16
	budgetAdd       = 1
	budgetSub       = 2
)

// Phases of a lane's commit.
const (
	phaseIdle    = 0
	phaseCharged = 1 // pages are charged, and not yet the block's
	phaseShrink  = 2 // pages of the block are being given back, still charged
)

// grow commits the block's pages up to target bytes. The caller's stamp, ALLOC or GROW, stands on
// the block.
func (l *lane) grow(b *block, target uint64) error {
	from := b.committed.Load()
	if target <= from {
		return nil
	}
	l.rec.block.Set(uint64(l.d.indexOf(b)))
	l.rec.from.Set(from)
	l.rec.target.Set(target)
	if err := l.charge(target - from); err != nil {
		return err
	}
	off := extOffset(b.ext.Load())
	if err := l.d.store.commit(off+from, target-from); err != nil {
		l.refund(b, l.id)
		return fmt.Errorf("commit %d bytes: %w", target-from, err)
	}
	b.committed.Store(target)
	l.rec.phase.Store(phaseIdle)
	return nil
}

// charge adds bytes to the budget, or fails with a *SpaceError and changes nothing.
func (l *lane) charge(bytes uint64) error {
	d := l.d
	pages := bytes / pageSize
	if bytes >= hugeAlign && uint64(max(d.store.headroom(), 0)) < bytes {
		return shortage(bytes)
	}
	for {
		w := l.settleBudget()
		if w>>budgetPageShift+pages > d.hdr.limit.Load() {
			return shortage(bytes)
		}
		if d.hdr.budget.CAS(w, w+pages<<budgetPageShift|budgetAdd<<budgetKindShift|uint64(l.id)) {
			break
		}
	}
	l.rec.phase.Store(phaseCharged)
	d.unstampBudget()
	if d.nearLimit() {
		d.collectSoon()
	}
	return nil
}

// refund undoes a charge of lane id whose pages did not become the block's. l may stand in for a
// dead lane.
func (l *lane) refund(b *block, id uint32) {
	rec := &l.d.recs[id]
	from, target := rec.from.Load(), rec.target.Load()
	l.d.store.punch(extOffset(b.ext.Load())+from, target-from)
	l.uncharge(id, target-from)
}

// shrink gives the block's pages beyond target back. The caller's stamp, PUNCH, stands on the
// block.
func (l *lane) shrink(b *block, target uint64) {
	from := b.committed.Load()
	if target >= from {
		return
	}
	l.rec.block.Set(uint64(l.d.indexOf(b)))
	l.rec.from.Set(from)
	l.rec.target.Set(target)
	l.rec.phase.Store(phaseShrink)
	l.finishShrink(b, l.id)
}

func (l *lane) finishShrink(b *block, id uint32) {
	rec := &l.d.recs[id]
	from, target := rec.from.Load(), rec.target.Load()
	l.d.store.punch(extOffset(b.ext.Load())+target, from-target)
	b.committed.Store(target)
	l.uncharge(id, from-target)
}

// uncharge takes bytes from the budget in the name of lane id and ends its commit.
func (l *lane) uncharge(id uint32, bytes uint64) {
	d := l.d
	for {
		w := l.settleBudget()
		if d.hdr.budget.CAS(w, w-bytes/pageSize<<budgetPageShift|budgetSub<<budgetKindShift|uint64(id)) {
			break
		}
	}
	d.recs[id].phase.Store(phaseIdle)
	d.unstampBudget()
	d.relieve()
}

func (l *lane) settleBudget() uint64 {
	budget := &l.d.hdr.budget
	for {
		if w := budget.Load(); w&budgetStamp == 0 {
			return w
		}
		l.patience(budget, func(w uint64) bool { return w&budgetStamp == 0 }, budgetWait)
	}
}

func (d *Domain) unstampBudget() {
	for {
		w := d.hdr.budget.Load()
		if d.hdr.budget.CAS(w, w&^(budgetStamp|budgetWait)) {
			if w&budgetWait != 0 {
				d.wakeBits(&d.hdr.xowait)
			}
			return
		}
	}
}
