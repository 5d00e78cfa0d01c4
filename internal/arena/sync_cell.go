package arena

import (
	"context"
	"errors"
	"fmt"
	"structs"
	"sync/atomic"
	"unsafe"
)

// A cell is the head of a block by which processes synchronise. One layout serves all of them; a
// form that needs no words per participant ends before shares, and its user's data begin there.
type cell struct {
	_ structs.HostLayout

	lock  wordOf[lockWord] // who holds it: identity 44 | seat 8 | 0 10 | state 2
	state Word             // of the form: permits, a turn, a flag
	limit Word             // never changes: the permits of a semaphore at first, the parties of a barrier
	form  Word             // never changes: Form, and whether a semaphore is bounded
	dead  Word             // the participant whose death it suffers from, as in lock
	owner Word             // of a recursive mutex: which owner in the process that holds it
	depth Word             // and how often
	_     [8]byte

	waiting  [ownWords]Word // waiters for what one of them can have: one is woken
	watching [ownWords]Word // waiters for what all of them see: all are woken

	shares  [maxParticipants]Word // what each has of it: identity 44 | count 20
	tickets [maxParticipants]Word // who waits in each: arrived 32 | served 32
}

// A Form says what a Sync is.
type Form uint8

// The forms. An object that needs a lock, a word and data has FormMutex as well.
const (
	FormMutex Form = iota + 1
	FormRWMutex
	FormSemaphore
	FormCond
	FormEvent
	FormBarrier
)

const formBounded = 1 << 8

const cellHead = unsafe.Offsetof(cell{}.shares)

// size returns the bytes of the form's cell.
func (f Form) size() uint64 {
	switch f {
	case FormRWMutex, FormSemaphore:
		return uint64(unsafe.Offsetof(cell{}.tickets))
	case FormCond, FormBarrier:
		return uint64(unsafe.Sizeof(cell{}))
	}
	return uint64(cellHead)
}

// SyncOptions describe a new Sync.
type SyncOptions struct {
	Form    Form
	Limit   int  // permits of a semaphore, parties of a barrier
	Bounded bool // a semaphore never has more permits than Limit
	Bytes   int  // of data beside the lock of a FormMutex
}

// A Sync is this process's view of a block by which processes synchronise: a [Mutex], an [RWMutex],
// a [Semaphore], a [Cond], an [Event] or a [Barrier]. Like a [Ring] it does not hold the block.
//
// The words that say what a process has of it carry the process's identity. So any participant can
// tell what belongs to a dead one, and goes on without it: a reaper only wakes the waiters.
type Sync struct {
	d      *Domain
	h      Handle
	b      *block
	c      *cell
	id     uint64   // identity of this participant
	me     lockWord // the lock word that says that it holds the lock
	closed atomic.Bool

	waiting waitQueue
	watches backoffs
}

// NewSync makes a Sync. The caller holds its block once and releases it after Close.
func (d *Domain) NewSync(opts SyncOptions) (*Sync, error) {
	if opts.Limit < 0 || opts.Limit > countMask || opts.Form == FormBarrier && opts.Limit == 0 {
		return nil, fmt.Errorf("shm: a limit of %d: want at most %d", opts.Limit, countMask)
	}
	size := opts.Form.size() + uint64(max(opts.Bytes, 0))
	h, err := d.allocObject(briefly, size, size, objectSync)
	if err != nil {
		return nil, err
	}
	c, err := d.cellOf(&d.blocks[h.index()])
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	form := uint64(opts.Form)
	if opts.Bounded {
		form |= formBounded
	}
	c.limit.Store(uint64(opts.Limit))
	if opts.Form == FormSemaphore {
		c.state.Store(uint64(opts.Limit) << permitShift)
	}
	c.form.Store(form)
	s, err := d.OpenSync(h, opts.Form)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	return s, nil
}

