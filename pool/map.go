package pool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/sys"
)

// newTask returns a task for the workers of p with a copy of the chunk in. first is the index of
// its first value in the whole call, by is the deadline of the call's context, and o receives
// the outcome. The caller must submit the task. The error is a [*TaskError].
func (f *Func[In, Out]) newTask(p *Pool, in []In, first int, by sys.Deadline, o owner) (*task, error) {
	args, err := f.packArguments(p.local, in)
	if err != nil {
		return nil, &TaskError{Func: f.name, Index: first, Err: err}
	}
	c := call{fn: f.name, n: len(in), args: args, deadline: by, local: p.local}
	return &task{call: c, owner: o, first: first}, nil
}

func (f *Func[In, Out]) packArguments(local bool, in []In) (payload, error) {
	if local {
		return packLocal(f.forms().in, in)
	}
	return packValues(f.in, in)
}

// decodeResults decodes the results of a task into out, which must have t.n elements. The caller
// must mark the returned users, which watch the shared memory of the results, as used or unused.
// If err is not nil, decodeResults only returns it. The error of decoding is a [*TaskError].
func (f *Func[In, Out]) decodeResults(t *task, r reply, err error, out []Out) (users, error) {
	if err != nil {
		return nil, err
	}
	if r.results.values != nil {
		return unpackValues(f.out, r.results, out)
	}
	var u users
	err = goexit.Recover(shoal.ErrPanic, func() (err error) { // runs the user's UnmarshalBinary
		u, err = unpackValues(f.out, r.results, out)
		return err
	})
	if err != nil {
		return nil, &TaskError{Func: f.name, Index: t.first, Err: err}
	}
	return u, nil
}

// Apply runs the function with one value and returns the result. The caller must close the result's
// shared memory and still owns in. The error is a [*TaskError], the cause of ctx, [ErrClosed] or
// [ErrBroken].
func (f *Func[In, Out]) Apply(ctx context.Context, p *Pool, in In) (Out, error) {
	out, err := f.Map(ctx, p, []In{in})
	if err != nil {
		var zero Out
		return zero, err
	}
	return out[0], nil
}

// ApplyAsync submits one value to the pool and returns as soon as the value is copied. The
// caller still owns in. Errors are errors of the Result.
func (f *Func[In, Out]) ApplyAsync(p *Pool, in In) *Result[Out] {
	r := newResult[Out]()
	one := func(out []Out, err error) {
		var v Out
		if err == nil {
			v = out[0]
		}
		r.complete(v, err)
	}
	whole := f.MapAsync(p, []In{in})
	r.cancel = whole.Cancel
	whole.onDone(one, one)
	return r
}

// Map runs the function with each value and returns the results in the order of the values. The
// caller must close the results' shared memory, and still owns in. The error is the error of the
// first task that failed, usually a [*TaskError]. After a failure the pool drops the chunks that
// no worker has started, and Map waits for the running ones. If ctx is done, Map returns its
// cause, and the pool cancels the context of the running tasks. In both cases the pool releases
// the shared memory of the results so far.
func (f *Func[In, Out]) Map(ctx context.Context, p *Pool, in []In) ([]Out, error) {
	g := f.startGather(p, in, sys.DeadlineOf(ctx))
	out, err := g.result.Get(ctx)
	if at, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(at) {
		<-ctx.Done() // a worker noticed the deadline first
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() != nil {
		p.stopOwner(&g.gone)
	}
	return out, err
}

// MapAsync submits the values to the pool and returns as soon as they are copied. The caller
// still owns in. Errors, such as [ErrClosed], are errors of the Result.
func (f *Func[In, Out]) MapAsync(p *Pool, in []In) *Result[[]Out] {
	return f.startGather(p, in, 0).result
}

// A gathering is the [owner] of the tasks of one Map or MapAsync, and collects their results.
type gathering[In, Out any] struct {
	f      *Func[In, Out]
	result *Result[[]Out]
	out    []Out
	drop   atomic.Bool // a chunk has failed
	gone   atomic.Bool // the result is no longer wanted

	mu       sync.Mutex
	left     int // number of chunks without an outcome
	canceled bool
	users    users
	err      error
}

// handIn is the number of chunks submitted at once.
const handIn = 64

func (f *Func[In, Out]) startGather(p *Pool, in []In, by sys.Deadline) *gathering[In, Out] {
	size := p.opts.chunkSize(f.chunk, len(in), f.pace.perValue())
	chunks := (len(in) + size - 1) / size
	g := &gathering[In, Out]{f: f, result: newResult[[]Out](), out: make([]Out, len(in)), left: chunks}
	g.result.cancel = func() bool { return g.cancelRest(p) }
	if chunks == 0 {
		g.result.complete(g.out, nil)
	}
	tasks := make([]*task, 0, min(chunks, handIn))
	for lo := 0; lo < len(in); lo += size {
		t, err := f.newTask(p, in[lo:min(lo+size, len(in))], lo, by.Earlier(p.deadline), g)
		if err != nil {
			g.recordChunks((len(in)-lo+size-1)/size, nil, err)
			break
		}
		if tasks = append(tasks, t); len(tasks) == handIn {
			p.submitTasks(tasks)
			tasks = tasks[:0]
		}
	}
	p.submitTasks(tasks)
	return g
}

func (g *gathering[In, Out]) isDropped() bool { return g.drop.Load() || g.gone.Load() }
func (g *gathering[In, Out]) isAway() bool    { return g.gone.Load() }

func (g *gathering[In, Out]) completeTask(t *task, r reply, err error) {
	if err == nil && g.isDropped() {
		err = errDropped // results that are not decoded are released by the pool
	}
	if err == nil {
		g.f.pace.recordChunk(r.took, t.n)
	}
	u, err := g.f.decodeResults(t, r, err, g.out[t.first:t.first+t.n])
	g.recordChunks(1, u, err)
}

// recordChunks records the outcome of a number of chunks: err, or nil and the users of their
// results. The last one completes the result. If any chunk failed, the shared memory of all
// results is released.
func (g *gathering[In, Out]) recordChunks(chunks int, u users, err error) {
	g.mu.Lock()
	g.users = append(g.users, u...)
	if err != nil && g.err == nil {
		g.err = err
		g.drop.Store(true)
	}
	g.left -= chunks
	over, canceled, all, err := g.left == 0, g.canceled, g.users, g.err
	g.mu.Unlock()
	if !over {
		return
	}
	if all.markAll(err == nil && !canceled); err != nil {
		g.out = nil
	}
	if !canceled {
		g.result.complete(g.out, err)
	}
}

// cancelRest completes the result with [ErrCanceled], unless all chunks have an outcome or it
// was canceled before, and reports whether it did. The outcomes of the other chunks are then
// discarded.
func (g *gathering[In, Out]) cancelRest(p *Pool) bool {
	g.mu.Lock()
	cancel := g.left > 0 && !g.canceled
	g.canceled = g.canceled || cancel
	g.mu.Unlock()
	if cancel {
		p.stopOwner(&g.gone)
		g.result.complete(nil, ErrCanceled)
	}
	return cancel
}
