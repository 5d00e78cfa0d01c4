package arena

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// The last lane is reserved for the reaper: all others may be waiting for something that only a
// reaper can clear.
const (
	commonLanes = layout.LanesPerSeat - 1
	reaperLane  = commonLanes
)

// A lane is one of this process's operation contexts. It runs at most one operation at a time,
// so its stamp identifies one operation. A goroutine must lock a lane, usually by
// [Domain.acquireLane], before it calls the lane's other methods.
type lane struct {
	busy atomic.Uint32
	id   uint32
	d    *Domain
	rec  *layout.LaneRecord
	// nil until the lane frees a block: a joining process should not touch 100 KiB first
	mags *[magazineClasses]magazine
	// keeps has a bit for each class that mags may have blocks of. Only gatherFree clears bits, so
	// that other lanes seldom look at mags.
	keeps atomic.Uint64
	// reaping is the set of participants that a reaper in this lane reaps. It is nil unless this
	// lane holds the recovery lock.
	reaping *deadSet
	// bytes of blocks handed out in this lane since the last collection for them
	handed uint64
	// number of goroutines, of two, that have yet to leave a lent lane; otherwise 0
	users atomic.Int32
	aside bool // the lane may finalise objects itself; see finaliseInOtherLane
	// abandoned in the middle of an operation, which the reaper completes
	left atomic.Bool
	_    [64]byte
}

func (l *lane) tryLock() bool { return l.busy.Load() == 0 && l.busy.CompareAndSwap(0, 1) }

func (l *lane) lock() { retryUntil(l.tryLock) }

// unlock releases the lane. It wakes no waiter: a check for waiters would need a barrier in every
// operation, and there are hardly ever any.
func (l *lane) unlock() {
	if l.users.Load() != 0 {
		l.dropUser()
		return
	}
	word.Set32(&l.busy, 0)
}

// lendLane completes the lane's current operation by calling f in a goroutine. The lane is free
// again after both f and the caller have unlocked it. The caller must not use the lane otherwise.
func (l *lane) lendLane(f func()) {
	l.users.Store(2)
	word.Spawn(f)
}

func (l *lane) dropUser() {
	if l.users.Add(-1) == 0 {
		l.busy.Store(0)
	}
}

// abandonOperation leaves the lane's current operation to the reaper, because the domain is
// closed. The lane stays locked, and must not be used any more.
func (l *lane) abandonOperation() { l.left.Store(true) }

// retryUntil calls try until it returns true, at growing intervals.
func retryUntil(try func() bool) {
	for pause := time.Microsecond; !try(); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
	}
}

// acquireLane locks a free lane and returns it. The caller must unlock it. It returns [ErrClosed]
// if the domain is closed. The lane to try first is derived from the address of a local variable,
// which spreads goroutines well enough.
//
// acquireLane must read closed after it has locked the lane: Close sets closed and then locks every
// lane, so an operation either ends before the participant leaves, or never begins.
func (d *Domain) acquireLane() (*lane, error) { return d.acquireLaneFor(context.Background()) }

// acquireLaneFor is acquireLane, but waits for a lane only until ctx ends, and then returns the
// cause of ctx.
func (d *Domain) acquireLaneFor(ctx context.Context) (*lane, error) {
	var here byte
	at := int(uintptr(unsafe.Pointer(&here))>>13) % commonLanes
	if word.Crashing && word.IsControlled() {
		at = word.ControlledLane()
	}
	l := &d.lanes[at]
	if !l.tryLock() {
		if l = d.awaitLane(ctx, at); l == nil {
			return nil, d.noLaneError(ctx)
		}
	}
	if d.closed.Load() { // Close holds all lanes but one
		l.unlock()
		return nil, ErrClosed
	}
	return l, nil
}

// noLaneError returns the reason why no lane was available: [ErrClosed] if the domain is closed,
// and otherwise the cause of ctx.
func (d *Domain) noLaneError(ctx context.Context) error {
	if d.closed.Load() {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// awaitLane waits for a free lane, beginning its search at index at, and returns it locked. It
// returns nil if the domain is closed, because Close keeps the lanes, or if ctx ends.
func (d *Domain) awaitLane(ctx context.Context, at int) (l *lane) {
	retryUntil(func() bool {
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
