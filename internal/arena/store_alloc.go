package arena

import (
	"context"
	"fmt"
	"unsafe"
)

// Alloc returns a block of at least size bytes, held once by this process. Its bytes are not
// cleared: a block that was used before holds what it held. 0 bytes are a block without memory. The
// error is a *SpaceError when the budget or the address space is used up, after idle memory was
// given back and garbage collected. It is context.DeadlineExceeded where a process is stopped in
// the middle of a change of the budget, and does not go on within a second.
func (d *Domain) Alloc(size int) (Handle, error) { return d.allocFor(briefly, size) }

func (d *Domain) allocFor(ctx context.Context, size int) (Handle, error) {
	n := d.lives.pad(uint64(size))
	h, err := d.alloc(ctx, n, n, objectNone)
	if err != nil {
		return d.allocUnderPressure(ctx, n, n, objectNone, err)
	}
	return h, nil
}

// alloc finds or makes a block of size bytes, with commit bytes of pages behind it, and gives it
// its kind.
func (d *Domain) alloc(ctx context.Context, size, commit uint64, kind objectKind) (Handle, error) {
	l, err := d.enterFor(ctx)
	if err != nil {
		return 0, err
	}
	h, err := l.alloc(ctx, size, commit, kind)
	l.unlock()
	return h, err
}

func (l *lane) alloc(ctx context.Context, size, commit uint64, kind objectKind) (Handle, error) {
	if size > uint64(len(l.d.bytes)) {
		return 0, fmt.Errorf("%w: %d bytes, of %d; divide it, or raise Reserve by shoal.SetMemory", ErrTooLarge, size,
			len(l.d.bytes))
	}
	c := classOf(size)
	if kind == objectNone {
		if h := l.take(c, commit); h != 0 {
			return h, nil
		}
	}
	index := l.reuse(c)
	if index == 0 && l.collectAhead(commit) {
		index = l.reuse(c)
	}
	if index == 0 {
		err := l.d.room(charged(size, commit))
		if err != nil {
			return 0, err // before it takes address space
		}
		if index, err = l.carve(ctx, c); err != nil {
			return 0, err
		}
	}
	return l.handOut(ctx, index, commit, kind)
}

// room fails with a *SpaceError where bytes are more than the budget has left now.
func (d *Domain) room(bytes uint64) error {
	if d.hdr.budget.Load().pages()+bytes/pageSize > d.hdr.limit.Load() {
		return shortage{bytes: bytes}
	}
	return nil
}

// handOut makes a block that is stamped (l, ALLOC) the caller's: pages first, then our bit, then
// the stamp goes.
//
// Invariant (docs/memory.md, "Operations"): the own bit is set while the stamp still stands. No
// lane holds a block that is ALLOC, without stamp and without own bit, and the next try-free would
// take it.
func (l *lane) handOut(ctx context.Context, index uint32, commit uint64, kind objectKind) (Handle, error) {
	d := l.d
	b := &d.blocks[index]
	e := b.ext.Load()
	need := pagesOf(e, commit)
	err := l.grow(ctx, b, need)
	if err == nil && kind != objectNone {
		err = l.prepare(b, need, kind)
	}
	if err != nil {
		d.disown(b)
		d.push(extClass(e), index)
		return 0, err
	}
	d.acquire(index)
	d.unstamp(b)
	return l.counted(index, b.w.Load().generation(), need), nil
}

// counted notes that a block with so many bytes of pages was handed out, and returns its handle.
func (l *lane) counted(index, generation uint32, pages uint64) Handle {
	l.handed += pages
	l.rec.allocs.Set(l.rec.allocs.Load() + 1)
	return makeHandle(index, generation)
}

// pagesOf returns how many bytes of pages a block of extent e carries when commit bytes of it are
// to have some.
func pagesOf(e, commit uint64) uint64 {
	switch {
	case e&extLead != 0:
		return slabSize
	case e&extSmall != 0:
		return 0
	}
	return roundUp(commit, pageSize)
}

// take makes a free block the caller's that has its pages already, or returns 0. Our bit comes
// first and ALLOC after it, so no stamp is needed: a death between the two leaves a bit on a free
// block, and one after them a block that only the dead one holds.
//
// Invariant (docs/memory.md, "Operations"): a lane that has not got the block tries to free it. The
// lane that got it may have released it since, and not freed it because of this one's bit.
func (l *lane) take(c int, commit uint64) Handle {
	index := l.next(c)
	if index == 0 {
		return 0
	}
	d, b := l.d, &l.d.blocks[index]
	w, e := b.w.Load(), b.ext.Load()
	if w&(allocBit|xoMask) != 0 || extClass(e) != c {
		return 0
	}
	need := pagesOf(e, commit)
	if need > b.committed.Load() {
		l.putBack(index) // it needs a stamp
		return 0
	}
	d.acquire(index)
	// a punch leaves the word as it was, so the pages are certain only once this lane has the block
	if !b.w.CAS(w, w|allocBit) || need > b.committed.Load() {
		l.release(index)
		return 0
	}
	return l.counted(index, w.generation(), need)
}

// reuse claims a free block of class c, warm ones first, or returns 0.
func (l *lane) reuse(c int) uint32 {
	for range 3 {
		for range hintTries {
			index := l.next(c)
			if index == 0 {
				break
			}
			if l.claim(index, c) {
				return index
			}
		}
		if !l.gather(c) && !l.d.sweep() {
			break
		}
	}
	if l.d.hdr.lost.Load() == hintsSweeping {
		return l.search(c)
	}
	return 0
}

