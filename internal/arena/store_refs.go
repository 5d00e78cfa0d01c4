package arena

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A process has one bit in a block's own bitmap, however many of its goroutines hold the block.
// This table counts them. The step from 0 to 1 sets the bit and the step from 1 to 0 clears it.
// Both must be done under the entry's lock, so that a release cannot clear the bit that a get has
// just relied on.
const (
	refLocked = 1 << 31
	refChunk  = 4096
)

type refTable [word.MaxBlocks / refChunk]atomic.Pointer[[refChunk]atomic.Uint32]

func (t *refTable) entry(index uint32) *atomic.Uint32 {
	c := t[index/refChunk].Load()
	if c == nil {
		c = t.addChunk(index)
	}
	return &c[index%refChunk]
}

// hasChunk reports whether the process has ever held a block of the same [refChunk] blocks as
// index.
func (t *refTable) hasChunk(index uint32) bool { return t[index/refChunk].Load() != nil }

func (t *refTable) addChunk(index uint32) *[refChunk]atomic.Uint32 {
	p := &t[index/refChunk]
	p.CompareAndSwap(nil, new([refChunk]atomic.Uint32))
	return p.Load()
}

// lockEntry locks the block's entry and returns it with its count. The caller must unlock it by
// [word.Set32] of the new count.
func (t *refTable) lockEntry(index uint32) (e *atomic.Uint32, n uint32) {
	c := t[index/refChunk].Load()
	if c == nil {
		c = t.addChunk(index)
	}
	e = &c[index%refChunk]
	if n = e.Load(); n&refLocked == 0 && e.CompareAndSwap(n, n|refLocked) {
		return e, n
	}
	return e, waitRef(e)
}

func waitRef(e *atomic.Uint32) uint32 {
	for i := 0; ; i++ {
		n := e.Load()
		if n&refLocked == 0 && e.CompareAndSwap(n, n|refLocked) {
			return n
		}
		if word.Crashing {
			word.BlockUntil(func() bool { return e.Load()&refLocked == 0 })
		}
		if i > 64 {
			runtime.Gosched()
		}
	}
}

func (d *Domain) isHeld(index uint32) bool { return d.refs.entry(index).Load()&^refLocked != 0 }

// addRef adds one reference of this process to a block. It does not look at the block's state:
// the caller must know that the block stays allocated, or must look at the state afterwards.
//
// Invariant (docs/memory.md, "Operations"): the process's bit is set exactly while the count is
// not 0. The entry's lock makes the two steps atomic for the goroutines of this process; other
// processes see only the bit.
func (d *Domain) addRef(index uint32) {
	e, n := d.refs.lockEntry(index)
	if n == 0 {
		d.mem.Blocks[index].Own[d.word].Or(d.bit)
		d.lives.beginHold(index)
	}
	word.Set32(e, n+1)
}

// dropRef removes one reference of this process. last reports whether it was the last one; the
// caller must then have the block freed by [lane.tryFree] unless another holder is certain. ok
// is false if there was none.
func (d *Domain) dropRef(index uint32) (last, ok bool) {
	e, n := d.refs.lockEntry(index)
	if n == 0 {
		word.Set32(e, 0)
		return false, false
	}
	if n == 1 {
		d.lives.endHold(index)
		d.mem.Blocks[index].Own[d.word].AndNot(d.bit)
	}
	word.Set32(e, n-1)
	return n == 1, true
}

// checkHandle returns the block of h. It returns [ErrStale] if h is stale, and [ErrClosed] if this
// process does not hold the block.
func (d *Domain) checkHandle(h Handle) (*layout.Block, error) {
	if !d.mem.IsAllocated(h) {
		return nil, ErrStale
	}
	if !d.isHeld(h.Block()) {
		return nil, ErrClosed
	}
	return &d.mem.Blocks[h.Block()], nil
}

// Retain adds a reference to a block that this process holds already. Each reference must be
// released once. It returns [ErrStale] if h is stale, and [ErrClosed] if this process does not hold
// the block or has closed the domain.
func (d *Domain) Retain(h Handle) error {
	if d.closed.Load() {
		return ErrClosed
	}
	if _, err := d.checkHandle(h); err != nil {
		return err
	}
	e, n := d.refs.lockEntry(h.Block())
	if n == 0 {
		word.Set32(e, 0)
		return ErrClosed
	}
	word.Set32(e, n+1)
	return nil
}

