package arena

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Stopped processes] A process may be stopped (SIGSTOP, a debugger, a frozen control group)
// in the middle of an operation, and its stamp stands until it continues or dies. No call may wait
// for that longer than its context. A put clears its own stamps. A get, which cannot be undone,
// leaves the rest to a goroutine (take). A call without a context waits briefly, and so does the
// end of a ring, which then continues in a goroutine (finaliseInOtherLane). Such goroutines end
// when the domain is closed (Domain.lingering), and the reaper does the rest for them.

// brief is the context of a wait without a context of its own. It ends after the given time,
// measured from the beginning of the wait.
type brief time.Duration

const briefly = brief(time.Second)

// Briefly is the context for calls without a context of their own. They wait at most one second for
// an operation of another process, which may be stopped.
var Briefly context.Context = briefly

func (brief) Deadline() (end time.Time, ok bool) { return }
func (brief) Done() <-chan struct{}              { return nil }
func (brief) Err() error                         { return nil }
func (brief) Value(any) any                      { return nil }

// beginWait returns the context of a wait that begins now: ctx itself, or a context with a
// timeout if ctx is a [brief]. The caller must call the cancel function.
func beginWait(ctx context.Context) (context.Context, context.CancelFunc) {
	b, ok := ctx.(brief)
	switch {
	case !ok:
		return ctx, func() {}
	case word.Crashing && word.IsControlled(): // controlled tests have no time
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(b))
}

// inTheWay is the error of an attempt that found another lane's stamp on a block and changed
// nothing. Its value is the block's index.
type inTheWay uint32

func (i inTheWay) Error() string { return fmt.Sprintf("shm: block %d is in use", uint32(i)) }

// awaitUnstamped waits until no lane is in the middle of an operation on b, and returns b's
// state word. It returns the errors of [awaitWord], which name the block and the process in the
// way.
func (l *lane) awaitUnstamped(ctx context.Context, b *layout.Block) (word.State, error) {
	if w := b.State.Load(); w&word.StampMask == 0 {
		return w, nil
	}
	return l.parkUntilUnstamped(ctx, b)
}

// parkUntilUnstamped waits until the stamp on b clears. It must read the word again at the end,
// because the goroutine that wakes it also evaluates the condition.
func (l *lane) parkUntilUnstamped(ctx context.Context, b *layout.Block) (word.State, error) {
	for {
		if err := awaitWord(ctx, l.d, l, &b.State, isUnstamped, word.WaitBit); err != nil {
			return 0, l.d.busyError(b, err)
		}
		if w := b.State.Load(); isUnstamped(w) {
			return w, nil
		}
	}
}

// awaitObstacle waits until the stamp on the block i has cleared. It occupies no lane meanwhile,
// so any number of goroutines may wait while others continue. awaitObstacle returns the errors
// of [awaitWord].
func (d *Domain) awaitObstacle(ctx context.Context, i inTheWay) error {
	b := &d.mem.Blocks[i]
	if err := awaitWord(ctx, d, nil, &b.State, isUnstamped, word.WaitBit); err != nil {
		return d.busyError(b, err)
	}
	return nil
}

// busyError returns an error that wraps err and names the block, and the process that is in the
// middle of an operation on it.
func (d *Domain) busyError(b *layout.Block, err error) error {
	w := b.State.Load()
	if !w.IsStamped() {
		return fmt.Errorf("block %d: %w", d.indexOf(b), err)
	}
	seat := int(w.Lane() / layout.LanesPerSeat)
	pid, how := int(d.mem.Participants[seat].PID.Load()), ""
	if isAlive, unknown := d.store.isAlive(seat); unknown == nil && !isAlive && seat != d.seat {
		how = ", which died and is not yet reaped,"
	} else if sys.Stopped(pid) {
		how = ", which is stopped,"
	}
	return fmt.Errorf("block %d: process %d%s has not finished a %s: %w", d.indexOf(b), pid, how,
		word.StampNames[w.Kind()], err)
}

// pollUnstamped polls for a moment, and reports whether the block has no stamp then.
func pollUnstamped(b *layout.Block) bool { return pollWord(&b.State, isUnstamped) }

func isUnstamped(w word.State) bool { return !w.IsStamped() }

