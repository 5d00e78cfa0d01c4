package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Imap runs the function with each value of in and yields the results in the order of the values,
// each as soon as it is ready. It draws values from in on the goroutine of the loop, at most
// Options.Window ahead of the results.
//
// For a value that failed Imap yields its error, once for a chunk of several values, and the loop
// may go on. When ctx or the pool ends, Imap yields the reason as the last error. When the loop
// breaks off, the pool drops chunks that no worker has begun, and cancels the context of the
// running ones.
//
// To go on after a time-out, use [Func.ImapAsync].
func (f *Func[In, Out]) Imap(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.lazily(ctx, p, in, true)
}

// ImapUnordered runs the function as Imap does, but yields the results in the order in which they
// are ready.
func (f *Func[In, Out]) ImapUnordered(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.lazily(ctx, p, in, false)
}

func (f *Func[In, Out]) lazily(ctx context.Context, p *Pool, in iter.Seq[In], ordered bool) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		m := f.imap(p, in, sys.DeadlineOf(ctx), ordered)
		defer m.Close()
		for {
			v, err := m.Next(ctx)
			if err == io.EOF || !yield(v, err) || errors.Is(err, ErrNotReady) && ctx.Err() != nil {
				return
			}
		}
	}
}

// ImapAsync runs the function as Imap does. The caller takes the results one by one by [IMap.Next],
// each with a deadline of its own. ImapAsync draws the first Options.Window values before it
// returns. The caller closes the IMap.
func (f *Func[In, Out]) ImapAsync(p *Pool, in iter.Seq[In]) *IMap[Out] {
	return f.imap(p, in, 0, true).fill()
}

// ImapUnorderedAsync runs the function as ImapAsync does, but Next returns the results in the order
// in which they are ready.
func (f *Func[In, Out]) ImapUnorderedAsync(p *Pool, in iter.Seq[In]) *IMap[Out] {
	return f.imap(p, in, 0, false).fill()
}

// An IMap returns the results of an ImapAsync: Python's IMapIterator. One goroutine at a time may
// use it.
type IMap[Out any] struct {
	p      *Pool
	draw   func(to chan chunk[Out]) bool // hands in one more chunk, unless the input is over
	stop   func()                        // ends the input
	drop   atomic.Bool
	window int               // chunks
	chunks []chan chunk[Out] // of the chunks under way, in the order in which they are wanted
	any    chan chunk[Out]   // the one channel for all, if the order does not matter
	ready  []Out             // results that are there and have not been taken
	users  users             // of those
}

func (f *Func[In, Out]) imap(p *Pool, in iter.Seq[In], by sys.Deadline, ordered bool) *IMap[Out] {
	size, window := p.opts.lazy(f.chunk)
	m := &IMap[Out]{p: p, window: window}
	s := &stream[In, Out]{f: f, p: p, size: size, by: by.Earlier(p.deadline), drop: &m.drop}
	s.next, m.stop = iter.Pull(in)
	m.draw = s.draw
	if !ordered {
		m.any = make(chan chunk[Out], window)
	}
	return m
}

// Next waits for the next result and returns it. If ctx is done first, the error wraps ErrNotReady
// and the cause of ctx, and a later Next returns this result. After the last result the error is
// io.EOF. For a value that failed Next returns its error, once for a chunk of several values, and
// the next call goes on behind it, unless the pool has ended.
func (m *IMap[Out]) Next(ctx context.Context) (v Out, err error) {
	if len(m.ready) == 0 {
		if err := m.await(ctx); err != nil {
			return v, err
		}
	}
	v, m.ready, m.users = m.ready[0], m.ready[1:], m.users.first()
	return v, nil
}

// await waits for the next chunk.
func (m *IMap[Out]) await(ctx context.Context) error {
	if m.fill(); len(m.chunks) == 0 {
		m.Close()
		return io.EOF
	}
	c, err := m.first(ctx)
	if err != nil {
		return err
	}
	m.chunks = m.chunks[1:]
	if c.err == nil {
		m.ready, m.users = c.out, c.users
		return nil
	}
	if !m.p.open() {
		m.Close()
	}
	return c.err
}

// first waits for the chunk that is wanted first. What is there is had, also when ctx is done.
func (m *IMap[Out]) first(ctx context.Context) (c chunk[Out], err error) {
	select {
	case c = <-m.chunks[0]:
		return c, nil
	default:
	}
	select {
	case c = <-m.chunks[0]:
		return c, nil
	case <-ctx.Done():
		return c, fmt.Errorf("%w: %w", ErrNotReady, context.Cause(ctx))
	}
}

// fill hands in chunks up to the window.
func (m *IMap[Out]) fill() *IMap[Out] {
	for len(m.chunks) < m.window {
		to := cmp.Or(m.any, make(chan chunk[Out], 1))
		if !m.draw(to) {
			break
		}
		m.chunks = append(m.chunks, to)
	}
	return m
}

// Close drops the results that were not taken, and frees their shared memory. The pool drops chunks
// that no worker has begun, and cancels the context of the running ones. After Close, Next returns
// io.EOF. Close is idempotent.
func (m *IMap[Out]) Close() error {
	m.stop()
	m.p.stop(&m.drop)
	m.users.done(false)
	for _, c := range m.chunks {
		unread(c)
	}
	m.ready, m.users, m.chunks, m.window = nil, nil, nil, 0
	return nil
}

// unread drops a chunk that nobody reads, if one is there.
func unread[Out any](from <-chan chunk[Out]) {
	select {
	case c := <-from:
		c.users.done(false)
	default:
	}
}

// A chunk is on its way until it is in its channel.
type chunk[Out any] struct {
	out   []Out
	users users
	err   error
}

// A stream is the input of an IMap.
type stream[In, Out any] struct {
	f     *Func[In, Out]
	p     *Pool
	next  func() (In, bool) // nil when the input is over
	size  int               // of a chunk
	by    sys.Deadline      // of the caller's context
	drawn int               // values
	drop  *atomic.Bool
}

// draw hands in one more chunk, unless the input is over.
func (s *stream[In, Out]) draw(to chan chunk[Out]) bool {
	in := s.take()
	if len(in) == 0 {
		return false
	}
	t, err := s.f.newTask(in, s.drawn, s.by, &chunkOwner[In, Out]{s, to})
	s.drawn += len(in)
	if err != nil {
		to <- chunk[Out]{err: err}
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

// A chunkOwner puts what comes of its task into a channel, which has room.
type chunkOwner[In, Out any] struct {
	s  *stream[In, Out]
	to chan chunk[Out]
}

func (o *chunkOwner[In, Out]) dropped() bool { return o.s.drop.Load() }
func (o *chunkOwner[In, Out]) away() bool    { return o.s.drop.Load() }

func (o *chunkOwner[In, Out]) over(t *task, r reply, err error) {
	out := make([]Out, t.n)
	u, err := o.s.f.results(t, r, err, out)
	o.to <- chunk[Out]{out, u, err}
	if o.dropped() { // by now, and after the channel was emptied
		unread(o.to)
	}
}

// open reports whether the pool has not ended.
func (p *Pool) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause == nil
}
