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

// Imap returns an iterator that runs the function with each value of in, and yields the results in
// the order of the values, each as soon as it is available. It pulls values from in on the
// goroutine of the loop, at most Options.Window ahead of the results. The caller must close the
// shared memory of the results.
//
// If a value fails, Imap yields its error, once per chunk, and the loop may continue. When ctx is
// done or the pool ends, Imap yields the cause as the last error. If the loop breaks, the pool
// drops the chunks that no worker has started, and cancels the context of running chunks.
//
// To continue after a timeout, use [Func.ImapAsync].
func (f *Func[In, Out]) Imap(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.imapSeq(ctx, p, in, true)
}

// ImapUnordered is like [Func.Imap], but yields the results in order of completion.
func (f *Func[In, Out]) ImapUnordered(ctx context.Context, p *Pool, in iter.Seq[In]) iter.Seq2[Out, error] {
	return f.imapSeq(ctx, p, in, false)
}

func (f *Func[In, Out]) imapSeq(ctx context.Context, p *Pool, in iter.Seq[In], ordered bool) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		m := f.newIMap(p, in, sys.DeadlineOf(ctx), ordered)
		defer m.Close()
		for {
			v, err := m.Next(ctx)
			if err == io.EOF || !yield(v, err) || errors.Is(err, ErrNotReady) && ctx.Err() != nil {
				return
			}
		}
	}
}

// ImapAsync is like [Func.Imap], but the caller takes the results one by one with [IMap.Next],
// with a context per result. ImapAsync pulls the first Options.Window values before it returns.
// Later values are pulled during calls of Next. The caller must close the IMap.
func (f *Func[In, Out]) ImapAsync(p *Pool, in iter.Seq[In]) *IMap[Out] {
	return f.newIMap(p, in, 0, true).submitChunks()
}

// ImapUnorderedAsync is like [Func.ImapAsync], but Next returns the results in order of completion.
func (f *Func[In, Out]) ImapUnorderedAsync(p *Pool, in iter.Seq[In]) *IMap[Out] {
	return f.newIMap(p, in, 0, false).submitChunks()
}

// An IMap delivers the results of [Func.ImapAsync], like Python's IMapIterator. It must not be used
// by several goroutines at once.
type IMap[Out any] struct {
	p      *Pool
	draw   func(to chan chunk[Out]) bool // submits one more chunk; false at the end of the input
	stop   func()                        // ends the input
	drop   atomic.Bool
	window int               // maximum number of chunks in flight
	chunks []chan chunk[Out] // result channel of each chunk in flight, in the order of delivery
	any    chan chunk[Out]   // shared channel if the order does not matter, else nil
	ready  []Out             // available results that were not taken yet
	users  users             // users of the ready results
}

func (f *Func[In, Out]) newIMap(p *Pool, in iter.Seq[In], by sys.Deadline, ordered bool) *IMap[Out] {
	size, window := p.opts.imapWindow(f.chunk)
	m := &IMap[Out]{p: p, window: window}
	s := &stream[In, Out]{f: f, p: p, size: size, by: by.Earlier(p.deadline), drop: &m.drop}
	s.next, m.stop = iter.Pull(in)
	m.draw = s.submitChunk
	if !ordered {
		m.any = make(chan chunk[Out], window)
	}
	return m
}

// Next waits for the next result and returns it. The caller must close its shared memory. If ctx is
// done first, the error wraps [ErrNotReady] and the cause of ctx, and a later Next returns the
// result. After the last result Next returns [io.EOF]. If a value failed, Next returns its error,
// once per chunk; the caller may then call Next for the following chunks unless the pool has ended.
func (m *IMap[Out]) Next(ctx context.Context) (v Out, err error) {
	if len(m.ready) == 0 {
		if err := m.awaitChunk(ctx); err != nil {
			return v, err
		}
	}
	v, m.ready, m.users = m.ready[0], m.ready[1:], m.users.markFirst()
	return v, nil
}

