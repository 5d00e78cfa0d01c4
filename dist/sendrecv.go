package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// AnyRank, as the source of a receive, matches a message of any rank.
const AnyRank = -1

// Send sends the elements of t to rank dst, which must receive them by [Group.Recv] with the same
// tag: torch's send. It copies the elements to shared memory and returns. If 32 messages are queued
// for dst, Send blocks until dst receives one. Other ranks do not take part.
//
// If dst is gone, Send returns a [*RankError] that wraps [ErrLeft] or a *shm.PeerError. It returns
// [ErrRank] or [ErrTag] if dst or tag is out of range. If ctx ends, it returns a [*RankError] that
// wraps the error of ctx; the group is not broken.
func (g *Group) Send(ctx context.Context, dst, tag int, t *tensor.Tensor) error {
	return g.Isend(ctx, dst, tag, t).waitDone()
}

// Recv receives a tensor with the given tag from rank src, or from any rank if src is [AnyRank],
// into t: torch's recv. It returns the rank of the sender. Messages of one rank with one tag are
// received in send order. Recv blocks until a message arrives, ctx ends or
// src is gone. If src is gone, Recv first returns the messages that src sent before, and then a
// [*RankError] that wraps [ErrLeft] or a *shm.PeerError. Recv from AnyRank fails if any rank has
// died or all others have left.
//
// It returns [ErrMismatch] if the message is not a tensor of the dtype and shape of t. The message
// is then lost.
func (g *Group) Recv(ctx context.Context, src, tag int, t *tensor.Tensor) (from int, err error) {
	w := g.Irecv(ctx, src, tag, t)
	err = w.waitDone()
	return w.source, err
}

// waitDone waits until the call has ended, for a call that ends with its own context, and
// returns its error.
func (w *Work) waitDone() error {
	<-w.done
	return w.err
}

// Isend starts a [Group.Send] and returns at once: torch's isend. Sends to one rank are executed in
// the order of their starts. The caller must not change or close t until the [Work] is
// done.
func (g *Group) Isend(ctx context.Context, dst, tag int, t *tensor.Tensor) *Work {
	what := fmt.Sprintf("send(%d, tag %d) of %v %v", dst, tag, t.DType(), t.Shape())
	return g.startSend(ctx, what, dst, tag, func() (letter, func(bool), error) {
		if g.far != nil {
			return letter{tensor: t}, func(bool) {}, nil
		}
		there, err := toShared(t)
		return letter{tensor: there}, func(bool) { there.Close() }, err
	})
}

// Irecv starts a [Group.Recv] and returns at once: torch's irecv. Receives that match the same
// messages get them in the order of their start. The caller must not use t until the
// [Work] is done. [Work.Source] then returns the rank of the sender.
func (g *Group) Irecv(ctx context.Context, src, tag int, t *tensor.Tensor) *Work {
	what := fmt.Sprintf("recv(%s, tag %d) of %v %v", rankName(src), tag, t.DType(), t.Shape())
	return g.startRecv(ctx, what, src, tag, func(l letter) error {
		defer l.close()
		if l.tensor == nil || l.tensor.DType() != t.DType() || !slices.Equal(l.tensor.Shape(), t.Shape()) {
			return fmt.Errorf("%w: rank %d sent %v", ErrMismatch, l.from, l)
		}
		return copyElements(t, l.tensor)
	})
}

// SendValue sends a value to rank dst, which must receive it by [RecvValue] with the same type and
// tag: torch's send_object_list. T may be any type that package ipc can send. SendValue moves the
// tensors of v to shared memory, so both ranks use the same memory; over a library it sends copies.
// It blocks and fails as [Group.Send] does.
func SendValue[T any](ctx context.Context, g *Group, dst, tag int, v T) error {
	what := fmt.Sprintf("send(%d, tag %d) of %s", dst, tag, kindOf[T]())
	return g.startSend(ctx, what, dst, tag, func() (letter, func(bool), error) {
		p, done, err := packValue(v, g.far != nil)
		return letter{value: p}, done, err
	}).waitDone()
}

