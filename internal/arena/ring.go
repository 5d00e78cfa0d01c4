package arena

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Ring is a bounded queue of messages, with any number of senders and receivers in any
// participants of the domain. A message owns one reference to each block that it carries, so its
// sender may die before the message is received.
//
// A Ring value is this process's view. It does not hold the ring's block: its user must hold the
// block by its handle. Its methods may be called from several goroutines.
type Ring struct {
	d     *Domain
	h     Handle
	b     *layout.Block
	hdr   *layout.RingHeader
	slots unsafe.Pointer
	cap   uint64
	bits  int
	limit uint64
	news  bool
	ready atomic.Uint64 // number of slots known to this view to have pages
	seen  atomic.Uint64 // the head as last read by this view
	gone  atomic.Bool   // the view is closed

	notEmpty park.Queue
	notFull  park.Queue
}

// SlotSize is the size of a ring's slot in bytes. Each message takes one. A message that does not
// fit goes into a block of its own.
const SlotSize = layout.SlotSize

// RingOptions describes a new ring.
type RingOptions struct {
	// Capacity is the maximum number of messages. It must be 1 to 2^30.
	Capacity int
	// Grow commits the ring's pages as they are needed instead of all at once. It should be set for
	// a ring that is practically unbounded. A ring of more than a MiB grows in any case: committing
	// and clearing its pages would take longer than all else, and few rings are ever full.
	Grow bool
	// News makes a ring with a newest message that every participant can read by [Ring.Peek] while
	// it stays in the ring.
	News bool
	// Label describes the messages in errors. It is truncated to 72 bytes.
	Label string
}

// mostCommitted is the size of the largest ring whose pages are committed when it is made.
const mostCommitted = 1 << 20

// NewRing makes a ring and the tokens of its two ends. The caller holds each of the three blocks
// once, and must release them by [Domain.Release] after [Ring.Close]. After the last sending end
// is gone, receivers drain the ring and then get [ErrFinished]. NewRing returns an error if
// opts.Capacity is out of range, or an error of [Domain.Alloc].
func (d *Domain) NewRing(opts RingOptions) (r *Ring, senders, receivers Handle, err error) {
	if opts.Capacity < 1 || opts.Capacity > 1<<30 {
		return nil, 0, 0, fmt.Errorf("shm: new ring: capacity %d, want 1 to 2^30", opts.Capacity)
	}
	slots := uint64(1) << bits.Len64(uint64(opts.Capacity-1))
	size := layout.RingHeaderSize + slots*layout.SlotSize
	commit := size
	if opts.Grow || size > mostCommitted {
		commit = min(size, 16*layout.PageSize)
	}
	h, err := d.allocObject(briefly, size, commit, layout.ObjectRing)
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Release(h))
		}
	}()
	hdr, err := d.ringHeader(&d.mem.Blocks[h.Block()])
	if err != nil {
		return nil, 0, 0, err
	}
	if senders, err = d.newEnd(h, layout.ObjectSenders); err != nil {
		return nil, 0, 0, err
	}
	if receivers, err = d.newEnd(h, layout.ObjectReceivers); err != nil {
		return nil, 0, 0, errors.Join(err, d.Release(senders))
	}
	flags := uint64(0)
	if opts.News {
		flags = layout.RingNews
	}
	hdr.Flags.Store(flags)
	hdr.Senders.Store(uint64(senders))
	hdr.Receivers.Store(uint64(receivers))
	hdr.Limit.Store(uint64(opts.Capacity))
	hdr.SetLabel(opts.Label)
	hdr.Capacity.Store(slots)
	r, err = d.OpenRing(h)
	return r, senders, receivers, err
}

