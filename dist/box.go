package dist

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Note [Letters] Each rank has an inbox, a queue in shared memory that all ranks can write, and a
// box in its own memory. The box holds unexpected letters and pending receives. While receives are
// pending, one goroutine, the pump, moves letters from the inbox to the box. A single reader
// preserves the order of the letters, and an inbox without a reader fills up and blocks its
// senders.
//
// Every process of the group holds both ends of all inboxes, so closing a queue does not signal
// that a rank is gone. Another goroutine, the watchman, detects deaths and departures, and cancels
// the box's context for that rank. A rank that is gone puts no more letters, so the pump must drain
// the inbox once more before it fails receives from that rank.

// inboxRoom is the capacity of an inbox in letters.
const inboxRoom = 32

// A box is the receiving side of a rank's inbox: unexpected letters and pending receives.
type box struct {
	lines []ticketLock // orders the sends to each rank

	mu      sync.Mutex
	wanted  []*wanted // pending receives, in start order
	kept    []letter  // unexpected letters, in order of arrival
	gone    []context.Context
	leave   []context.CancelCauseFunc
	broken  error  // error of collective calls once the group is broken
	look    func() // wakes the pump after a change
	pumping bool
	closed  bool

	servants sync.WaitGroup // the pump
	watched  chan struct{}  // closed when the watchman has ended; nil before it starts
}

// A wanted is a pending receive. came is closed once letter or err is set; only the receiver may
// use them then.
type wanted struct {
	from, tag int  // from may be AnyRank
	breakable bool // belongs to a collective call, so it fails if the group breaks
	came      chan struct{}
	letter    letter
	err       error
}

func (b *box) openRanks(size int) {
	b.lines = make([]ticketLock, size)
	for range size {
		ctx, cancel := context.WithCancelCause(context.Background())
		b.gone, b.leave = append(b.gone, ctx), append(b.leave, cancel)
	}
	b.look = func() {}
}

// registerReceive completes w with an unexpected letter that matches, or adds it to the pending
// receives and starts the goroutine pump if it is not running. It fails w with [ErrClosed] if
// the box is closed. w.came is closed once w.letter or w.err is set; the letter then belongs to
// the receiver.
func (b *box) registerReceive(w *wanted, pump func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.came = make(chan struct{})
	for i, l := range b.kept {
		if w.matches(l) {
			b.kept = slices.Delete(b.kept, i, i+1)
			w.letter = l
			close(w.came)
			return
		}
	}
	if b.closed {
		w.failReceive(ErrClosed)
		return
	}
	b.wanted = append(b.wanted, w)
	b.look() // the sender may be gone already
	if !b.pumping {
		b.pumping = true
		b.servants.Go(pump)
	}
}

func (w *wanted) matches(l letter) bool {
	return w.tag == l.tag && (w.from == AnyRank || w.from == l.from)
}

func (w *wanted) failReceive(err error) {
	w.err = err
	close(w.came)
}

// cancelReceive cancels a pending receive. It returns false if the receive has completed already.
func (b *box) cancelReceive(w *wanted) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.wanted, w)
	if i < 0 {
		return false
	}
	b.wanted = slices.Delete(b.wanted, i, i+1)
	b.look()
	return true
}

// deliverLetter completes the first pending receive that matches l, or keeps l until a receive
// asks for it. The box owns l; it closes l at once if the box is closed.
func (b *box) deliverLetter(l letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.wanted {
		if w.matches(l) {
			b.wanted = slices.Delete(b.wanted, i, i+1)
			w.letter = l
			close(w.came)
			return
		}
	}
	if b.closed {
		l.close()
		return
	}
	b.kept = append(b.kept, l)
}

// nextRound begins a round of the pump. It returns the context for waiting for letters, and a
// snapshot of the errors of ranks that are gone, which must be passed to failHopeless. The context
// is canceled when pending receives are added or canceled, a rank leaves or dies, or the box is
// closed. nextRound returns false if no receive is pending; then the pump must stop.
func (b *box) nextRound() (context.Context, []error, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pumping = len(b.wanted) > 0; !b.pumping {
		b.look = func() {}
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.look = cancel
	gone := make([]error, len(b.gone)+1)
	for r, ctx := range b.gone {
		gone[r] = context.Cause(ctx)
	}
	gone[len(b.gone)] = b.broken
	if slices.ContainsFunc(b.wanted, func(w *wanted) bool { return w.failureReason(gone) != nil }) {
		cancel()
	}
	return ctx, gone, true
}

// failHopeless fails the pending receives that cannot complete any more. gone must be a result
// of [box.nextRound] from before the inbox was last drained, so that no letter of these ranks is
// missed.
func (b *box) failHopeless(gone []error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = slices.DeleteFunc(b.wanted, func(w *wanted) bool {
		err := w.failureReason(gone)
		if err != nil {
			w.failReceive(err)
		}
		return err != nil // already failed
	})
}

// failureReason returns the reason why w cannot complete, or nil. gone has one entry per rank, an
// error if the rank is gone, and a last entry, an error if the group is broken. A receive from
// AnyRank fails if all other ranks are gone, or if one has died, because it may have been the
// sender.
func (w *wanted) failureReason(gone []error) error {
	ranks, broken := gone[:len(gone)-1], gone[len(gone)-1]
	switch {
	case w.from == AnyRank:
		if err := absentError(ranks); err != nil {
			return err
		}
	case ranks[w.from] != nil:
		return &RankError{Ranks: []int{w.from}, Err: ranks[w.from]}
	}
	if w.breakable {
		return broken
	}
	return nil
}

// absentError returns an error if a rank has died or if all ranks but one, the receiver, have left.
func absentError(gone []error) error {
	var dead, left RankError
	for r, err := range gone {
		if err == nil {
			continue
		}
		of := &dead
		if errors.Is(err, ErrLeft) {
			of = &left
		}
		of.Ranks, of.Err = append(of.Ranks, r), cmp.Or(of.Err, err)
	}
	switch {
	case dead.Err != nil:
		return &dead
	case len(left.Ranks) == len(gone)-1:
		return &left
	}
	return nil
}

// failAll fails all pending receives with err. Later receives are not affected.
func (b *box) failAll(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wanted {
		w.failReceive(err)
	}
	b.wanted = nil
}

// recordGone records why ranks are gone, by rank, and wakes the pump. broken is the error of
// pending receives of collective calls if the group is broken, and nil otherwise.
func (b *box) recordGone(gone map[int]error, broken error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, err := range gone {
		b.leave[r](err)
	}
	b.broken = cmp.Or(b.broken, broken)
	b.look()
}

func (b *box) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close fails pending receives with [ErrClosed], waits for the pump and the watchman to end, and
// releases the letters that were not received. It returns the errors of these releases.
func (b *box) close() (err error) {
	b.mu.Lock()
	b.closed = true
	kept := b.kept
	b.kept = nil
	b.look()
	for _, leave := range b.leave {
		leave(ErrClosed)
	}
	b.mu.Unlock()
	b.failAll(ErrClosed)
	b.servants.Wait()
	if b.watched != nil {
		<-b.watched
	}
	for _, l := range kept {
		err = errors.Join(err, l.close())
	}
	return err
}
