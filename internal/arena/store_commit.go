package arena

import (
	"context"
	"errors"
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

// A budgetWord says how many pages are charged, and which lane is changing that.
type budgetWord uint64

func (w budgetWord) pages() uint64 { return uint64(w >> budgetPageShift) }
func (w budgetWord) lane() uint32  { return uint32(w & budgetLaneMask) }
func (w budgetWord) kind() uint64  { return uint64(w >> budgetKindShift & 3) }

// stamped reports whether a lane is in the middle of a change.
func (w budgetWord) stamped() bool { return w&budgetStamp != 0 }

func budgetOf(pages, kind uint64, lane uint32) budgetWord {
	return budgetWord(pages<<budgetPageShift | kind<<budgetKindShift | uint64(lane))
}

// Phases of a lane's commit.
const (
	phaseIdle    = 0
	phaseCharged = 1 // pages are charged, and not yet the block's
	phaseShrink  = 2 // pages of the block are being given back, still charged
)

// grow commits the block's pages up to target bytes. The caller's stamp, ALLOC or GROW, stands on
// the block.
//
// The lane's record is complete before the budget changes (docs/memory.md, "Budget and commit"): a
// reaper that finds phase 1 reads from it what was charged and for which block. committed is stored
// before the phase is idle again: committed = target is the evidence that the pages are the
// block's.
func (l *lane) grow(ctx context.Context, b *block, target uint64) error {
	from := b.committed.Load()
	if target <= from {
		return nil
	}
	off, n, err := l.d.pages(b, from, target)
	if err != nil {
		return err
	}
	l.rec.block.Set(uint64(l.d.indexOf(b)))
	l.rec.from.Set(from)
	l.rec.target.Set(target)
	if err := l.charge(ctx, n); err != nil {
		return err
	}
	if err := l.d.store.commit(off, n); err != nil {
		l.refund(b, l.id)
		return fmt.Errorf("commit %d bytes: %w", n, err)
	}
	b.committed.Store(target)
	l.rec.phase.Store(phaseIdle)
	return nil
}

// charge adds bytes to the budget, or fails with a *SpaceError and changes nothing.
//
// Invariant (docs/memory.md, "Budget and commit"): pages are charged before they are committed, and
// the budget's stamp stands until the phase says so. A death in between leaves pages that are
// charged and unused, which a reaper gives back, and never pages that are not charged.
func (l *lane) charge(ctx context.Context, bytes uint64) error {
	d := l.d
	pages := bytes / pageSize
	if bytes >= hugeAlign && uint64(max(d.store.headroom(), 0)) < bytes {
		return shortage{bytes: bytes}
	}
	for {
		w, err := l.settleBudget(ctx)
		if err != nil {
			return err
		}
		if w.pages()+pages > d.hdr.limit.Load() {
			return shortage{bytes: bytes}
		}
		if d.hdr.budget.CAS(w, w+budgetOf(pages, budgetAdd, l.id)) {
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
func (l *lane) refund(b *block, id uint32) error {
	rec := &l.d.recs[id]
	off, n, err := l.d.pages(b, rec.from.Load(), rec.target.Load())
	if err == nil { // for garbage n is 0: the charge is not known
		l.d.store.punch(off, n)
	}
	return l.uncharge(id, n)
}

// shrink gives the block's pages beyond target back. The caller's stamp, PUNCH, stands on the
// block.
//
// The order is that of grow, turned round (docs/memory.md, "Budget and commit"): the pages are gone
// before they are uncharged. So the sum of all blocks' pages is never more than what is charged.
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

// finishShrink finishes the shrink of lane id. Where its record is garbage, the block keeps its
// pages.

func (l *lane) finishShrink(b *block, id uint32) error {
	rec := &l.d.recs[id]
	target := rec.target.Load()
	off, n, err := l.d.pages(b, target, rec.from.Load())
	if err == nil {
		l.d.store.punch(off, n)
		b.committed.Store(target)
	}
	return l.uncharge(id, n)
}

// uncharge takes bytes from the budget in the name of lane id and ends its commit. Where another
// process is stopped in the middle of a change of the budget, it takes nothing. In its own lane it
// then owes them, which a goroutine pays; for a dead lane it returns the error, and has changed
// nothing.
//
// A budget says too much rather than too little: the debt of a process that dies stays charged.
func (l *lane) uncharge(id uint32, bytes uint64) error {
	d := l.d
	most := briefly / 50
	if d.debt.Load() != 0 {
		most = 0
	}
	err := l.takeFromBudget(most, id, bytes)
	if err != nil && id != l.id && !errors.Is(err, ErrCorrupt) {
		return err
	}
	d.recs[id].phase.Store(phaseIdle)
	switch {
	case err == nil:
		d.unstampBudget()
	case !errors.Is(err, ErrCorrupt) && d.debt.Add(bytes) == bytes && bytes != 0:
		spawn(d.payDebt)
	}
	d.relieve()
	return nil
}

// takeFromBudget leaves its stamp on the budget.
func (l *lane) takeFromBudget(ctx context.Context, id uint32, bytes uint64) error {
	for {
		w, err := l.settleBudget(ctx)
		if err != nil {
			return err
		}
		pages := min(bytes/pageSize, w.pages())
		if l.d.hdr.budget.CAS(w, w-budgetOf(pages, 0, 0)|budgetOf(0, budgetSub, id)) {
			return nil
		}
	}
}

// payDebt uncharges the bytes that an uncharge could not take.
func (d *Domain) payDebt() {
	l, err := d.enter()
	if err != nil {
		return
	}
	defer l.unlock()
	for {
		bytes := d.debt.Load()
		if err := l.takeFromBudget(d.lingering, l.id, bytes); err != nil {
			return
		}
		d.unstampBudget()
		d.relieve()
		if d.debt.Add(-bytes) == 0 {
			return
		}
	}
}

// settleBudget returns the budget word once nobody is changing it.
func (l *lane) settleBudget(ctx context.Context) (budgetWord, error) {
	budget := &l.d.hdr.budget
	for {
		if w := budget.Load(); !w.stamped() {
			return w, nil
		}
		err := patience(ctx, l.d, l, budget, func(w budgetWord) bool { return !w.stamped() }, budgetWait)
		if err != nil {
			return 0, fmt.Errorf("the budget: %w", err)
		}
	}
}

// The lane that the stamp names calls it, or that lane's reaper. WAIT goes with the stamp in one
// CAS, and the waiter that has set it is woken: a waiter that comes later finds no stamp.
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