// claim takes a free block by its state word: the list that named it was only a hint.
//
// The class is read before the CAS, and the CAS is on the whole word, generation and all: a block
// that got another extent meanwhile has another generation (disown), and the CAS fails.
func (l *lane) claim(index uint32, c int) bool {
	b := &l.d.blocks[index]
	w := b.w.Load()
	if w&(allocBit|xoMask) != 0 || extClass(b.ext.Load()) != c {
		return false
	}
	return b.w.CAS(w, w|allocBit|stamp(l.id, kindAlloc))
}

// disown makes a block that is stamped (l, ALLOC) free again. The generation tells claim, which
// looked at the class before, that it may be another one now.
func (d *Domain) disown(b *block) { d.change(b, allocBit, genOne) }

// carve makes a new block of class c from address space that was never used, stamped (l, ALLOC).
func (l *lane) carve(ctx context.Context, c int) (uint32, error) {
	if small(c) {
		return l.carveSlab(ctx, c)
	}
	index, err := l.newHeader()
	if err != nil || c == 0 {
		return index, err
	}
	b := &l.d.blocks[index]
	off, err := l.d.takeSpace(extentSize(c), extentAlign(c))
	if err != nil {
		l.d.disown(b)
		l.d.push(0, index)
		return 0, err
	}
	b.ext.Store(makeExt(off, c))
	return index, nil
}

// newHeader returns a header without an extent, stamped (l, ALLOC).
func (l *lane) newHeader() (uint32, error) {
	if i := l.reuse(0); i != 0 {
		return i, nil
	}
	for {
		i, err := l.d.newHeaders(1)
		if err != nil || l.claim(i, 0) {
			return i, err
		}
	}
}

// carveSlab cuts a slab into blocks of class c. The first carries the charge of the slab's pages.
//
// One header carries the pages of the whole slab (docs/memory.md, "Budget and commit"), because the
// budget counts pages and small blocks share them. The lead is grown before the others get an
// extent: a process that finds one of them finds pages behind it.
func (l *lane) carveSlab(ctx context.Context, c int) (uint32, error) {
	size := classSize(c)
	n := uint32(slabSize / size)
	var first uint32
	for claimed := false; !claimed; claimed = l.claim(first, 0) {
		if first != 0 { // a sweep has found it
			l.d.loseHints()
		}
		var err error
		if first, err = l.d.newHeaders(n); err != nil {
			return 0, err
		}
	}
	off, err := l.d.takeSpace(slabSize, pageSize)
	if err != nil {
		l.d.disown(&l.d.blocks[first])
		l.d.loseHints()
		return 0, err
	}
	lead := &l.d.blocks[first]
	lead.ext.Store(makeExt(off, c) | extSmall | extLead)
	if err := l.grow(ctx, lead, slabSize); err != nil {
		l.d.disown(lead)
		l.d.loseHints()
		return 0, err
	}
	for i := first + 1; i < first+n; i++ {
		if l.claim(i, 0) {
			b := &l.d.blocks[i]
			b.ext.Store(makeExt(off+uint64(i-first)*size, c) | extSmall)
			l.d.disown(b)
			l.d.push(c, i)
		}
	}
	return first, nil
}

// newHeaders hands out n block headers in a row. Those that a death loses here have no extent: they
// are blocks of class 0, and a sweep finds them.
//
// Indices are handed out by one CAS and never taken back: a header belongs to the domain for as
// long as that lives, and a handle tells its uses apart by the generation.
func (d *Domain) newHeaders(n uint32) (uint32, error) {
	for {
		at := d.hdr.blocks.Load()
		if at == 0 || at > uint64(len(d.blocks)) || at > 1 && at > d.headersReady() {
			return 0, corrupt("the header's count of blocks", at)
		}
		if at+uint64(n) > uint64(len(d.blocks)) {
			return 0, shortage{spent: d.noBlocks()}
		}
		if err := d.commitHeaders(at + uint64(n)); err != nil {
			return 0, err
		}
		if d.hdr.blocks.CAS(at, at+uint64(n)) {
			return uint32(at), nil
		}
	}
}

func (d *Domain) commitHeaders(upTo uint64) error {
	for {
		ready := d.hdr.ready.Load()
		if upTo <= ready {
			return nil
		}
		if ready%(commitStep/blockSize) != 0 {
			return corrupt("the header's count of headers with pages", ready)
		}
		if err := d.store.commitControl(offBlocks+ready*blockSize, commitStep); err != nil {
			return err
		}
		d.hdr.ready.CAS(ready, ready+commitStep/blockSize)
	}
}

// takeSpace hands out address space of the data segment. A death right after it loses addresses,
// never pages.
func (d *Domain) takeSpace(n, align uint64) (uint64, error) {
	for {
		at := d.hdr.brk.Load()
		if at > uint64(len(d.bytes)) {
			return 0, corrupt("the header's end of the addresses handed out", at)
		}
		off := roundUp(at, align)
		if off+n > uint64(len(d.bytes)) {
			return 0, shortage{bytes: n, spent: d.noAddresses()}
		}
		if d.hdr.brk.CAS(at, off+n) {
			return off, nil
		}
	}
}

// SpaceLeft returns how many bytes of addresses no block has taken yet.
func (d *Domain) SpaceLeft() int64 { return max(int64(len(d.bytes))-int64(d.hdr.brk.Load()), 0) }

func (d *Domain) noAddresses() string {
	return fmt.Sprintf("%d of %d bytes of address space are left: bound the queues, or raise Reserve by shoal.SetMemory",
		d.SpaceLeft(), len(d.bytes))
}

func (d *Domain) noBlocks() string {
	return fmt.Sprintf("all %d blocks are taken: close what is not needed, or put more into one", len(d.blocks))
}

func (d *Domain) indexOf(b *block) uint32 {
	return uint32((uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(&d.blocks[0]))) / blockSize)
}
