package arena

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// growBlock commits the block's pages up to target bytes. The caller's stamp, ALLOC or GROW,
// must stand on the block. If growBlock fails, the block keeps its old size, and nothing more is
// charged. The error is a [shortage], an error of [lane.awaitBudget], or the error of the
// commit.
//
// The lane's record must be complete before the budget changes (docs/memory.md, "Budget and
// commit"): a reaper that finds phase 1 reads from it which pages were charged and for which
// block. committed must be stored before the phase becomes idle: committed = target proves that
// the pages belong to the block.
func (l *lane) growBlock(ctx context.Context, b *layout.Block, target uint64) error {
	from := b.Committed.Load()
	if target <= from {
		return nil
	}
	off, n, err := l.d.subrange(b, from, target)
	if err != nil {
		return err
	}
	l.rec.Block.Set(uint64(l.d.indexOf(b)))
	l.rec.From.Set(from)
	l.rec.Target.Set(target)
	if err := l.chargeBudget(ctx, n); err != nil {
		return err
	}
	if err := l.d.store.commitData(off, n); err != nil {
		l.refundCharge(b, l.id)
		return fmt.Errorf("commit %d bytes: %w", n, err)
	}
	b.Committed.Store(target)
	l.rec.Phase.Store(layout.PhaseIdle)
	return nil
}

// chargeBudget adds bytes to the budget, on behalf of the lane's record. It returns a [shortage]
// if the budget or the machine has too little left, or an error of [lane.awaitBudget]; then it
// has changed nothing.
//
// Invariant (docs/memory.md, "Budget and commit"): pages must be charged before they are
// committed, and the budget's stamp must stand until the phase is charged. A death in between
// leaves pages that are charged and unused, which a reaper gives back, but never pages that are
// not charged.
func (l *lane) chargeBudget(ctx context.Context, bytes uint64) error {
	d := l.d
	pages := bytes / layout.PageSize
	if bytes >= layout.HugeAlign && uint64(max(d.store.headroom(), 0)) < bytes {
		return shortage{bytes: bytes}
	}
	for {
		w, err := l.awaitBudget(ctx)
		if err != nil {
			return err
		}
		if w.Pages()+pages > d.mem.Header.Limit.Load() {
			return shortage{bytes: bytes}
		}
		if d.mem.Header.Budget.CAS(w, w+word.MakeBudget(pages, word.BudgetAdd, l.id)) {
			break
		}
	}
	l.rec.Phase.Store(layout.PhaseCharged)
	d.clearBudgetStamp()
	if d.isNearLimit() {
		d.collectSoon()
	}
	return nil
}

// refundCharge undoes a charge of lane id for block b, after the commit of its pages failed or
// lane id died. It frees the pages of the lane's record. It returns the error of
// [lane.unchargeBudget].
func (l *lane) refundCharge(b *layout.Block, id uint32) error {
	rec := &l.d.mem.Lanes[id]
	off, n, err := l.d.subrange(b, rec.From.Load(), rec.Target.Load())
	if err == nil { // if the record is corrupt, n is 0, because the charge is unknown
		l.d.store.punchData(off, n)
	}
	return l.unchargeBudget(id, n)
}

// shrinkBlock gives back the block's pages beyond target bytes. The caller's stamp, PUNCH or
// ALLOC, must stand on the block.
//
// The order is the reverse of growBlock's (docs/memory.md, "Budget and commit"): the pages must
// be gone before they are uncharged. So the blocks never have more pages in total than are
// charged.
func (l *lane) shrinkBlock(b *layout.Block, target uint64) {
	from := b.Committed.Load()
	if target >= from {
		return
	}
	l.rec.Block.Set(uint64(l.d.indexOf(b)))
	l.rec.From.Set(from)
	l.rec.Target.Set(target)
	l.rec.Phase.Store(layout.PhaseShrink)
	l.finishShrink(b, l.id)
}

