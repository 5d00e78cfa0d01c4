package dist

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Note [Letters] Each rank has an inbox, a queue that all ranks can put to, and a box, in its
// memory, of what has come and of those who wait for something. One goroutine, the pump, takes
// letters from the inbox while anybody waits, so that letters stay in their order, and an inbox
// that nobody reads stays full and holds its senders up.
//
// Every process that has the group has both ends of all inboxes, so a queue does not say that a
// rank is gone. Another goroutine, the watchman, does: it is told of each death and each leaving,
// and cancels the context that the box has for the rank. A rank that is gone has put all that it
// ever will, so the pump empties the inbox once more before it says so to those who wait.

// inboxRoom is how many letters may wait in an inbox.
const inboxRoom = 32

// A box is a rank's own side of its inbox.
type box struct {
	lines []line // to each rank, of those who send

	mu      sync.Mutex
	wanted  []*wanted // in the order in which they began to wait
	kept    []letter  // that nobody waited for when they came
	gone    []context.Context
	leave   []context.CancelCauseFunc
	broken  error  // why no call of all ranks can end any more
	look    func() // has the pump look at what has changed
	pumping bool
	closed  bool

	servants sync.WaitGroup // the pump
	watched  chan struct{}  // closed when the watchman has ended; nil before it has begun
}

// A wanted is somebody who waits for a letter.
type wanted struct {
	from, tag int  // from AnyRank, or a rank
	breakable bool // part of a call of all ranks
	came      chan struct{}
	letter    letter
	err       error
}

func (b *box) open(size int) {
	b.lines = make([]line, size)
	for range size {
		ctx, cancel := context.WithCancelCause(context.Background())
		b.gone, b.leave = append(b.gone, ctx), append(b.leave, cancel)
	}
	b.look = func() {}
}

// want begins to wait, and starts the pump if it does not run.
func (b *box) want(w *wanted, pump func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.came = make(chan struct{})
	for i, l := range b.kept {
		if w.wants(l) {
			b.kept = slices.Delete(b.kept, i, i+1)
			w.letter = l
			close(w.came)
			return
		}
	}
	if b.closed {
		w.fail(ErrClosed)
		return
	}
	b.wanted = append(b.wanted, w)
	b.look() // the rank may be gone already
	if !b.pumping {
		b.pumping = true
		b.servants.Go(pump)
	}
}

func (w *wanted) wants(l letter) bool {
	return w.tag == l.tag && (w.from == AnyRank || w.from == l.from)
}

func (w *wanted) fail(err error) {
	w.err = err
	close(w.came)
}

// forget stops to wait, and reports false if something came meanwhile.
func (b *box) forget(w *wanted) bool {
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

// deliver gives a letter to the first who waits for it.
func (b *box) deliver(l letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.wanted {
		if w.wants(l) {
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

// next returns a context for the pump, which ends when there is something to look at, and what it
// has to look at now; or false once nobody waits.
func (b *box) next() (context.Context, []error, bool) {
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
	if slices.ContainsFunc(b.wanted, func(w *wanted) bool { return w.hopeless(gone) != nil }) {
		cancel()
	}
	return ctx, gone, true
}

// expire ends the waiting of those for which nothing will come, as was known before the inbox was
// emptied.
func (b *box) expire(gone []error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = slices.DeleteFunc(b.wanted, func(w *wanted) bool {
		err := w.hopeless(gone)
		if err != nil {
			w.fail(err)
		}
		return err != nil // it is told
	})
}

// hopeless returns why nothing will come, if nothing will. gone has an error for each rank that is
// gone, and then one if the group is broken. From any rank nothing comes if all others are gone, or
// one has died: it may have been that one.
func (w *wanted) hopeless(gone []error) error {
	ranks, broken := gone[:len(gone)-1], gone[len(gone)-1]
	switch {
	case w.from == AnyRank:
		if err := absentAny(ranks); err != nil {
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

// absentAny returns who is gone if one has died or only one is left, which is the one that waits.
func absentAny(gone []error) error {
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

// drop ends the waiting of all.
func (b *box) drop(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wanted {
		w.fail(err)
	}
	b.wanted = nil
}

// note takes down who is gone, and whether the group is broken.
func (b *box) note(gone map[int]error, broken error) {
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

// close gives back what nobody has received.
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
	b.drop(ErrClosed)
	b.servants.Wait()
	if b.watched != nil {
		<-b.watched
	}
	for _, l := range kept {
		err = errors.Join(err, l.close())
	}
	return err
}
