package arena

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Form is the type of a [Sync].
type Form = layout.Form

// The forms. An object that needs a lock, a flag word and data should use FormMutex too; see
// [Sync.Flag] and [Sync.Data].
const (
	FormMutex     = layout.FormMutex
	FormRWMutex   = layout.FormRWMutex
	FormSemaphore = layout.FormSemaphore
	FormCond      = layout.FormCond
	FormEvent     = layout.FormEvent
	FormBarrier   = layout.FormBarrier
)

// SyncOptions describe a new [Sync].
type SyncOptions struct {
	Form    Form
	Limit   int  // initial permits of a semaphore, or parties of a barrier
	Bounded bool // a semaphore must never have more than Limit permits
	Bytes   int  // size of the user's data after the lock, for FormMutex
}

// A Sync is this process's view of a synchronisation object in a block: a [Mutex], [RWMutex],
// [Semaphore], [Cond], [Event] or [Barrier]. These types embed it: Mutex{s} has the operations
// of a view s of [FormMutex]. Like a [Ring], a Sync holds no reference: the caller must hold the
// block as long as it uses the view. It may be used by several goroutines.
//
// Every word that belongs to a participant contains the participant's identity. So any
// participant can recognise the words of a dead one and recover from its death by itself; the
// reaper only wakes the waiters.
type Sync struct {
	d      *Domain
	h      Handle
	b      *layout.Block
	c      *layout.Cell
	id     uint64    // identity of this participant
	me     word.Lock // the lock word, without a state, when this participant holds the lock
	closed atomic.Bool

	waiting park.Queue
	watches park.Backoffs
}

// NewSync allocates a block and initialises a [Sync] in it. The caller gets one reference of the
// block, and must release it after [Sync.Close]. It returns an error if opts.Limit is not 0 to
// 2^20-1, or is 0 for a barrier, or an error of [Domain.Alloc].
func (d *Domain) NewSync(opts SyncOptions) (*Sync, error) {
	if opts.Limit < 0 || opts.Limit > word.CountMask || opts.Form == FormBarrier && opts.Limit == 0 {
		return nil, fmt.Errorf("shm: limit %d, want at most %d", opts.Limit, word.CountMask)
	}
	size := opts.Form.Size() + uint64(max(opts.Bytes, 0))
	h, err := d.allocObject(briefly, size, size, layout.ObjectSync)
	if err != nil {
		return nil, err
	}
	c, err := d.cellOf(&d.mem.Blocks[h.Block()])
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	form := uint64(opts.Form)
	if opts.Bounded {
		form |= layout.FormBounded
	}
	c.Limit.Store(uint64(opts.Limit))
	if opts.Form == FormSemaphore {
		c.State.Store(uint64(opts.Limit) << permitShift)
	}
	c.Form.Store(form)
	s, err := d.OpenSync(h, opts.Form)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	return s, nil
}

// OpenSync returns a view of the [Sync] in block h. The caller must close the view, and must
// hold the block until then. An open view of a barrier makes this participant a member. The
// error wraps [ErrCorrupt] if the block is not a Sync of the given form, [ErrStale] if h is
// stale, and [ErrClosed] if this process does not hold the block.
func (d *Domain) OpenSync(h Handle, form Form) (*Sync, error) {
	b, err := d.checkHandle(h)
	if err != nil {
		return nil, err
	}
	if layout.ExtentKind(b.Extent.Load()) != layout.ObjectSync {
		return nil, fmt.Errorf("%w: %v is not a synchronization cell", ErrCorrupt, h)
	}
	c, err := d.cellOf(b)
	if err != nil {
		return nil, err
	}
	p, err := d.bytesOf(b)
	if got := Form(c.Form.Load()); got != form || uint64(len(p)) < form.Size() {
		return nil, errors.Join(fmt.Errorf("%w: %v has form %d, want %d", ErrCorrupt, h, got, form), err)
	}
	if form != FormEvent {
		d.named.Store(true)
	}
	id := d.identity()
	s := &Sync{d: d, h: h, b: b, c: c, id: id, me: word.Lock(id | uint64(d.seat)<<word.SeatShift)}
	s.waiting = park.Queue{Lot: &d.park, Bits: &c.Waiting, Ready: s.isLockReady, Backoffs: new(park.Backoffs)}
	switch form {
	case FormSemaphore:
		s.waiting.SetReady(Semaphore{s}.isReady)
	case FormBarrier:
		Barrier{s}.joinBarrier()
	}
	d.park.Add(&s.waiting)
	return s, nil
}