// finishShrink completes the shrink of lane id, which may be dead. If the lane's record is corrupt,
// the block keeps its pages.
func (l *lane) finishShrink(b *layout.Block, id uint32) error {
	rec := &l.d.mem.Lanes[id]
	target := rec.Target.Load()
	off, n, err := l.d.subrange(b, target, rec.From.Load())
	if err == nil {
		l.d.store.punchData(off, n)
		b.Committed.Store(target)
	}
	return l.unchargeBudget(id, n)
}

// unchargeBudget subtracts bytes from the budget on behalf of lane id and ends the lane's commit.
// If another process is stopped in the middle of a change of the budget, unchargeBudget waits only
// a moment: for its own lane it records the bytes as a debt, which a goroutine pays later, and for
// a dead lane it returns the error and has changed nothing.
//
// The budget may thus be too high but never too low: the debt of a process that dies stays charged.
func (l *lane) unchargeBudget(id uint32, bytes uint64) error {
	d := l.d
	most := briefly / 50
	if d.debt.Load() != 0 {
		most = 0
	}
	err := l.subtractBudget(most, id, bytes)
	if err != nil && id != l.id && !errors.Is(err, ErrCorrupt) {
		return err
	}
	d.mem.Lanes[id].Phase.Store(layout.PhaseIdle)
	switch {
	case err == nil:
		d.clearBudgetStamp()
	case !errors.Is(err, ErrCorrupt) && d.debt.Add(bytes) == bytes && bytes != 0:
		word.Spawn(d.unchargeDebt)
	}
	d.notifyRelief()
	return nil
}

// subtractBudget subtracts bytes from the budget and leaves the stamp of lane id on it. The
// caller must clear the stamp by clearBudgetStamp. If another lane's stamp does not clear,
// subtractBudget returns an error of [lane.awaitBudget] and has changed nothing.
func (l *lane) subtractBudget(ctx context.Context, id uint32, bytes uint64) error {
	for {
		w, err := l.awaitBudget(ctx)
		if err != nil {
			return err
		}
		pages := min(bytes/layout.PageSize, w.Pages())
		if l.d.mem.Header.Budget.CAS(w, w-word.MakeBudget(pages, 0, 0)|word.MakeBudget(0, word.BudgetSub, id)) {
			return nil
		}
	}
}

// unchargeDebt uncharges the bytes that unchargeBudget could not subtract. It runs in a
// goroutine, and returns when no debt is left or the domain is closed.
func (d *Domain) unchargeDebt() {
	l, err := d.acquireLane()
	if err != nil {
		return
	}
	defer l.unlock()
	for {
		bytes := d.debt.Load()
		if err := l.subtractBudget(d.lingering, l.id, bytes); err != nil {
			return
		}
		d.clearBudgetStamp()
		d.notifyRelief()
		if d.debt.Add(-bytes) == 0 {
			return
		}
	}
}

// awaitBudget waits until no lane is changing the budget word, and returns the word. It returns
// the errors of [awaitWord].
func (l *lane) awaitBudget(ctx context.Context) (word.Budget, error) {
	budget := &l.d.mem.Header.Budget
	for {
		if w := budget.Load(); !w.IsStamped() {
			return w, nil
		}
		err := awaitWord(ctx, l.d, l, budget, func(w word.Budget) bool { return !w.IsStamped() }, word.BudgetWait)
		if err != nil {
			return 0, fmt.Errorf("the budget: %w", err)
		}
	}
}

// clearBudgetStamp clears the stamp of the budget. Only the lane named by the stamp, or its reaper,
// may call it. One CAS clears WAIT together with the stamp, and the waiters are woken if WAIT was
// set: a waiter that comes later finds no stamp.
func (d *Domain) clearBudgetStamp() {
	for {
		w := d.mem.Header.Budget.Load()
		if d.mem.Header.Budget.CAS(w, w&^(word.BudgetStamp|word.BudgetWait)) {
			if w&word.BudgetWait != 0 {
				d.park.WakeBits(&d.mem.Header.XOWait)
			}
			return
		}
	}
}