// Release drops one reference of this process. The block is freed when no participant and no
// message holds it. Release waits for no stopped process: a ring with messages in the way of a
// stopped process is freed later. It returns [ErrStale] if h is stale, and [ErrClosed] if this
// process does not hold the block.
func (d *Domain) Release(h Handle) error { return d.releaseHandle(h, true) }

// releaseHandle is Release. user is false if this process held the block only on behalf of another
// one.
func (d *Domain) releaseHandle(h Handle, user bool) error {
	l, err := d.acquireLane()
	if err != nil {
		return err
	}
	b, err := d.checkHandle(h)
	if err == nil {
		if user {
			l.clearDeath(b)
		}
		err = l.releaseBlock(h.Block())
	}
	l.unlock()
	return err
}

func (l *lane) releaseBlock(index uint32) error {
	last, ok := l.d.dropRef(index)
	if !ok {
		return ErrClosed
	}
	if last {
		l.tryFree(index)
	}
	return nil
}

// Import takes a reference to a block by a handle that came by a side channel. The sender must hold
// the block until Import has returned. Otherwise Import may return [ErrStale], but it never returns
// a reference to another block.
//
// The own bit must be set before the look at the block. A try-free that stamped the block before
// the bit was set may have read own without it, so Import waits for its stamp. A later try-free
// sees the bit.
//
// If a process is stopped while it tests whether the block is free, Import waits for up to one
// second and then returns [context.DeadlineExceeded].
func (d *Domain) Import(h Handle) error { return d.importBlock(briefly, h) }

func (d *Domain) importBlock(ctx context.Context, h Handle) error {
	l, err := d.acquireLaneFor(ctx)
	if err != nil {
		return err
	}
	defer l.unlock()
	i := h.Block()
	if !h.IsWellFormed() || uint64(i) >= d.mem.Header.Blocks.Load() {
		return ErrStale
	}
	b := &d.mem.Blocks[i]
	d.addRef(i)
	for {
		w := b.State.Load()
		if w&word.AllocBit == 0 || w.Generation() != h.Generation() {
			l.releaseBlock(i)
			return ErrStale
		}
		if k := w.Kind(); k != word.KindFree {
			return nil
		}
		// Another lane is testing whether the block is free, and may have missed the bit.
		if _, err := l.awaitUnstamped(ctx, b); err != nil {
			return errors.Join(err, l.releaseBlock(i))
		}
	}
}

// Stale reports whether the block of h has been freed. A stale handle stays stale, and a handle
// that is not stale may become so at any time. A package that represents an object by a block can
// use it to detect that the object has no user any more.
func (d *Domain) Stale(h Handle) bool {
	if !h.IsWellFormed() || uint64(h.Block()) >= d.mem.Header.Blocks.Load() {
		return true
	}
	w := d.mem.Blocks[h.Block()].State.Load()
	return w&word.AllocBit == 0 || w.Generation() != h.Generation()
}

// Bytes returns the bytes of a block that this process holds. The slice is borrowed: it must not be
// used after the process has released its last reference. SHOAL_DEBUG=lifetime detects later uses.
// The slice covers all committed pages, so it may be longer than the requested size. It returns
// [ErrStale] if h is stale, and [ErrClosed] if this process does not hold the block.
func (d *Domain) Bytes(h Handle) ([]byte, error) {
	b, err := d.checkHandle(h)
	if err != nil {
		return nil, err
	}
	p, err := d.bytesOf(b)
	if err != nil {
		return nil, err
	}
	return d.lives.openBytes(p, h.Block(), layout.ExtentOffset(b.Extent.Load()))
}

func (d *Domain) bytesOf(b *layout.Block) ([]byte, error) {
	p, ok := d.mem.BlockBytes(b)
	if ok {
		return p, nil
	}
	if _, _, err := d.blockRange(b.Extent.Load()); err != nil {
		return nil, err
	}
	return nil, reportCorruption("the committed length of a block", b.Committed.Load())
}
