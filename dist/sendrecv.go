package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// AnyRank, as the source of a receive, stands for any rank that has sent with the tag.
const AnyRank = -1

// Send sends the elements of t to rank dst, which receives them by Recv with the same tag: torch's
// send. It copies the elements to shared memory and returns, unless 32 messages wait for dst: then
// it waits for room. Other ranks do not take part.
//
// If dst is gone, the error is a [*RankError] that wraps ErrLeft or a *shm.PeerError. For a dst or
// a tag that is out of range it is ErrRank or ErrTag. If ctx ends, its error comes in a *RankError,
// and the group is not broken.
func (g *Group) Send(ctx context.Context, dst, tag int, t *tensor.Tensor) error {
	return g.Isend(ctx, dst, tag, t).wait()
}

// Recv fills t with a tensor that rank src, or any rank for AnyRank, has sent to this one with the
// tag: torch's recv. It returns the rank of the sender. Messages of one rank with one tag are
// received in the order in which they were sent. Recv waits until a message comes, ctx ends or src
// is gone. In the last case the error is a [*RankError] that wraps ErrLeft or a *shm.PeerError;
// messages that src sent before can still be received. A Recv from AnyRank fails if any rank has
// died, or all others have left.
//
// The error is ErrMismatch if the message is not a tensor of the dtype and shape of t; then the
// message is lost.
func (g *Group) Recv(ctx context.Context, src, tag int, t *tensor.Tensor) (from int, err error) {
	w := g.Irecv(ctx, src, tag, t)
	err = w.wait()
	return w.source, err
}

// wait is Wait for a call whose own context ends it.
func (w *Work) wait() error {
	<-w.done
	return w.err
}

// Isend begins a Send and returns at once: torch's isend. Sends to one rank happen in the order in
// which they were begun. Do not change or close t until the Work has ended.
func (g *Group) Isend(ctx context.Context, dst, tag int, t *tensor.Tensor) *Work {
	what := fmt.Sprintf("send(%d, tag %d) of %v %v", dst, tag, t.DType(), t.Shape())
	return g.send(ctx, what, dst, tag, func() (letter, func(bool), error) {
		if g.far != nil {
			return letter{tensor: t}, func(bool) {}, nil
		}
		there, err := toShared(t)
		return letter{tensor: there}, func(bool) { there.Close() }, err
	})
}

// Irecv begins a Recv and returns at once: torch's irecv. Receives that match the same messages get
// them in the order in which they were begun. Do not use t until the Work has ended. Its Source is
// the rank of the sender.
func (g *Group) Irecv(ctx context.Context, src, tag int, t *tensor.Tensor) *Work {
	what := fmt.Sprintf("recv(%s, tag %d) of %v %v", rankName(src), tag, t.DType(), t.Shape())
	return g.recv(ctx, what, src, tag, func(l letter) error {
		defer l.close()
		if l.tensor == nil || l.tensor.DType() != t.DType() || !slices.Equal(l.tensor.Shape(), t.Shape()) {
			return fmt.Errorf("%w: rank %d sent %v", ErrMismatch, l.from, l)
		}
		return fill(t, l.tensor)
	})
}

// SendValue sends a value of any type that crosses processes to rank dst, which receives it by
// RecvValue of the same type and tag: torch's send_object_list. SendValue moves the tensors of v to
// shared memory, so both ranks have the same tensors. When it waits, and its errors, are those of
// [Group.Send].
func SendValue[T any](ctx context.Context, g *Group, dst, tag int, v T) error {
	what := fmt.Sprintf("send(%d, tag %d) of %s", dst, tag, kindOf[T]())
	return g.send(ctx, what, dst, tag, func() (letter, func(bool), error) {
		p, done, err := pack(v, g.far != nil)
		return letter{value: p}, done, err
	}).wait()
}

// RecvValue receives a value that rank src, or any rank for AnyRank, has sent to this one by
// SendValue with the tag. It returns the value and the rank of the sender. The caller closes what
// the value holds. The errors are those of [Group.Recv].
func RecvValue[T any](ctx context.Context, g *Group, src, tag int) (v T, from int, err error) {
	what := fmt.Sprintf("recv(%s, tag %d) of %s", rankName(src), tag, kindOf[T]())
	w := g.recv(ctx, what, src, tag, func(l letter) (err error) {
		v, err = open[T](l)
		return err
	})
	err = w.wait()
	return v, w.source, err
}

// open returns the value in a letter.
func open[T any](l letter) (v T, err error) {
	if l.tensor != nil {
		return v, errors.Join(fmt.Errorf("%w: rank %d sent %v", ErrMismatch, l.from, l), l.close())
	}
	return unpack[T](l.value)
}

func rankName(rank int) string {
	if rank == AnyRank {
		return "any rank"
	}
	return fmt.Sprint(rank)
}

// toShared returns a copy of t in shared memory.
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