// awaitChunk waits for the next chunk and stores its results in m.ready, which must be empty. It
// returns [io.EOF] after the last chunk, the error of firstChunk, or the error of a failed
// chunk.
func (m *IMap[Out]) awaitChunk(ctx context.Context) error {
	if m.submitChunks(); len(m.chunks) == 0 {
		m.Close()
		return io.EOF
	}
	c, err := m.firstChunk(ctx)
	if err != nil {
		return err
	}
	m.chunks = m.chunks[1:]
	if c.err == nil {
		m.ready, m.users = c.out, c.users
		return nil
	}
	if !m.p.isOpen() {
		m.Close()
	}
	return c.err
}

// firstChunk waits for the next chunk to deliver. There must be one in flight. An available chunk
// is returned even if ctx is done. Otherwise the error wraps [ErrNotReady] and the cause of ctx.
// The error of a failed task is in the chunk.
func (m *IMap[Out]) firstChunk(ctx context.Context) (c chunk[Out], err error) {
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

// submitChunks pulls values and submits them in chunks until the window is full or the input
// ends. It returns m.
func (m *IMap[Out]) submitChunks() *IMap[Out] {
	for len(m.chunks) < m.window {
		to := cmp.Or(m.any, make(chan chunk[Out], 1))
		if !m.draw(to) {
			break
		}
		m.chunks = append(m.chunks, to)
	}
	return m
}

// Close discards the remaining results and releases their shared memory. The pool drops the chunks
// that no worker has started, and cancels the context of running chunks. After Close, Next returns
// [io.EOF]. Close is idempotent.
func (m *IMap[Out]) Close() error {
	m.stop()
	m.p.stopOwner(&m.drop)
	m.users.markAll(false)
	for _, c := range m.chunks {
		discardChunk(c)
	}
	m.ready, m.users, m.chunks, m.window = nil, nil, nil, 0
	return nil
}

// discardChunk takes a chunk from the channel, if there is one, and releases the shared memory
// of its results. It does not block.
func discardChunk[Out any](from <-chan chunk[Out]) {
	select {
	case c := <-from:
		c.users.markAll(false)
	default:
	}
}

// A chunk is the outcome of one task: results or an error.
type chunk[Out any] struct {
	out   []Out
	users users
	err   error
}

// A stream is the input of an [IMap]. Only the goroutine that uses the IMap uses it, except
// drop.
type stream[In, Out any] struct {
	f     *Func[In, Out]
	p     *Pool
	next  func() (In, bool) // nil at the end of the input
	size  int               // values per chunk
	by    sys.Deadline      // deadline of the caller's context
	drawn int               // number of values pulled so far
	drop  *atomic.Bool
}

// submitChunk pulls the values of one more chunk, submits them as a task with the outcome sent
// to the channel to, and returns true. It returns false at the end of the input. If the values
// cannot be encoded, the outcome is the error.
func (s *stream[In, Out]) submitChunk(to chan chunk[Out]) bool {
	in := s.pullChunk()
	if len(in) == 0 {
		return false
	}
	t, err := s.f.newTask(s.p, in, s.drawn, s.by, &chunkOwner[In, Out]{s, to})
	s.drawn += len(in)
	if err != nil {
		to <- chunk[Out]{err: err}
		return true
	}
	s.p.submitTasks([]*task{t})
	return true
}

// pullChunk pulls the values of one chunk, at most s.size. The result is empty at the end of the
// input.
func (s *stream[In, Out]) pullChunk() (in []In) {
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

// A chunkOwner is the [owner] of one task of an IMap. It sends the outcome of the task to a
// channel, which must have room for it.
type chunkOwner[In, Out any] struct {
	s  *stream[In, Out]
	to chan chunk[Out]
}

func (o *chunkOwner[In, Out]) isDropped() bool { return o.s.drop.Load() }
func (o *chunkOwner[In, Out]) isAway() bool    { return o.s.drop.Load() }

func (o *chunkOwner[In, Out]) completeTask(t *task, r reply, err error) {
	out := make([]Out, t.n)
	u, err := o.s.f.decodeResults(t, r, err, out)
	o.to <- chunk[Out]{out, u, err}
	if o.isDropped() { // Close may have emptied the channel before the send
		discardChunk(o.to)
	}
}

// isOpen reports whether the pool has not ended, by Close, by its context or by a failure. After
// [Pool.Finish] it still returns true.
func (p *Pool) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause == nil
}