// cellOf returns the cell in block b. The error wraps [ErrCorrupt] if the block is too short for
// the smallest cell. The caller must check the size for larger forms; see [Domain.fitsForm].
func (d *Domain) cellOf(b *layout.Block) (*layout.Cell, error) {
	p, err := d.bytesOf(b)
	if err == nil && len(p) < int(layout.CellHeadSize) {
		err = reportCorruption("the committed length of a cell", uint64(len(p)))
	}
	if err != nil {
		return nil, err
	}
	return (*layout.Cell)(unsafe.Pointer(&p[0])), nil
}

// fitsForm reports whether block b is long enough for the form that cell c claims to be.
func (d *Domain) fitsForm(b *layout.Block, c *layout.Cell) bool {
	p, err := d.bytesOf(b)
	return err == nil && uint64(len(p)) >= Form(c.Form.Load()).Size()
}

// Handle returns the handle of the block.
func (s *Sync) Handle() Handle { return s.h }

// Data returns the user's data of a FormMutex. It begins at a multiple of 64 bytes. Data returns
// nil if the block is corrupt. The slice is valid as long as the caller holds the block.
func (s *Sync) Data() []byte {
	p, err := s.d.bytesOf(s.b)
	if err != nil || len(p) < int(layout.CellHeadSize) {
		return nil
	}
	return p[layout.CellHeadSize:]
}

// Close closes the view. Calls that wait on it return [ErrClosed]. Close does not release the
// block, and the caller must hold the block until these calls have returned.
func (s *Sync) Close() {
	s.closed.Store(true)
	s.d.park.Remove(&s.waiting)
	s.waiting.Close()
	watch := park.Queue{Lot: &s.d.park, Bits: &s.c.Watching, Ready: s.isClosed}
	watch.ClearBit() // also wakes other watchers
	s.d.park.WakeBarrier()
	if Form(s.c.Form.Load()) == FormBarrier {
		s.dropShare()
	}
}

// isClosed reports whether the view or its domain is closed.
func (s *Sync) isClosed() bool { return s.closed.Load() || s.d.closed.Load() }

// retryUntilAcquired calls try until it returns an error other than [ErrLocked], and waits between
// the calls. When ctx ends, it calls try once more, and then returns the context's cause. It
// returns [ErrClosed] if the view or the domain is closed.
//
// Invariant (docs/memory.md, "Cells"): a goroutine that stops waiting, with or without the
// resource, must pass its wakeup on. Otherwise a wakeup that reached a goroutine just when its
// context ended would be lost to the other waiters.
func (s *Sync) retryUntilAcquired(ctx context.Context, try func() error) error {
	var ended error
	for waited := false; ; waited = true {
		if s.isClosed() {
			return ErrClosed
		}
		err := try()
		if err != ErrLocked {
			if waited {
				s.waiting.PassWakeup()
			}
			return err
		}
		if ended != nil {
			return ended
		}
		ended = s.waiting.Await(ctx, s.isClosed)
	}
}

// watchUntil blocks until ready reports true or ctx ends. The participant that makes ready true
// must wake all participants in the watching bitmap. watchUntil returns the cause of ctx if ctx
// ends, and [ErrClosed] if the view or the domain is closed.
//
// Because all watchers are woken, watchUntil has no wakeup to pass on, and a spurious wakeup
// costs one call of ready.
func (s *Sync) watchUntil(ctx context.Context, ready func() bool) error {
	wake := func() bool { return ready() || s.isClosed() }
	if s.d.park.SpinUntil(ctx, &s.watches.Spin, wake) {
		return s.closedError()
	}
	if err := s.d.park.ParkUntil(ctx, &s.c.Watching, wake, &s.watches); err != nil {
		return err
	}
	return s.closedError()
}

// closedError returns [ErrClosed] if the view or the domain is closed, and nil otherwise.
func (s *Sync) closedError() error {
	if s.isClosed() {
		return ErrClosed
	}
	return nil
}
