package shm

import (
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
	// reaping is set while a reaper runs in this lane, with the recovery lock: whom it reaps.
	reaping *deadSet
	handed  uint64 // bytes of the blocks that were made here since garbage was last collected for them
	_       [64]byte
}

func (l *lane) tryLock() bool { return l.busy.Load() == 0 && l.busy.CompareAndSwap(0, 1) }

func (l *lane) lock() { eventually(l.tryLock) }

// unlock wakes nobody: to look for who waits would take a barrier in every operation, and hardly
// ever does anybody.
func (l *lane) unlock() { set32(&l.busy, 0) }

// eventually tries until it succeeds, less and less often.
func eventually(try func() bool) {
	for pause := time.Microsecond; !try(); pause = min(2*pause, time.Millisecond) {
		time.Sleep(pause)
	}
}

// enter takes a free lane. The address of a local variable tells goroutines apart well enough to
// spread them.
//
// closed is looked at again with the lane taken: Close takes every lane after it has set it, so an
// operation either ends before the participant leaves or never begins.
func (d *Domain) enter() (*lane, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	l := d.anyLane()
	if l == nil {
		return nil, ErrClosed
	}
	if d.closed.Load() { // Close holds all lanes but one
		l.unlock()
		return nil, ErrClosed
	}
	return l, nil
}

func (d *Domain) anyLane() *lane {
	if crashing && controlled() {
		return d.otherLane(controlledLane())
	}
	var here byte
	at := int(uintptr(unsafe.Pointer(&here))>>13) % commonLanes
	if l := &d.lanes[at]; l.tryLock() {
		return l
	}
	return d.otherLane(at)
}

// otherLane returns nil when the domain is closed, since Close keeps the lanes.
func (d *Domain) otherLane(at int) (l *lane) {
	eventually(func() bool {
		for i := range commonLanes {
			if l = &d.lanes[(at+i)%commonLanes]; l.tryLock() {
				return true
			}
		}
		l = nil
		return d.closed.Load()
	})
	return l
}
