package arena

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// How soon and how often a waiter looks whether a lane will end the stamp for which it waits.
const (
	suspicionPause = 20 * time.Millisecond // grows by half, to a second
	suspicionLooks = 5                     // for a stamp that no lane can have set
)

// stampTime is for how long a waiter believes in the stamp of a participant that goes on with other
// things. Tests make it short.
var stampTime = 10 * time.Second

// A suspicion is a waiter's doubt whether a lane will end the stamp for which it waits. The stamp
// is garbage if it stays, look after look, and names a lane of this process in which nothing goes
// on, or a free seat; or if it stays for longer than any step takes and no participant is stopped.
// A stopped participant may go on, so waiters wait for its stamp, and for the stamps of others,
// which may themselves wait for it.
type suspicion[T stampWord[T]] struct {
	d     *Domain
	l     *lane
	wait  T // the bit that waiters set
	word  T
	looks int // at this word, while no lane can have set it
	since time.Time
	pause time.Duration
}

// nextLook returns a context that ends when the next look is due.
func (x *suspicion[T]) nextLook(ctx context.Context) (context.Context, context.CancelFunc) {
	if crashing && controlled() { // there is no time
		return ctx, func() {}
	}
	x.pause = min(max(suspicionPause, x.pause+x.pause/2), time.Second)
	return context.WithTimeout(ctx, x.pause)
}

// look looks at the word, and returns an error if it is garbage.
func (x *suspicion[T]) look(at *wordOf[T]) error {
	if crashing && controlled() {
		return nil
	}
	w := at.Load() &^ x.wait
	if w != x.word || x.since.IsZero() {
		x.word, x.looks, x.since = w, 0, time.Now()
	}
	seat := int(w.lane() / lanesPerSeat)
	switch {
	case !x.impossible(seat, w.lane()):
		x.looks = 0
	case x.looks == suspicionLooks:
		return corrupt("a stamp", uint64(w))
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
	return corrupt("a stamp", uint64(w))
}

// anyStopped reports whether a participant is stopped.
func (d *Domain) anyStopped() bool {
	for s := range d.parts {
		p := &d.parts[s]
		if s != d.seat && !p.state.Load().is(participantFree) && sys.Stopped(int(p.pid.Load())) {
			return true
		}
	}
	return false
}

// impossible reports whether nothing goes on in the lane now, or it is that of the waiter.
func (x *suspicion[T]) impossible(seat int, id uint32) bool {
	if seat == x.d.seat {
		l := &x.d.lanes[id%lanesPerSeat]
		return l == x.l || l.busy.Load() == 0
	}
	return x.d.parts[seat].state.Load().is(participantFree)
}