// fill gives t the elements of a tensor on the host.
func fill(t, from *tensor.Tensor) error {
	there, err := from.ToDevice(t.Device())
	if err != nil {
		return err
	}
	defer there.Close()
	t.CopyFrom(there)
	return tensor.Synchronize(t.Device()) // before the letter is closed
}

// send sends what write returns, once what was sent to dst before has gone. done is told whether
// the letter was sent.
func (g *Group) send(ctx context.Context, what string, dst, tag int,
	write func() (l letter, done func(sent bool), err error)) *Work {
	w := newWork()
	if err := g.partner(what, dst, tag); err != nil {
		w.end(err)
		return w
	}
	at := g.box.lines[dst].stand()
	go func() {
		defer at.leave()
		w.end(g.post(ctx, what, dst, tag, at, write))
	}()
	return w
}

// partner wants another rank, and a tag that users have.
func (g *Group) partner(what string, rank, tag int) error {
	if err := g.usable(what); err != nil {
		return err
	}
	switch {
	case tag < 0:
		return fmt.Errorf("dist: %s: %w: want 0 or more", what, ErrTag)
	case rank < 0 || rank >= g.size:
		return fmt.Errorf("dist: %s: %w: the ranks are 0 to %d", what, ErrRank, g.size-1)
	case rank == g.Rank():
		return fmt.Errorf("dist: %s: %w: it is this rank itself", what, ErrRank)
	}
	return nil
}

func (g *Group) post(ctx context.Context, what string, dst, tag int, at place,
	write func() (letter, func(bool), error)) error {
	g.watch()
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := g.box.gone[dst]
	defer context.AfterFunc(gone, func() { cancel(context.Cause(gone)) })()
	err := at.first(until)
	if err == nil {
		err = context.Cause(gone)
	}
	if err == nil {
		err = g.put(until, dst, tag, write)
	}
	switch cause := context.Cause(gone); {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed) || errors.Is(cause, ErrClosed):
		return ErrClosed
	case cause != nil && errors.Is(err, cause):
		return &RankError{Call: what, Ranks: []int{dst}, Err: cause}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // it did not receive in time
		return &RankError{Call: what, Ranks: []int{dst}, Err: context.Cause(ctx)}
	}
	return fmt.Errorf("dist: %s: %w", what, err)
}

func (g *Group) put(ctx context.Context, dst, tag int, write func() (letter, func(bool), error)) error {
	l, done, err := write()
	if err != nil {
		return err
	}
	l.from, l.tag = g.Rank(), tag
	err = g.deliver(ctx, dst, l, false)
	done(err == nil)
	return err
}

// recv lets read have what comes.
func (g *Group) recv(ctx context.Context, what string, src, tag int, read func(letter) error) *Work {
	w := newWork()
	err := g.usable(what)
	if err == nil && (src != AnyRank || tag < 0) {
		err = g.partner(what, src, tag)
	}
	if err != nil {
		w.end(err)
		return w
	}
	letters := g.expect(&wanted{from: src, tag: tag})
	go func() {
		l, err := letters(ctx, what)
		if err == nil {
			if err = read(l); err != nil {
				err = fmt.Errorf("dist: %s: %w", what, err)
			} else {
				w.source = l.from
			}
		}
		w.end(err)
	}()
	return w
}

// expect begins to wait for a letter, and returns what waits until it is there.
func (g *Group) expect(w *wanted) func(ctx context.Context, what string) (letter, error) {
	g.watch()
	g.box.want(w, g.pump)
	return func(ctx context.Context, what string) (letter, error) {
		select {
		case <-w.came:
		case <-ctx.Done():
			if g.box.forget(w) {
				return letter{}, &RankError{Call: what, Ranks: w.ranks(), Err: context.Cause(ctx)}
			}
			<-w.came
		}
		if e := new(RankError); errors.As(w.err, &e) {
			return letter{}, &RankError{Call: what, Ranks: e.Ranks, Err: e.Err}
		}
		return w.letter, w.err
	}
}

// ranks returns the rank from which w waits, if it is one.
func (w *wanted) ranks() []int {
	if w.from == AnyRank {
		return nil
	}
	return []int{w.from}
}

// peerOf returns the death in an error, if it is one.
func peerOf(err error) (p *shm.PeerError) {
	errors.As(err, &p)
	return p
}

// pump takes letters from the inbox while anybody waits; see Note [Letters].
func (m *member) pump() {
	inbox, failed := m.mailbox()
	for {
		ctx, gone, more := m.box.next()
		if !more {
			return
		}
		if failed != nil {
			m.box.drop(failed)
			continue
		}
		l, err := inbox.Get(ctx)
		switch {
		case err == nil:
			m.box.deliver(l)
		case errors.Is(err, ipc.ErrClosed):
			m.box.drop(ErrClosed)
		case ctx.Err() != nil:
			m.empty(inbox)
			m.box.expire(gone)
		default:
			m.box.drop(err)
		}
	}
}

func (m *member) empty(inbox mailbox) {
	for {
		l, err := inbox.TryGet()
		if err != nil {
			return
		}
		m.box.deliver(l)
	}
}
