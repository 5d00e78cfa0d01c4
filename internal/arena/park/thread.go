package park

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Errors of a wait with a [ThreadWait].
var (
	// ErrNapOver is returned by a wait that ended before its condition was true: the nap lasted its
	// full time, or the wait cannot nap. The caller should test the condition and wait again.
	ErrNapOver = errors.New("shm: nap is over")
	// ErrInterrupted is returned by a wait if a signal handler ran on its thread.
	ErrInterrupted = errors.New("shm: interrupted by a signal")
)

// A ThreadWait is the context of a wait of a caller that owns its thread, such as a call from C.
// The wait spins, and then naps for up to Most on the caller's thread, so that the waker wakes that
// thread itself: parking a goroutine costs two more switches of threads. The wait never parks. It
// ends with [ErrNapOver] or [ErrInterrupted]; see docs/memory.md, "Naps", for the delay that a long
// nap permits if a waker dies. A ThreadWait must be used for one operation, by one goroutine.
type ThreadWait struct {
	Most   time.Duration
	Napped bool // set by a nap, also one that was ended at once
	end    error
}

var closedDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline implements [context.Context].
func (*ThreadWait) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done ends w and returns a closed channel. A nap does not call it, so a wait that calls it would
// park.
func (w *ThreadWait) Done() <-chan struct{} {
	w.endWith(ErrNapOver)
	return closedDone
}

// Err returns nil until w has ended, and then [ErrNapOver] or [ErrInterrupted].
func (w *ThreadWait) Err() error { return w.end }

// Value implements [context.Context].
func (*ThreadWait) Value(any) any { return nil }

// endWith ends w unless it has ended already.
func (w *ThreadWait) endWith(err error) {
	if w.end == nil {
		w.end = err
	}
}

// napOn blocks the thread for up to w.Most while the nap word is napping, and then ends w. The
// caller must be the napper.
func (w *ThreadWait) napOn(word *word.Word) {
	w.Napped = true
	if w.end == nil && w.Most > 0 && word.FutexNap(napping, w.Most) {
		w.endWith(ErrInterrupted)
	}
	w.endWith(ErrNapOver)
}

// threadWaitOf returns ctx if it is a ThreadWait, and nil otherwise.
func threadWaitOf(ctx context.Context) *ThreadWait {
	w, _ := ctx.(*ThreadWait)
	return w
}
