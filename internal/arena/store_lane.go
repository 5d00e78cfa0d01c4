package arena

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"
)

// The last lane is the reaper's: all others may be waiting for what only a reaper can clear.
const (
	commonLanes = lanesPerSeat - 1
	reaperLane  = commonLanes
)

// A lane is one of this process's operation contexts. At most one operation at a time runs in it,
// so its stamp names one.
type lane struct {
	busy atomic.Uint32
	id   uint32
	d    *Domain
	rec  *laneRec
	mags *[magazineClasses]magazine // nil until it frees: a process that joins should not touch 100 KiB first
	// keeps has a bit for each class of which mags may have blocks. Only a gather takes bits back,
	// so that other lanes look at mags seldom.
	keeps atomic.Uint64
	// reaping is the participants that a reaper in this lane reaps, with the recovery lock, or nil.
	reaping *deadSet
	handed  uint64       // bytes of the blocks that were made here since garbage was last collected for them
	users   atomic.Int32 // 0, or how many of two goroutines have yet to leave a lane that was lent
	aside   bool         // it ends objects by itself: see finaliseAside
	left    atomic.Bool  // for good, in the middle of an operation that the reaper ends
	_       [64]byte
}

func (l *lane) tryLock() bool { return l.busy.Load() == 0 && l.busy.CompareAndSwap(0, 1) }

func (l *lane) lock() { eventually(l.tryLock) }

// unlock wakes nobody: a look for waiters would take a barrier in every operation, and there hardly
// ever is one.
func (l *lane) unlock() {
	if l.users.Load() != 0 {
		l.leave()
		return
	}
	set32(&l.busy, 0)
}

// lend has a goroutine end the operation that goes on in the lane, which is free again when both
// the goroutine and the caller have unlocked it. The caller does nothing else in it.
func (l *lane) lend(f func()) {
	l.users.Store(2)
	spawn(f)
}

func (l *lane) leave() {
	if l.users.Add(-1) == 0 {
		l.busy.Store(0)
	}
}

// abandon leaves the operation that goes on in the lane to the reaper: the domain is closed.
func (l *lane) abandon() { l.left.Store(true) }

// eventually tries until it succeeds, less and less often.
func eventually(try func() bool) {
	for pause := time.Microsecond; !try(); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
	}
}

// enter takes a free lane. The address of a local variable tells goroutines apart well enough to
// spread them.
//
// enter reads closed once it has the lane: Close sets closed and then takes every lane, so an
// operation ends before the participant leaves, or never begins.
func (d *Domain) enter() (*lane, error) { return d.enterFor(context.Background()) }

// enterFor waits for a lane no longer than ctx.
func (d *Domain) enterFor(ctx context.Context) (*lane, error) {
	var here byte
	at := int(uintptr(unsafe.Pointer(&here))>>13) % commonLanes
	if crashing && controlled() {
		at = controlledLane()
	}
	l := &d.lanes[at]
	if !l.tryLock() {
		if l = d.otherLane(ctx, at); l == nil {
			return nil, d.noLane(ctx)
		}
	}
	if d.closed.Load() { // Close holds all lanes but one
		l.unlock()
		return nil, ErrClosed
	}
	return l, nil
}

// noLane returns why there is none.
func (d *Domain) noLane(ctx context.Context) error {
	if d.closed.Load() {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// otherLane returns nil when the domain is closed, since Close keeps the lanes, or when ctx ends.
func (d *Domain) otherLane(ctx context.Context, at int) (l *lane) {
	eventually(func() bool {
		for i := range commonLanes {
			if l = &d.lanes[(at+i)%commonLanes]; l.tryLock() {
				return true
			}
		}
		l = nil
		return d.closed.Load() || ctx.Err() != nil
	})
	return l
}
