package arena

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Alloc allocates a block of at least size bytes, held once by this process. The caller must
// release it. Its bytes are not cleared: a reused block keeps its former contents. A block of 0
// bytes has no memory.
//
// Alloc returns a [*SpaceError] if the budget or the address space is used up even after idle
// memory was given back and garbage collected, and [ErrTooLarge] if size exceeds the address
// space of the domain. It returns [context.DeadlineExceeded] if a process is stopped in the
// middle of a change of the budget and does not continue within one second.
func (d *Domain) Alloc(size int) (Handle, error) { return d.allocFor(briefly, size) }

// AllocSpare is [Domain.Alloc] for memory that could be on the heap as well. It does not try to
// free memory. It returns 0 if the allocation fails, or if it would use more than half of the
// budget.
func (d *Domain) AllocSpare(size int) Handle {
	n := d.lives.padSize(uint64(size))
	if 2*(d.mem.Header.Budget.Load().Pages()+n/layout.PageSize) > d.mem.Header.Limit.Load() {
		return 0
	}
	h, err := d.allocBlock(briefly, n, n, layout.ObjectNone)
	if err != nil {
		return 0
	}
	return h
}

func (d *Domain) allocFor(ctx context.Context, size int) (Handle, error) {
	n := d.lives.padSize(uint64(size))
	h, err := d.allocBlock(ctx, n, n, layout.ObjectNone)
	if err != nil {
		return d.allocUnderPressure(ctx, n, n, layout.ObjectNone, err)
	}
	return h, nil
}

// allocBlock finds or makes a block of size bytes, at least commit bytes of it with pages, and
// sets its kind. The caller holds one reference. allocBlock does not reclaim memory: it returns
// a [shortage] if there is too little. ctx bounds the wait for a lane and for other lanes'
// changes of the budget.
func (d *Domain) allocBlock(ctx context.Context, size, commit uint64, kind layout.ObjectKind) (Handle, error) {
	l, err := d.acquireLaneFor(ctx)
	if err != nil {
		return 0, err
	}
	h, err := l.allocBlock(ctx, size, commit, kind)
	l.unlock()
	return h, err
}

func (l *lane) allocBlock(ctx context.Context, size, commit uint64, kind layout.ObjectKind) (Handle, error) {
	if size > uint64(len(l.d.mem.Data)) {
		return 0, fmt.Errorf("%w: got %d bytes, want at most %d: divide it, or raise Reserve with shoal.SetMemory",
			ErrTooLarge, size,
			len(l.d.mem.Data))
	}
	c := layout.ClassOf(size)
	if kind == layout.ObjectNone {
		if h := l.claimBacked(c, commit); h != 0 {
			return h, nil
		}
	}
	index := l.claimFree(c)
	if index == 0 && l.collectIfDue(commit) {
		index = l.claimFree(c)
	}
	if index == 0 {
		err := l.d.checkBudget(chargedBytes(size, commit))
		if err != nil {
			return 0, err // before address space is used
		}
		if index, err = l.carveBlock(ctx, c); err != nil {
			return 0, err
		}
	}
	return l.completeAlloc(ctx, index, commit, kind)
}

// checkBudget returns a [shortage] if the budget has fewer than bytes left, and otherwise nil.
func (d *Domain) checkBudget(bytes uint64) error {
	if d.mem.Header.Budget.Load().Pages()+bytes/layout.PageSize > d.mem.Header.Limit.Load() {
		return shortage{bytes: bytes}
	}
	return nil
}

// completeAlloc hands a block that is stamped (l, ALLOC) to the caller: it commits the pages for
// commit bytes, sets the kind and the own bit and clears the stamp, in this order. If it fails,
// the block is free again.
//
// Invariant (docs/memory.md, "Operations"): the own bit must be set while the stamp still
// stands. A block that is ALLOC without a stamp and without an own bit has no holder, and the
// next try-free would free it.
func (l *lane) completeAlloc(ctx context.Context, index uint32, commit uint64, kind layout.ObjectKind) (Handle, error) {
	d := l.d
	b := &d.mem.Blocks[index]
	e := b.Extent.Load()
	need := pagesOf(e, commit)
	err := l.growBlock(ctx, b, need)
	if err == nil && kind != layout.ObjectNone {
		err = l.initObject(b, need, kind)
	}
	if err != nil {
		d.revertAlloc(b)
		d.pushFree(layout.ExtentClass(e), index)
		return 0, err
	}
	d.addRef(index)
	d.unstampBlock(b)
	return l.countAlloc(index, b.State.Load().Generation(), need), nil
}

// countAlloc counts a block that was handed out with the given bytes of pages, and returns its
// handle.
func (l *lane) countAlloc(index, generation uint32, pages uint64) Handle {
	l.handed += pages
	l.rec.Allocs.Set(l.rec.Allocs.Load() + 1)
	return word.MakeHandle(index, generation)
}