// OpenRing returns a view of the ring in the block h. The caller must close the view, and this
// process must hold the block until then. It returns [ErrCorrupt] if h is not a ring, or is the
// board of names, [ErrStale] if h is stale, and [ErrClosed] if this process does not hold the
// block.
func (d *Domain) OpenRing(h Handle) (*Ring, error) {
	b, err := d.checkHandle(h)
	if err != nil {
		return nil, err
	}
	if layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing {
		return nil, fmt.Errorf("%w: %v is not a ring", ErrCorrupt, h)
	}
	r, err := d.ringOf(b)
	if err != nil {
		return nil, err
	}
	if r.hasFlags(layout.RingBoard) {
		return nil, fmt.Errorf("%w: %v is the board of names", ErrCorrupt, h)
	}
	r.h = h
	r.notEmpty = park.Queue{Lot: &d.park, Bits: &r.hdr.NotEmpty, Ready: r.isReadable, Backoffs: new(park.Backoffs)}
	if r.news {
		r.notEmpty.SetReady(r.isClosed) // no message is taken, so no wakeup is passed on
	}
	r.notFull = park.Queue{Lot: &d.park, Bits: &r.hdr.NotFull, Ready: r.isWritable, Backoffs: new(park.Backoffs)}
	d.park.Add(&r.notEmpty, &r.notFull)
	return r, nil
}

// ringOf returns a view without wait queues, for reapers and observers. It need not be closed,
// and must not be used to wait. It returns [ErrCorrupt] if b has no valid ring.
func (d *Domain) ringOf(b *layout.Block) (*Ring, error) {
	hdr, err := d.ringHeader(b)
	if err != nil {
		return nil, err
	}
	_, most, err := d.blockRange(b.Extent.Load())
	if err != nil {
		return nil, err
	}
	return d.ringIn(b, hdr, most)
}

// ringIn returns a view, as [Domain.ringOf] does, of the ring with the header hdr in block b.
// most is the maximum size of b in bytes. It returns [ErrCorrupt] if the header is invalid.
func (d *Domain) ringIn(b *layout.Block, hdr *layout.RingHeader, most uint64) (*Ring, error) {
	n, limit, err := hdr.Size(most)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r := &Ring{d: d, b: b, hdr: hdr, limit: limit, slots: hdr.Slots(), cap: n, bits: bits.TrailingZeros64(n)}
	r.news = r.hasFlags(layout.RingNews)
	r.isBacked(0)
	return r, nil
}

func (d *Domain) ringHeader(b *layout.Block) (*layout.RingHeader, error) {
	p, err := d.bytesOf(b)
	if err == nil && len(p) < layout.RingHeaderSize {
		err = reportCorruption("the committed length of a ring", uint64(len(p)))
	}
	if err != nil {
		return nil, err
	}
	return (*layout.RingHeader)(unsafe.Pointer(&p[0])), nil
}

// Close closes the view. Calls that wait on it return [ErrClosed]. It releases no reference, and
// the caller must hold the ring's block until these calls have returned.
func (r *Ring) Close() {
	r.gone.Store(true)
	r.d.park.Remove(&r.notEmpty, &r.notFull)
	r.notEmpty.Close()
	r.notFull.Close()
}

// Handle returns the handle of the ring's block.
func (r *Ring) Handle() Handle { return r.h }

// Cap returns the maximum number of messages.
func (r *Ring) Cap() int { return int(r.limit) }

// Senders returns the handle of the sending end's token.
func (r *Ring) Senders() Handle { return Handle(r.hdr.Senders.Load()) }

// Receivers returns the handle of the receiving end's token.
func (r *Ring) Receivers() Handle { return Handle(r.hdr.Receivers.Load()) }

// Len returns the number of claimed messages. It includes messages that are being put and excludes
// messages that are being read. The number may have changed by the time Len returns.
func (r *Ring) Len() int {
	for head := r.hdr.Head.Load(); ; {
		tail := r.hdr.Tail.Load()
		again := r.hdr.Head.Load()
		if head == again { // both values were current when the tail was read
			n := int(min(max(int64(tail-head), 0), int64(r.limit)))
			if r.hasReturns() {
				n += r.countBehind(word.SlotFull)
			}
			return n
		}
		head = again
	}
}