// OpenSync returns a view of the Sync in the block h, which this process holds and which must be of
// this form.
func (d *Domain) OpenSync(h Handle, form Form) (*Sync, error) {
	b, err := d.check(h)
	if err != nil {
		return nil, err
	}
	if extKind(b.ext.Load()) != objectSync {
		return nil, fmt.Errorf("%w: %v is nothing to synchronise by", ErrCorrupt, h)
	}
	c, err := d.cellOf(b)
	if err != nil {
		return nil, err
	}
	p, err := d.bytesOf(b)
	if got := Form(c.form.Load()); got != form || uint64(len(p)) < form.size() {
		return nil, errors.Join(fmt.Errorf("%w: %v is of form %d, not %d", ErrCorrupt, h, got, form), err)
	}
	id := d.identity()
	s := &Sync{d: d, h: h, b: b, c: c, id: id, me: lockWord(id | uint64(d.seat)<<idSeatShift)}
	s.waiting = waitQueue{d: d, bits: &c.waiting, ready: s.lockReady, backoffs: new(backoffs)}
	switch form {
	case FormSemaphore:
		s.waiting.ready = Semaphore{s}.ready
	case FormBarrier:
		Barrier{s}.join()
	}
	d.park.add(&s.waiting)
	return s, nil
}

func (d *Domain) cellOf(b *block) (*cell, error) {
	p, err := d.bytesOf(b)
	if err == nil && len(p) < int(cellHead) {
		err = corrupt("the committed length of a cell", uint64(len(p)))
	}
	if err != nil {
		return nil, err
	}
	return (*cell)(unsafe.Pointer(&p[0])), nil
}

// fits reports whether a cell of this form has room in its block.
func (d *Domain) fits(b *block, c *cell) bool {
	p, err := d.bytesOf(b)
	return err == nil && uint64(len(p)) >= Form(c.form.Load()).size()
}

// Handle returns the handle of the block.
func (s *Sync) Handle() Handle { return s.h }

// Data returns the bytes beside the lock of a FormMutex, which begin at a multiple of 64.
func (s *Sync) Data() []byte {
	p, err := s.d.bytesOf(s.b)
	if err != nil || len(p) < int(cellHead) {
		return nil
	}
	return p[cellHead:]
}

// Close forgets the view: calls that wait on it return ErrClosed. It releases nothing, and the
// caller holds the block until these calls have returned.
func (s *Sync) Close() {
	s.closed.Store(true)
	s.d.park.remove(&s.waiting)
	s.waiting.shut()
	watch := waitQueue{d: s.d, bits: &s.c.watching, ready: s.over}
	watch.leave() // wakes the watchers as well
	s.d.park.wakeBarrier()
	if Form(s.c.form.Load()) == FormBarrier {
		s.unshare()
	}
}

func (s *Sync) over() bool { return s.closed.Load() || s.d.closed.Load() }

// acquire calls try until it returns anything but ErrLocked. After the end of ctx there is one more
// try.
//
// Invariant (docs/memory.md, "Cells"): a goroutine that has waited and goes, with what it wanted or
// without, passes the wakeup on. A wakeup that reached a goroutine whose context ended just then is
// not lost for the others.
func (s *Sync) acquire(ctx context.Context, try func() error) error {
	var ended error
	for waited := false; ; waited = true {
		if s.over() {
			return ErrClosed
		}
		err := try()
		if err != ErrLocked {
			if waited {
				s.waiting.passWakeup()
			}
			return err
		}
		if ended != nil {
			return ended
		}
		ended = s.waiting.pause(ctx, s.over)
	}
}

// watch waits until ready. The participant that makes ready true wakes all watchers.
//
// So no wakeup has to be passed on, and one that comes for nothing costs a look.
func (s *Sync) watch(ctx context.Context, ready func() bool) error {
	wake := func() bool { return ready() || s.over() }
	if s.d.spin(&s.watches.spin, wake) {
		return s.ended()
	}
	if err := s.d.park.await(ctx, s.d, &s.c.watching, wake, &s.watches); err != nil {
		return err
	}
	return s.ended()
}

func (s *Sync) ended() error {
	if s.over() {
		return ErrClosed
	}
	return nil
}