// pollWord polls for a moment, without parking, for a condition that another lane's next step
// makes true, and reports whether it is.
func pollWord[T word.Law[T]](w *word.Of[T], done func(T) bool) bool {
	for i := range 256 {
		if done(w.Load()) {
			return true
		}
		if i >= 64 {
			runtime.Gosched()
		}
		if word.Crashing && word.IsControlled() {
			break
		}
	}
	return false
}

// markUnless sets the bit wait of the word, which asks for a wakeup when the word changes, and
// returns false. If the word is done already, markUnless returns true and does not set the bit.
// One CAS must do both: between a mark and a separate look, the marked stamp could clear and
// another one without a mark could take its place, and the waiter would sleep for ever
// (docs/memory.md, "Words, stamps, evidence").
func markUnless[T word.Law[T]](w *word.Of[T], done func(T) bool, wait T) bool {
	for {
		switch v := w.Load(); {
		case done(v):
			return !word.IsDisabled("mark and look in one") || done(w.Load())
		case v&wait != 0 || w.CAS(v, v|wait):
			return false
		}
	}
}

// A stampWord is a word that names the lane in the middle of changing it.
type stampWord[T any] interface {
	word.Law[T]
	Lane() uint32
}

// awaitWord polls, yields, and then parks until another lane's next step makes the word done, or
// until ctx ends. l is the lane that the caller occupies, or nil. The bit wait asks the lane
// that ends its operation for a wakeup. If that lane died, its reaper ends the operation. A
// reaper that waits here first completes the operations of newly dead participants.
//
// It returns the cause of ctx if ctx ends, and [ErrCorrupt] for a stamp that no lane will clear;
// see suspicion. It returns [ErrClosed] if the domain is closed, unless the lane must complete
// an operation (lingering).
func awaitWord[T stampWord[T]](ctx context.Context, d *Domain, l *lane, w *word.Of[T], done func(T) bool,
	wait T) error {
	if pollWord(w, done) {
		return nil
	}
	// The condition must not read a field of the lane: a goroutine that wakes this one evaluates
	// the condition as well, even after this one has moved on.
	reaping, suspect := l != nil && l.reaping != nil, suspicion[T]{d: d, l: l, wait: wait}
	closes := func() bool { return !reaping && ctx != d.lingering && d.closed.Load() }
	ctx, cancel := beginWait(ctx)
	defer cancel()
	for !done(w.Load()) {
		if closes() {
			return ErrClosed
		}
		if err := suspect.checkStamp(w); err != nil {
			return err
		}
		seen, stuck := d.mem.Header.DeathEpoch.Load(), obstacle{}
		if reaping {
			stuck = d.reapStamps(l)
		}
		again, cancel := suspect.nextCheck(ctx)
		err := d.park.ParkUntil(again, &d.mem.Header.XOWait, func() bool {
			return markUnless(w, done, wait) || closes() || stuck.hasCleared() ||
				reaping && d.mem.Header.DeathEpoch.Load() != seen
		}, nil)
		cancel()
		if err != nil && ctx.Err() != nil && !done(w.Load()) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// unstampBlock clears the stamp of a completed operation.
func (d *Domain) unstampBlock(b *layout.Block) { d.changeStamped(b, 0, 0) }

// endPut clears the stamp of a published put of lane id, unless the message's reader has replaced
// it already.
func (d *Domain) endPut(b *layout.Block, id uint32) {
	for {
		w := b.State.Load()
		if w&word.StampMask != word.MakeStamp(id, word.KindPut) {
			return
		}
		if b.State.CAS(w, w&^(word.StampMask|word.WaitBit)) {
			if w&word.WaitBit != 0 {
				d.park.WakeBits(&d.mem.Header.XOWait)
			}
			return
		}
	}
}

// changeStamped clears the stamp and the bits in clear, and adds add, in one CAS. Only the lane
// named by the stamp, or its reaper, may call it: no other lane changes the word meanwhile, except
// for WAIT.
func (d *Domain) changeStamped(b *layout.Block, clear, add word.State) {
	for {
		w := b.State.Load()
		if b.State.CAS(w, w&^(clear|word.StampMask|word.WaitBit)+add) {
			if w&word.WaitBit != 0 {
				d.park.WakeBits(&d.mem.Header.XOWait)
			}
			return
		}
	}
}