// Empty reports whether the ring has no message. A message that is being put counts, because a
// get would wait for it. A slot that a dead sender has left unwritten (SKIP) does not count.
func (r *Ring) Empty() bool {
	if r.hasReturns() && r.countBehind(word.SlotFull) > 0 {
		return false
	}
	r.advanceHead()
	tk := r.hdr.Head.Load()
	for range r.cap {
		if !r.isBacked(tk) {
			return true
		}
		switch w := r.slot(tk).Word.Load(); {
		case w.Lap() != r.lap(tk):
			return false // another get has advanced the head meanwhile
		case w.State() != word.SlotSkip:
			return w.State() == word.SlotEmpty
		}
		tk++
	}
	return true
}

// Finish marks the ring as finished. Further puts fail with [ErrFinished], and gets fail with it
// once the ring is empty.
func (r *Ring) Finish() {
	r.hdr.Flags.Or(layout.RingFinished)
	r.d.park.WakeBits(&r.hdr.NotEmpty)
	r.d.park.WakeBits(&r.hdr.NotFull)
}

// isClosed reports whether waits on this view must end, because the view or the domain is closed.
func (r *Ring) isClosed() bool { return r.gone.Load() || r.d.closed.Load() }

func (r *Ring) hasFlags(flags uint64) bool { return r.hdr.Flags.Load()&flags != 0 }

// finishedError returns the error for a ring without receivers or senders. without is
// layout.RingNoReceivers or layout.RingNoSenders. The error is [ErrFinished], or a *PeerError
// that wraps it if the ring ended by the death of the last holder of that end.
func (r *Ring) finishedError(without uint64) error {
	w := r.hdr.Dead[0].Load()
	if without == layout.RingNoReceivers {
		w = r.hdr.Dead[1].Load()
	}
	if w == 0 || r.hasFlags(layout.RingFinished) {
		return ErrFinished
	}
	return newPeerError(word.Lock(w), ErrFinished)
}

// lap returns the lap of a ticket: the number of times that the tickets before it have filled
// the ring, modulo 2^44.
func (r *Ring) lap(ticket uint64) uint64 { return layout.LapOf(ticket, r.bits) }

func (r *Ring) slot(ticket uint64) *layout.Slot {
	return (*layout.Slot)(unsafe.Add(r.slots, (ticket&(r.cap-1))*layout.SlotSize))
}

// slotIndex returns the index of slot s in the ring.
func (r *Ring) slotIndex(s *layout.Slot) uint64 {
	return uint64(uintptr(unsafe.Pointer(s))-uintptr(r.slots)) / layout.SlotSize
}

// isBacked reports whether the slot of ticket has pages. A slot without pages must not be touched:
// the access would use memory that is not charged to the budget.
func (r *Ring) isBacked(ticket uint64) bool {
	i := ticket & (r.cap - 1)
	if i < r.ready.Load() {
		return true
	}
	n := r.cap
	if c := r.b.Committed.Load(); c >= layout.RingHeaderSize { // a small block shares the pages of its slab
		n = min((c-layout.RingHeaderSize)/layout.SlotSize, n)
	}
	r.ready.Store(n)
	return i < n
}

// isReadable reports whether a get would return without waiting.
func (r *Ring) isReadable() bool {
	if r.hasReturns() {
		return true
	}
	tk := r.hdr.Head.Load()
	if r.isBacked(tk) {
		w := r.slot(tk).Word.Load()
		lap := r.lap(tk)
		switch st := w.State(); {
		case w.IsAfter(lap), w.Lap() == lap && st != word.SlotEmpty && st != word.SlotWriting:
			return true
		case w.Lap() == lap && st == word.SlotWriting:
			return r.isClosed() // regardless of the flags, this message comes first
		}
	}
	return r.hasFlags(layout.RingFinished|layout.RingNoSenders) && !r.hasOutstanding() || r.isClosed()
}

