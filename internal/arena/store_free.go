package arena

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// tryFree frees the block if it has no holder: no participant's bit is set and no message holds
// it. An object that has to wait when it ends is finalised in another lane, and tryFree waits
// for that for up to a second. If the domain is closed while this lane finalises an object,
// l.left is set, and the caller must neither use nor unlock the lane.
//
// With t = 0 only a holder could send the block, so the stamp keeps new references from
// arriving, and the four words of own may be read one after the other. A holder that clears its
// bit meanwhile sees the stamp and does not try to free. So tryFree must look again after it has
// cleared the stamp.
func (l *lane) tryFree(index uint32) {
	b := &l.d.mem.Blocks[index]
	for {
		w := b.State.Load()
		if w&(word.AllocBit|word.TMask|word.StampMask) != word.AllocBit || b.IsOwned() {
			return
		}
		if !l.aside && layout.ExtentKind(b.Extent.Load()).FinaliserMayWait() {
			l.d.finaliseInOtherLane(l, index, time.Duration(briefly))
			return
		}
		if !b.State.CAS(w, w|word.MakeStamp(l.id, word.KindFree)) {
			continue
		}
		if b.IsOwned() && !word.IsDisabled("owners under the stamp") {
			l.d.unstampBlock(b)
			continue
		}
		if layout.ExtentKind(b.Extent.Load()) != layout.ObjectNone {
			l.d.markGone(b)
			if !l.finaliseObject(b) {
				l.abandonOperation()
				return
			}
		}
		l.d.changeStamped(b, word.AllocBit, word.GenOne)
		l.d.trimmer.recordFreed(l.d, b)
		l.addFreeBlock(index)
		l.d.notifyRelief()
		return
	}
}

// markGone tells the waiters for the FREE stamp that the block will be freed. The caller's FREE
// stamp must stand on the block.
//
// A lane that waits for the stamp may itself hold an end that this finaliser waits for
// (docs/memory.md, "Rings, ends and other objects"), because rings may carry each other's ends.
// GONE lets that lane continue, because the block's end is certain.
func (d *Domain) markGone(b *layout.Block) {
	w := b.State.Load()
	for !b.State.CAS(w, w|word.GoneBit) {
		w = b.State.Load()
	}
	if w&word.WaitBit != 0 {
		d.park.WakeBits(&d.mem.Header.XOWait)
	}
}

// finaliseInOtherLane runs tryFree of an object in a goroutine, and waits for it no longer than
// most. The end of a ring may have to drain messages, and other processes may be in the middle of
// operations on their blocks. It returns the remaining time.
func (d *Domain) finaliseInOtherLane(caller *lane, index uint32, most time.Duration) time.Duration {
	return d.runInOtherLane(caller, most, func(l *lane) { l.finaliseInLane(index) })
}

// runInOtherLane calls use with a lane in a goroutine, and waits for it no longer than most. use
// must unlock the lane. It is not called if the domain is closed. runInOtherLane returns the
// remaining time. caller is the waiting lane, or nil.
func (d *Domain) runInOtherLane(caller *lane, most time.Duration, use func(*lane)) time.Duration {
	if word.Crashing && word.IsControlled() {
		if l, err := d.acquireLane(); err == nil {
			use(l)
		}
		return most
	}
	done, begun := make(chan struct{}), time.Now()
	go func() {
		defer close(done)
		if l, err := d.acquireLane(); err == nil {
			use(l)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	if caller != nil && caller.reaping != nil {
		caller.reapUntil(ctx, done)
	} else {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return max(0, most-time.Since(begun))
}

// reapUntil waits until done is closed or ctx ends, and meanwhile completes the operations of
// participants that die. The goroutine waited for may depend on such an operation, and other
// processes leave it to this one, which has the recovery lock.
func (l *lane) reapUntil(ctx context.Context, done <-chan struct{}) {
	d := l.d
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-done
		cancel()
	}()
	for ctx.Err() == nil {
		seen := d.mem.Header.DeathEpoch.Load()
		stuck := d.reapStamps(l)
		d.park.ParkUntil(ctx, &d.mem.Header.XOWait, func() bool {
			return stuck.hasCleared() || d.mem.Header.DeathEpoch.Load() != seen
		}, nil)
	}
}

// finaliseInLane runs tryFree of an object in this lane.
func (l *lane) finaliseInLane(index uint32) { l.runAndUnlock(func() { l.tryFree(index) }) }

// runAndUnlock calls do, which may wait for other lanes, and then unlocks the lane. If the domain
// was closed in the middle, the lane is left to the reaper.
func (l *lane) runAndUnlock(do func()) {
	l.aside = true
	do()
	if l.left.Load() {
		return
	}
	l.aside = false
	l.unlock()
}

// finaliseObject ends the object in a block. The caller's FREE stamp must stand on the block. If
// the process dies in the middle, a reaper runs finaliseObject again from the start. It returns
// false if the domain was closed meanwhile; the reaper does the rest.
func (l *lane) finaliseObject(b *layout.Block) bool {
	e := b.Extent.Load()
	switch layout.ExtentKind(e) {
	case layout.ObjectNone:
		return true
	case layout.ObjectRing:
		// The ring must be held while it is drained: if this process dies while it uses one of the
		// ring's slots, a late try-free must not free the ring before a reaper has completed the
		// get.
		i := l.d.indexOf(b)
		l.d.addRef(i)
		if !l.drainRing(b) {
			return false
		}
		l.d.dropRef(i)
	case layout.ObjectSenders:
		if !l.finaliseEnd(b, layout.RingNoSenders) {
			return false
		}
	case layout.ObjectReceivers:
		if !l.finaliseEnd(b, layout.RingNoReceivers) {
			return false
		}
	}
	if layout.ExtentClass(e) == 0 {
		b.Extent.Store(0)
	} else {
		b.Extent.Store(e &^ layout.ExtentKindMask)
	}
	return true
}