// pagesOf returns the bytes of pages charged to a block of extent e if commit bytes of it must have
// pages.
func pagesOf(e, commit uint64) uint64 {
	switch {
	case e&layout.ExtentLead != 0:
		return layout.SlabSize
	case e&layout.ExtentSmall != 0:
		return 0
	}
	return layout.RoundUp(commit, layout.PageSize)
}

// claimBacked claims a free block of class c that has pages for commit bytes already, and takes
// one reference to it. It returns 0 if the lane knows of none. The own bit is set before ALLOC,
// so no stamp is needed: a death between the two leaves a bit on a free block, and a death after
// both leaves a block that only the dead participant holds.
//
// Invariant (docs/memory.md, "Operations"): if the CAS of ALLOC fails, claimBacked must try to
// free the block. The lane that got it may have released it since, and not freed it because of
// this lane's bit.
func (l *lane) claimBacked(c int, commit uint64) Handle {
	index := l.nextFree(c)
	if index == 0 {
		return 0
	}
	d, b := l.d, &l.d.mem.Blocks[index]
	w, e := b.State.Load(), b.Extent.Load()
	if w&(word.AllocBit|word.StampMask) != 0 || layout.ExtentClass(e) != c {
		return 0
	}
	need := pagesOf(e, commit)
	if need > b.Committed.Load() {
		l.addFreeBlock(index) // committing more pages needs a stamp
		return 0
	}
	d.addRef(index)
	// A punch leaves the word as it was, so the pages must be checked again once this lane has the
	// block.
	if !b.State.CAS(w, w|word.AllocBit) || need > b.Committed.Load() {
		l.releaseBlock(index)
		return 0
	}
	return l.countAlloc(index, w.Generation(), need)
}

// claimFree claims a free block of class c, starting with those that the lane itself has freed.
// It returns the index of the block, which is stamped (l, ALLOC), or 0 if it finds none.
func (l *lane) claimFree(c int) uint32 {
	for range 3 {
		for range hintTries {
			index := l.nextFree(c)
			if index == 0 {
				break
			}
			if l.claimBlock(index, c) {
				return index
			}
		}
		if !l.gatherFree(c) && !l.d.sweepFree() {
			break
		}
	}
	if l.d.mem.Header.Lost.Load() == layout.HintsSweeping {
		return l.searchFree(c)
	}
	return 0
}

// claimBlock claims a free block of class c by a CAS of its state word, which sets ALLOC and the
// stamp (l, ALLOC). The list that named the block is only a hint: claimBlock returns false if
// the block is in use, stamped or of another class.
//
// The class is read before the CAS. The CAS compares the whole word including the generation, so
// it fails if the block got another extent meanwhile: revertAlloc changes the generation.
func (l *lane) claimBlock(index uint32, c int) bool {
	b := &l.d.mem.Blocks[index]
	w := b.State.Load()
	if w&(word.AllocBit|word.StampMask) != 0 || layout.ExtentClass(b.Extent.Load()) != c {
		return false
	}
	return b.State.CAS(w, w|word.AllocBit|word.MakeStamp(l.id, word.KindAlloc))
}

// revertAlloc frees a block that is stamped (l, ALLOC). It increments the generation, so that a
// claim that read the class before fails: the class may have changed.
func (d *Domain) revertAlloc(b *layout.Block) { d.changeStamped(b, word.AllocBit, word.GenOne) }

// carveBlock makes a new block of class c from unused address space, and returns its index. The
// block is stamped (l, ALLOC). The error is a [shortage], or wraps [ErrCorrupt] or the error of
// a commit.
func (l *lane) carveBlock(ctx context.Context, c int) (uint32, error) {
	if layout.IsSmall(c) {
		return l.carveSlab(ctx, c)
	}
	index, err := l.newHeader()
	if err != nil || c == 0 {
		return index, err
	}
	b := &l.d.mem.Blocks[index]
	off, err := l.d.reserveSpace(layout.ExtentSize(c), layout.ExtentAlign(c))
	if err != nil {
		l.d.revertAlloc(b)
		l.d.pushFree(0, index)
		return 0, err
	}
	b.Extent.Store(layout.MakeExtent(off, c))
	return index, nil
}

// newHeader returns the index of a block without an extent, stamped (l, ALLOC).
func (l *lane) newHeader() (uint32, error) {
	if i := l.claimFree(0); i != 0 {
		return i, nil
	}
	for {
		i, err := l.d.newHeaders(1)
		if err != nil || l.claimBlock(i, 0) {
			return i, err
		}
	}
}