// isWritable reports whether a put would return without waiting.
func (r *Ring) isWritable() bool {
	tk := r.hdr.Tail.Load()
	if !r.isBacked(tk) {
		return true
	}
	w := r.slot(tk).Word.Load()
	return !w.IsBefore(r.lap(tk)) && !r.exceedsLimit(tk) || r.hasFlags(layout.RingFinished|layout.RingNoReceivers) ||
		r.isClosed()
}

// checkRoom returns nil if a TryPut would find a free slot, errGetting if another lane is still
// reading the slot, and otherwise [ErrFull].
func (r *Ring) checkRoom() error {
	for {
		tk := r.hdr.Tail.Load()
		if !r.isBacked(tk) {
			return nil
		}
		limited := r.exceedsLimit(tk)
		switch w, lap := r.slot(tk).Word.Load(), r.lap(tk); {
		case r.hdr.Tail.Load() != tk:
		case limited:
			return ErrFull
		case w.IsBefore(lap):
			return fullError(w, lap)
		default:
			return nil
		}
	}
}

// Note [Unfinished neighbours] A message is in the ring from the claim of its slot for writing
// until the claim of its slot for reading. So Len, ErrFull and ErrEmpty agree. A lane that finds
// its slot claimed by another lane must return neither ErrEmpty nor ErrFull: an earlier message may
// stand behind a slot that is WRITING, and a slot that is READING may be the only one that is not
// free. So tries wait for that lane, as they do for its stamps (Note [Stopped processes]).
var (
	errPutting error = &unfinished{ErrEmpty, "message is still being put"}
	errGetting error = &unfinished{ErrFull, "slot is still being read"}
)

// unfinished is the result of an attempt that must wait for another lane to finish first.
type unfinished struct {
	wait error // the error as which a waiting call treats it
	what string
}

func (u *unfinished) Error() string { return "shm: the next " + u.what }
func (u *unfinished) Unwrap() error { return u.wait }

// Get is [Ring.TryGet], but waits for a message until ctx ends, and then tries once more. It
// returns the cause of ctx if there is still no message, and [ErrClosed] if the view or the
// domain is closed while it waits. A Get that returns an error has taken no message, unless the
// error is [ErrCorrupt].
func (r *Ring) Get(ctx context.Context, m *Message) error {
	return r.awaitMessage(ctx, func(ctx context.Context) error { return r.tryGet(ctx, m) })
}

// awaitMessage repeats try while it returns ErrEmpty, until ctx ends, and then tries once more.
// It returns the cause of ctx if there is still no message, [ErrClosed] if the view or the
// domain is closed, and otherwise the result of try.
func (r *Ring) awaitMessage(ctx context.Context, try func(context.Context) error) error {
	var ended error
	for waited := false; ; waited = true {
		err := try(ctx)
		if ended != nil && isPastDeadline(ctx) {
			err = r.awaitPut(err, try)
		}
		if err == nil || !errors.Is(err, ErrEmpty) {
			if waited {
				r.notEmpty.PassWakeup()
			}
			return err
		}
		if ended != nil {
			return ended
		}
		if ended = r.notEmpty.Await(ctx, r.isClosed); ended == ErrClosed {
			return ended
		}
	}
}

// awaitPut repeats try while its last result, err, is errPutting, and returns the last result.
// After a wait without success it tries once more, because the other lane may have finished just
// then, and then returns the error of the wait.
func (r *Ring) awaitPut(err error, try func(context.Context) error) error {
	for err == errPutting {
		if word.IsDisabled("unfinished put") {
			return ErrEmpty
		}
		waited := r.awaitOtherLane(&r.notEmpty, r.isReadable)
		if err = try(briefly); err == errPutting && waited != nil {
			return waited
		}
	}
	return err
}

