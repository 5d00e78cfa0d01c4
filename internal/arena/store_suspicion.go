package arena

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Intervals at which a waiter checks whether a lane will clear the stamp that it waits for.
const (
	suspicionPause = 20 * time.Millisecond // grows by half each time, up to a second
	suspicionLooks = 5                     // checks of a stamp that no lane can have set
)

// stampTime is the time after which a waiter distrusts a stamp of a participant that is not
// stopped. Tests make it short.
var stampTime = 10 * time.Second

// A suspicion decides whether a stamp that a waiter waits for is corrupt, meaning that no lane will
// clear it. A stamp is corrupt if it stays over several checks and names an idle lane of this
// process or a free seat. It is also corrupt if it stays for longer than any step takes and no
// participant is stopped. A stopped participant may continue, so waiters must wait for its stamp,
// and for the stamps of others, which may themselves wait for it.
type suspicion[T stampWord[T]] struct {
	d     *Domain
	l     *lane
	wait  T // the bit set by waiters
	word  T
	looks int // checks of this word while no lane can have set it
	since time.Time
	pause time.Duration
}

// nextCheck returns a context that ends when the next check is due. The caller must call the cancel
// function.
func (x *suspicion[T]) nextCheck(ctx context.Context) (context.Context, context.CancelFunc) {
	if word.Crashing && word.IsControlled() { // controlled tests have no time
		return ctx, func() {}
	}
	x.pause = min(max(suspicionPause, x.pause+x.pause/2), time.Second)
	return context.WithTimeout(ctx, x.pause)
}

// checkStamp checks the word, and returns [ErrCorrupt] if its stamp is corrupt.
func (x *suspicion[T]) checkStamp(at *word.Of[T]) error {
	if word.Crashing && word.IsControlled() {
		return nil
	}
	w := at.Load() &^ x.wait
	if w != x.word || x.since.IsZero() {
		x.word, x.looks, x.since = w, 0, time.Now()
	}
	seat := int(w.Lane() / layout.LanesPerSeat)
	switch {
	case !x.isImpossible(seat, w.Lane()):
		x.looks = 0
	case x.looks == suspicionLooks:
		return reportCorruption("a stamp", uint64(w))
	default:
		x.looks++
	}
	if time.Since(x.since) < stampTime {
		return nil
	}
	x.since = time.Now()
	if x.d.anyStopped() {
		return nil
	}
	return reportCorruption("a stamp", uint64(w))
}

// anyStopped reports whether another participant is stopped.
func (d *Domain) anyStopped() bool {
	for s := range d.mem.Participants {
		p := &d.mem.Participants[s]
		if s != d.seat && !p.State.Load().HasState(word.ParticipantFree) && sys.Stopped(int(p.PID.Load())) {
			return true
		}
	}
	return false
}

// isImpossible reports whether the lane cannot have set the stamp: it is idle, it is the waiter's
// own, or its seat is free.
func (x *suspicion[T]) isImpossible(seat int, id uint32) bool {
	if seat == x.d.seat {
		l := &x.d.lanes[id%layout.LanesPerSeat]
		return l == x.l || l.busy.Load() == 0
	}
	return x.d.mem.Participants[seat].State.Load().HasState(word.ParticipantFree)
}