// carveSlab divides a slab into blocks of class c and returns the first one, stamped (l, ALLOC).
//
// The first block, called the lead, carries the charge of the whole slab (docs/memory.md, "Budget
// and commit"), because the budget counts pages and small blocks share them. The lead must be grown
// before the other blocks get an extent: a process that finds one of them relies on its pages.
func (l *lane) carveSlab(ctx context.Context, c int) (uint32, error) {
	size := layout.ClassSize(c)
	n := uint32(layout.SlabSize / size)
	var first uint32
	for claimed := false; !claimed; claimed = l.claimBlock(first, 0) {
		if first != 0 { // a sweep has found it
			l.d.markHintsLost()
		}
		var err error
		if first, err = l.d.newHeaders(n); err != nil {
			return 0, err
		}
	}
	off, err := l.d.reserveSpace(layout.SlabSize, layout.PageSize)
	if err != nil {
		l.d.revertAlloc(&l.d.mem.Blocks[first])
		l.d.markHintsLost()
		return 0, err
	}
	lead := &l.d.mem.Blocks[first]
	lead.Extent.Store(layout.MakeExtent(off, c) | layout.ExtentSmall | layout.ExtentLead)
	if err := l.growBlock(ctx, lead, layout.SlabSize); err != nil {
		l.d.revertAlloc(lead)
		l.d.markHintsLost()
		return 0, err
	}
	for i := first + 1; i < first+n; i++ {
		if l.claimBlock(i, 0) {
			b := &l.d.mem.Blocks[i]
			b.Extent.Store(layout.MakeExtent(off+uint64(i-first)*size, c) | layout.ExtentSmall)
			l.d.revertAlloc(b)
			l.d.pushFree(c, i)
		}
	}
	return first, nil
}

// newHeaders hands out n consecutive block headers and returns the index of the first one. It
// does not stamp them. It returns a [shortage] if the domain has no headers left. Headers lost
// here by a death have no extent: they are blocks of class 0, and a sweep finds them.
//
// Indices are handed out by one CAS and never taken back. A header belongs to the domain for the
// domain's whole life, and its generation distinguishes its uses.
func (d *Domain) newHeaders(n uint32) (uint32, error) {
	for {
		at := d.mem.Header.Blocks.Load()
		if at == 0 || at > uint64(len(d.mem.Blocks)) || at > 1 && at > d.headersReady() {
			return 0, reportCorruption("the header's count of blocks", at)
		}
		if at+uint64(n) > uint64(len(d.mem.Blocks)) {
			return 0, shortage{spent: d.noBlocksReason()}
		}
		if err := d.commitHeaders(at + uint64(n)); err != nil {
			return 0, err
		}
		if d.mem.Header.Blocks.CAS(at, at+uint64(n)) {
			return uint32(at), nil
		}
	}
}

func (d *Domain) commitHeaders(upTo uint64) error {
	for {
		ready := d.mem.Header.Ready.Load()
		if upTo <= ready {
			return nil
		}
		if ready%(layout.CommitStep/layout.BlockSize) != 0 {
			return reportCorruption("the header's count of headers with pages", ready)
		}
		if err := d.store.commitControl(layout.OffBlocks+ready*layout.BlockSize, layout.CommitStep); err != nil {
			return err
		}
		d.mem.Header.Ready.CAS(ready, ready+layout.CommitStep/layout.BlockSize)
	}
}

// reserveSpace hands out n bytes of address space of the data segment, for ever, and returns their
// offset, a multiple of align. A death right after it loses addresses, never pages. The error is a
// [shortage], or wraps [ErrCorrupt].
func (d *Domain) reserveSpace(n, align uint64) (uint64, error) {
	for {
		at := d.mem.Header.Brk.Load()
		if at > uint64(len(d.mem.Data)) {
			return 0, reportCorruption("the header's end of the addresses handed out", at)
		}
		off := layout.RoundUp(at, align)
		if off+n > uint64(len(d.mem.Data)) {
			return 0, shortage{bytes: n, spent: d.noAddressesReason()}
		}
		if d.mem.Header.Brk.CAS(at, off+n) {
			return off, nil
		}
	}
}

// SpaceLeft returns the number of bytes of address space that have not been handed out.
func (d *Domain) SpaceLeft() int64 {
	return max(int64(len(d.mem.Data))-int64(d.mem.Header.Brk.Load()), 0)
}

func (d *Domain) noAddressesReason() string {
	return fmt.Sprintf("only %d of %d bytes of address space are free: bound the queues, or raise Reserve with "+
		"shoal.SetMemory",
		d.SpaceLeft(), len(d.mem.Data))
}

func (d *Domain) noBlocksReason() string {
	return fmt.Sprintf("all %d blocks are in use: close unused ones, or store more data in each", len(d.mem.Blocks))
}

func (d *Domain) indexOf(b *layout.Block) uint32 {
	return uint32((uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(&d.mem.Blocks[0]))) / layout.BlockSize)
}