// RecvValue receives a value that rank src, or any rank if src is [AnyRank], has sent by
// [SendValue] with the tag. It returns the value and the rank of the sender. The caller must close
// the resources in the value. It returns the same errors as [Group.Recv].
func RecvValue[T any](ctx context.Context, g *Group, src, tag int) (v T, from int, err error) {
	what := fmt.Sprintf("recv(%s, tag %d) of %s", rankName(src), tag, kindOf[T]())
	w := g.startRecv(ctx, what, src, tag, func(l letter) (err error) {
		v, err = openLetter[T](l)
		return err
	})
	err = w.waitDone()
	return v, w.source, err
}

// openLetter decodes the value of a letter and releases the letter, also if there is an error.
// It returns an error that wraps [ErrMismatch] if the letter is a tensor or a value of another
// type. The caller must close the resources in the value.
func openLetter[T any](l letter) (v T, err error) {
	if l.tensor != nil {
		return v, errors.Join(fmt.Errorf("%w: rank %d sent %v", ErrMismatch, l.from, l), l.close())
	}
	return unpackValue[T](l.value)
}

func rankName(rank int) string {
	if rank == AnyRank {
		return "any rank"
	}
	return fmt.Sprint(rank)
}

// toShared returns a copy of t in shared memory. The caller must close it.
func toShared(t *tensor.Tensor) (*tensor.Tensor, error) {
	here, err := t.CPU()
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := tensor.NewShared(t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return there.CopyFrom(here), nil
}

// copyElements copies the elements of from, a tensor on the host, to t. When it returns, from
// may be closed, even if t is on a device.
func copyElements(t, from *tensor.Tensor) error {
	there, err := from.ToDevice(t.Device())
	if err != nil {
		return err
	}
	defer there.Close()
	t.CopyFrom(there)
	return tensor.Synchronize(t.Device()) // complete the copy before the letter is closed
}

// startSend starts a send and returns its Work. write is called on another goroutine, once all
// earlier sends to dst are done, and creates the letter. The function done that it returns is
// called with the outcome and must release the letter. Errors begin with what.
func (g *Group) startSend(ctx context.Context, what string, dst, tag int,
	write func() (l letter, done func(sent bool), err error)) *Work {
	w := newWork()
	if err := g.checkPartner(what, dst, tag); err != nil {
		w.complete(err)
		return w
	}
	at := g.box.lines[dst].takeTicket()
	go func() {
		defer at.release()
		w.completeWith(func() error { return g.sendInOrder(ctx, what, dst, tag, at, write) })
	}()
	return w
}

// checkPartner returns an error unless rank is another rank of the group and tag is not
// negative: one that wraps [ErrRank] or [ErrTag], or an error of [Group.checkUsable].
func (g *Group) checkPartner(what string, rank, tag int) error {
	if err := g.checkUsable(what); err != nil {
		return err
	}
	switch {
	case tag < 0:
		return fmt.Errorf("dist: %s: %w: want 0 or more", what, ErrTag)
	case rank < 0 || rank >= g.size:
		return fmt.Errorf("dist: %s: %w: want 0 to %d", what, ErrRank, g.size-1)
	case rank == g.Rank():
		return fmt.Errorf("dist: %s: %w: want a rank other than this one", what, ErrRank)
	}
	return nil
}

func (g *Group) sendInOrder(ctx context.Context, what string, dst, tag int, at ticket,
	write func() (letter, func(bool), error)) error {
	g.startWatchman()
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := g.box.gone[dst]
	defer context.AfterFunc(gone, func() { cancel(context.Cause(gone)) })()
	err := at.awaitLock(until)
	if err == nil {
		err = context.Cause(gone)
	}
	if err == nil {
		err = g.deliverNew(until, dst, tag, write)
	}
	switch cause := context.Cause(gone); {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed) || errors.Is(cause, ErrClosed):
		return ErrClosed
	case cause != nil && errors.Is(err, cause):
		return &RankError{Call: what, Ranks: []int{dst}, Err: cause}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // dst did not receive in time
		return &RankError{Call: what, Ranks: []int{dst}, Err: context.Cause(ctx)}
	}
	return fmt.Errorf("dist: %s: %w", what, err)
}

