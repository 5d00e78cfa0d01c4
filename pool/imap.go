package pool

import (
	"context"
	"iter"
	"sync/atomic"
)

// Imap runs the function with each value of in and returns the results in their order, as they come. It draws from in, on the
// goroutine of the loop, no more than Options.Window ahead of the loop.
//
// A value that failed is yielded as its error, a chunk of several once, and the loop may go on; the end of ctx or of the pool is the last thing
// that is yielded. When the loop breaks off, chunks that no worker has are not run, and the context of those that run is cancelled.
func (f *Func[In, Out]) Imap(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.lazily(ctx, p, in, true)
}

// ImapUnordered is Imap with the results in the order in which they are ready.
func (f *Func[In, Out]) ImapUnordered(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.lazily(ctx, p, in, false)
}

// A chunk is on its way until it is in its slot.
type chunk[Out any] struct {
	out []Out
	err error
}

// A stream is one loop of an Imap.
type stream[In, Out any] struct {
	f     *Func[In, Out]
	p     *Pool
	next  func() (In, bool) // nil when the input is over
	size  int               // of a chunk
	drawn int               // values
	drop  atomic.Bool
	slots []chan chunk[Out] // of the chunks under way, in the order in which they are wanted
	any   chan chunk[Out]   // the one slot for all, if the order does not matter
}

func (f *Func[In, Out]) lazily(ctx context.Context, p *Pool, in iter.Seq[In], ordered bool) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		next, stop := iter.Pull(in)
		defer stop()
		size, window := p.opts.lazy()
		s := &stream[In, Out]{f: f, p: p, next: next, size: size}
		defer p.stop(&s.drop)
		if !ordered {
			s.any = make(chan chunk[Out], window)
		}
		for {
			for len(s.slots) < window && s.draw() {
			}
			if len(s.slots) == 0 || !s.pass(ctx, yield) {
				return
			}
		}
	}
}

// draw hands in one more chunk, unless the input is over.
func (s *stream[In, Out]) draw() bool {
	in := s.take()
	if len(in) == 0 {
		return false
	}
	slot := s.any
	if slot == nil {
		slot = make(chan chunk[Out], 1)
	}
	s.slots = append(s.slots, slot)
	t, err := s.f.newTask(in, s.drawn, &slotted[In, Out]{s, slot})
	s.drawn += len(in)
	if err != nil {
		slot <- chunk[Out]{nil, err}
		return true
	}
	s.p.submit([]*task{t})
	return true
}

// take draws the values of one chunk.
func (s *stream[In, Out]) take() (in []In) {
	for s.next != nil && len(in) < s.size {
		v, ok := s.next()
		if !ok {
			s.next = nil
			break
		}
		in = append(in, v)
	}
	return in
}

// A slotted owner puts what comes of its task into a slot, which has room.
type slotted[In, Out any] struct {
	s    *stream[In, Out]
	slot chan chunk[Out]
}

func (o *slotted[In, Out]) dropped() bool { return o.s.drop.Load() }
func (o *slotted[In, Out]) away() bool    { return o.s.drop.Load() }

func (o *slotted[In, Out]) over(t *task, r reply, err error) {
	out := make([]Out, t.n)
	err = o.s.f.results(t, r, err, out)
	o.slot <- chunk[Out]{out, err}
}

// pass yields the next chunk, and reports whether the loop goes on.
func (s *stream[In, Out]) pass(ctx context.Context, yield func(Out, error) bool) bool {
	var zero Out
	var c chunk[Out]
	select {
	case c = <-s.slots[0]:
	case <-ctx.Done():
		yield(zero, context.Cause(ctx))
		return false
	}
	s.slots = s.slots[1:]
	if c.err != nil {
		return yield(zero, c.err) && s.p.open()
	}
	for _, v := range c.out {
		if !yield(v, nil) {
			return false
		}
	}
	return true
}

// open reports whether the pool has not ended.
func (p *Pool) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause == nil
}