// isPastDeadline reports whether ctx ended by its deadline, and not by a cancellation. The caller
// should then check the ring once more before it reports that the ring is empty or full.
func isPastDeadline(ctx context.Context) bool { return ctx.Err() == context.DeadlineExceeded }

// awaitOtherLane waits for up to one second until ready reports that the lane that was in the
// way has gone on. l is the wait queue to wait in. It returns [context.DeadlineExceeded] after
// that time.
func (r *Ring) awaitOtherLane(l *park.Queue, ready func() bool) error {
	ctx, cancel := beginWait(briefly)
	defer cancel()
	return r.awaitReady(ctx, l, ready)
}

// Await waits until a get would return without waiting: there is a message, or there will never
// be one. Another receiver may take the message first. Await returns the cause of ctx if ctx
// ends, and [ErrClosed] if the view or the domain is closed.
func (r *Ring) Await(ctx context.Context) error {
	err := r.awaitReady(ctx, &r.notEmpty, r.hasPending)
	if err != nil && isPastDeadline(ctx) && !r.Empty() {
		return r.awaitOtherLane(&r.notEmpty, r.hasPending)
	}
	return err
}

// AwaitRoom waits until a put would return without waiting: there is a free slot, or the put
// would fail. Another sender may take the slot first. The errors are the same as for
// [Ring.Await].
func (r *Ring) AwaitRoom(ctx context.Context) error {
	err := r.awaitReady(ctx, &r.notFull, r.isWritable)
	if err != nil && isPastDeadline(ctx) {
		if found := r.checkRoom(); found == nil || found == errGetting { // there may be room by now
			return r.awaitOtherLane(&r.notFull, r.isWritable)
		}
	}
	return err
}

func (r *Ring) awaitReady(ctx context.Context, l *park.Queue, ready func() bool) error {
	for !ready() {
		if err := l.Await(ctx, r.isClosed); err != nil {
			return err
		}
	}
	if r.isClosed() {
		l.ClearBit()
		return ErrClosed
	}
	l.PassWakeup() // the message or the slot is still available to others
	return nil
}

// hasPending is isReadable, ignoring messages that are being read.
func (r *Ring) hasPending() bool {
	r.advanceHead()
	return r.isReadable()
}

// exceedsLimit reports whether the message with ticket tk would exceed the ring's limit, which may
// be less than the number of slots. The head's cache line belongs to the readers, and the head only
// increases. So exceedsLimit reads the head only if the value that it has cached leaves no room.
//
// A stale head is never ahead of the true one. So a put that exceedsLimit admits has room, and a
// put that it refuses was checked against the current head.
func (r *Ring) exceedsLimit(tk uint64) bool {
	// the tail is a hint and may be behind the head
	full := func(head uint64) bool { return int64(tk-head) >= int64(r.limit) }
	if !full(r.seen.Load()) {
		return false
	}
	head := r.hdr.Head.Load()
	if full(head) {
		r.advanceHead() // a reader may have died before it advanced the head
		head = r.hdr.Head.Load()
	}
	word.SetLocal(&r.seen, head)
	return full(head)
}

// advanceHead advances the head past messages that have been read, or are being read or leased.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): only a slot that is READING, or
// LEASED, in the head's own lap may be passed. A slot that is READING in the lap before has not
// been emptied for this ticket: to pass it would skip the next message for ever. A slot that is
// farther ahead than the next lap is left to claimOldest, which reports the corruption.
func (r *Ring) advanceHead() {
	for {
		tk := r.hdr.Head.Load()
		if !r.isBacked(tk) {
			return
		}
		w, lap := r.slot(tk).Word.Load(), r.lap(tk)
		if w.IsBefore(lap) || w.IsAfter(lap+1) ||
			w.Lap() == lap && w.State() != word.SlotReading && w.State() != word.SlotLeased {
			return
		}
		r.advancePast(tk, w)
	}
}