func (g *Group) deliverNew(ctx context.Context, dst, tag int, write func() (letter, func(bool), error)) error {
	l, done, err := write()
	if err != nil {
		return err
	}
	l.from, l.tag = g.Rank(), tag
	err = g.deliverLetter(ctx, dst, l, false)
	done(err == nil)
	return err
}

// startRecv starts a receive and returns its Work. read is called with the letter on another
// goroutine and must close it. The error of read becomes the error of the Work.
func (g *Group) startRecv(ctx context.Context, what string, src, tag int, read func(letter) error) *Work {
	w := newWork()
	err := g.checkUsable(what)
	if err == nil && (src != AnyRank || tag < 0) {
		err = g.checkPartner(what, src, tag)
	}
	if err != nil {
		w.complete(err)
		return w
	}
	letters := g.expectLetter(&wanted{from: src, tag: tag})
	go func() {
		w.completeWith(func() error {
			l, err := letters(ctx, what)
			if err != nil {
				return err
			}
			if err = read(l); err != nil {
				return fmt.Errorf("dist: %s: %w", what, err)
			}
			w.source = l.from
			return nil
		})
	}()
	return w
}

// expectLetter registers a receive. The returned function must be called once. It blocks until
// the letter has arrived, the sender is gone, or ctx ends. The caller must read or close the
// letter. Without a letter the error is [ErrClosed], a [*RankError], [ErrBroken] for a breakable
// receive, or an error of the inbox.
func (g *Group) expectLetter(w *wanted) func(ctx context.Context, what string) (letter, error) {
	g.startWatchman()
	g.box.registerReceive(w, g.pumpInbox)
	return func(ctx context.Context, what string) (letter, error) {
		select {
		case <-w.came:
		case <-ctx.Done():
			if g.box.cancelReceive(w) {
				return letter{}, &RankError{Call: what, Ranks: w.sourceRanks(), Err: context.Cause(ctx)}
			}
			<-w.came
		}
		if e := new(RankError); errors.As(w.err, &e) {
			return letter{}, &RankError{Call: what, Ranks: e.Ranks, Err: e.Err}
		}
		return w.letter, w.err
	}
}

// sourceRanks returns the source of w for a [RankError]; nil for AnyRank.
func (w *wanted) sourceRanks() []int {
	if w.from == AnyRank {
		return nil
	}
	return []int{w.from}
}

// peerOf returns the *shm.PeerError in err's chain, or nil.
func peerOf(err error) (p *arena.PeerError) {
	errors.As(err, &p)
	return p
}

// pumpInbox moves letters from the inbox to the box, and returns when no receive is pending. It
// must run on one goroutine at a time; see Note [Letters].
func (m *member) pumpInbox() {
	inbox, failed := m.openMailbox()
	for {
		ctx, gone, more := m.box.nextRound()
		if !more {
			return
		}
		if failed != nil {
			m.box.failAll(failed)
			continue
		}
		l, err := inbox.Get(ctx)
		switch {
		case err == nil:
			m.box.deliverLetter(l)
		case errors.Is(err, ipc.ErrClosed):
			m.box.failAll(ErrClosed)
		case ctx.Err() != nil:
			m.drainInbox(inbox)
			m.box.failHopeless(gone)
		default:
			m.box.failAll(err)
		}
	}
}

func (m *member) drainInbox(inbox mailbox) {
	for {
		l, err := inbox.TryGet()
		if err != nil {
			return
		}
		m.box.deliverLetter(l)
	}
}
