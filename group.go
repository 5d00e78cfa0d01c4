package shoal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/registry"
	"github.com/shoal-mp/shoal/internal/seed"
)

// A Group is a set of processes that live and end together: the first failure cancels the others.
// Its methods may be called concurrently. The caller must call [Group.Wait] or [Group.Close].
type Group struct {
	opts     Options
	out, err *stream

	ctx    context.Context
	cancel context.CancelCauseFunc
	seed   func() uint64 // source of its processes' seeds; drawn when the first process starts

	mu       sync.Mutex
	changed  sync.Cond // signals changes of live
	live     map[*Process]struct{}
	all      []*Process // in start order
	ranks    map[string]int
	failures []error // first those of killed processes, last those caused by other failures
	killed   int     // number of failures of killed processes
	causes   int     // number of failures not caused by others
	closed   bool
}

// NewGroup returns a group without processes. [Func.Go] starts processes in it. If opts are
// invalid, each process fails to start with an error that says why. The contexts of its
// processes are canceled when ctx is, and have the deadline of ctx. The caller must call
// [Group.Wait] or [Group.Close].
func NewGroup(ctx context.Context, opts Options) *Group {
	opts = opts.withDefaults()
	g := &Group{
		opts:  opts,
		live:  make(map[*Process]struct{}),
		ranks: make(map[string]int),
	}
	g.changed.L = &g.mu
	oom()
	g.out, g.err = newStreams(opts.Stdout, opts.Stderr)
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.seed = sync.OnceValue(seed.From(ctx).Next)
	return g
}

// Spawn runs f in n processes with ranks 0 to n-1 and the same argument, and waits for all of
// them. The first failure cancels the others. The error is nil if all functions return nil.
// Otherwise it joins all failures in the same order as [Group.Wait], each a [*ProcessError]. The
// thread budget of this process is divided by n. The contexts of the processes have the deadline
// of ctx.
//
// Tensors and other shared values in the argument are not copied: all processes share their
// memory. The caller must still close them. Spawn returns [ErrNoMain] before [Main], and
// [ErrArgument] if the argument cannot be encoded.
func (f *Func[In]) Spawn(ctx context.Context, n int, in In) error {
	if n < 1 {
		return fmt.Errorf("shoal: %s.Spawn: %d processes, want at least 1", f.name, n)
	}
	g := NewGroup(ctx, Options{Workers: n})
	if err := f.startIn(g, n, in); err != nil {
		g.Close()
		return fmt.Errorf("shoal: %s.Spawn: %w", f.name, err)
	}
	return g.Wait()
}

// Start starts f in n processes with ranks 0 to n-1, the same argument and opts, without waiting
// for them, like start_processes in PyTorch. The caller must wait for the group with
// [Group.Wait] or [Group.Join], or call [Group.Close]. The caller must still close the shared
// values in the argument. If a single process cannot be started, Start returns no error, but
// Wait does. It returns [ErrNoMain] before [Main], and [ErrArgument] if the argument cannot be
// encoded; then it returns no group.
func (f *Func[In]) Start(ctx context.Context, n int, in In, opts Options) (*Group, error) {
	if n < 1 {
		return nil, fmt.Errorf("shoal: %s.Start: %d processes, want at least 1", f.name, n)
	}
	opts.Workers = cmp.Or(opts.Workers, n)
	g := NewGroup(ctx, opts)
	if err := f.startIn(g, n, in); err != nil {
		g.Close()
		return nil, fmt.Errorf("shoal: %s.Start: %w", f.name, err)
	}
	return g, nil
}

// startIn starts n processes of f in g with one encoding of the argument. It returns an error,
// and starts none, if the argument cannot be encoded; later errors are errors of the processes.
func (f *Func[In]) startIn(g *Group, n int, in In) error {
	s, err := f.encodeArgument(g, in, n)
	if err != nil {
		return err
	}
	for range n {
		g.startProcess(f.name, s)
	}
	return nil
}

// Go starts one more process in g, which runs f with the argument in. Ranks are counted per
// function within a group. Go does not wait for the process, and never returns nil. If the
// process cannot be started, [Process.Wait] and [Group.Wait] return the error.
func (f *Func[In]) Go(g *Group, in In) *Process {
	s, err := f.encodeArgument(g, in, 1)
	if err != nil {
		return g.addUnstarted(f.name, err)
	}
	return g.startProcess(f.name, s)
}

// encodeArgument encodes the argument and the files of the options for n processes of g. It
// returns [ErrNoMain] before [Main], an error that wraps [ErrClosed] after [Shutdown], and
// [ErrArgument] if the argument cannot be encoded.
func (f *Func[In]) encodeArgument(g *Group, in In, n int) (*encodedArg, error) {
	switch {
	case !registry.Sealed():
		return nil, ErrNoMain
	case shutdown.Load():
		return nil, errShutdown
	}
	return f.arg.encode(in, g.opts.Files, n)
}

// startProcess adds a process to the group, starts it with the argument s, and returns it. If it
// cannot be started, it has already ended with the error.
func (g *Group) startProcess(name string, s *encodedArg) *Process {
	p, err := g.addProcess(name)
	if err != nil {
		s.markLost(0)
	} else {
		err = p.startFirst(s)
	}
	if err != nil {
		p.publishResult(p.newFailure(err))
	}
	return p
}

// addUnstarted adds a process that failed with err before its start, and returns it: it has
// already ended.
func (g *Group) addUnstarted(name string, err error) *Process {
	p, refused := g.addProcess(name)
	p.publishResult(p.newFailure(cmp.Or(refused, err)))
	return p
}

// addProcess adds a process to the group and assigns its rank. It returns the process also with
// an error, which says why the process must not be started: the group is closed or canceled, or
// its options are invalid.
func (g *Group) addProcess(name string) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &Process{group: g, name: name, rank: g.opts.FirstRank + g.ranks[name], origin: callerTrail(),
		ended: make(chan struct{})}
	g.ranks[name]++
	g.live[p] = struct{}{}
	g.all = append(g.all, p)
	if len(g.live) == 1 {
		groups.add(g)
	}
	if g.closed {
		return p, ErrClosed
	}
	if g.ctx.Err() != nil {
		return p, fmt.Errorf("not started, the group is canceled: %w", context.Cause(g.ctx))
	}
	return p, g.opts.validate()
}

// removeProcess records that p has ended permanently, with err or nil. If that is a failure, it
// cancels the group.
func (g *Group) removeProcess(p *Process, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, p)
	if len(g.live) == 0 {
		groups.remove(g)
	}
	if err != nil && !p.asked.Load() && !g.isCancellation(err) {
		g.recordFailure(p, err)
		g.cancel(&halt{err})
	}
	g.changed.Broadcast()
}

// recordFailure inserts the failure err of p into g.failures, in the order of [Group.Wait]. mu
// must be held. A process that detects the end of another one may end before the other's failure
// is known: its own failure is then ordered last.
func (g *Group) recordFailure(p *Process, err error) {
	pe, ok := err.(*ProcessError)
	switch {
	case ok && (p.forced.Load() || pe.isConsequence()):
		g.failures = append(g.failures, err)
		return
	case ok && pe.Signal != nil:
		g.failures = slices.Insert(g.failures, g.killed, err)
		g.killed++
	default:
		g.failures = slices.Insert(g.failures, g.causes, err)
	}
	g.causes++
}

// awaitDeadline waits until the group's context has reached its deadline if err, the error of a
// process, wraps [context.DeadlineExceeded] and that deadline is still in the future: the
// process's timer may be earlier than this process's. Otherwise it returns immediately.
func (g *Group) awaitDeadline(err error) {
	at, ok := g.ctx.Deadline()
	if ok && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(at) {
		<-g.ctx.Done()
	}
}

// isCancellation reports whether the group was canceled and err, the error of a process, is only
// the result of that.
func (g *Group) isCancellation(err error) bool {
	if g.ctx.Err() == nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(g.ctx)) || errors.Is(err, ErrClosed)
}

// Wait blocks until every process of the group has ended, and closes the group. It returns nil, or
// an error that joins all failures, each a [*ProcessError], in order of time, with two exceptions:
// failures of killed processes come first, and failures caused by the end of another process, or
// because another process closed a shared object, come last. An error that a process returned only
// because it was canceled is not a failure. The cancellation of the group's context is a failure,
// regardless of the results of the processes.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.live) > 0 {
		g.changed.Wait()
	}
	return g.closeGroup()
}

// closeGroup closes a group without running processes and returns its error. mu must be held.
func (g *Group) closeGroup() error {
	if !g.closed {
		g.closed = true
		if g.ctx.Err() != nil && !g.isHalted() && len(g.ranks) > 0 {
			g.failures = append([]error{context.Cause(g.ctx)}, g.failures...)
		}
		g.cancel(&halt{ErrClosed})
	}
	return joinErrors(g.failures)
}

// Join waits like [Group.Wait], but only until ctx is done. If no process has failed by then, it
// returns false and no error, and may be called again. After a failure, Join waits for the others
// as long as Grace lets them live, and returns true and the error of Wait. With
// [context.WithTimeout] it is like ProcessContext.join(timeout) in PyTorch.
func (g *Group) Join(ctx context.Context) (ended bool, err error) {
	stop := g.wakeAfter(ctx)
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.live) > 0 {
		if ctx.Err() != nil && len(g.failures) == 0 {
			return false, nil
		}
		g.changed.Wait()
	}
	return true, g.closeGroup()
}

// Poll waits until no process of the group is running. It lets ipc.Wait wait for a group together
// with queues and pipes. [Group.Wait] then returns at once. Poll does not close the group. It
// returns nil or the cause of ctx.
func (g *Group) Poll(ctx context.Context) error {
	stop := g.wakeAfter(ctx)
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.live) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g.changed.Wait()
	}
	return nil
}

// wakeAfter wakes the goroutines that wait for a change of the group when ctx is done. The
// caller must call stop when it has stopped waiting.
func (g *Group) wakeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
}

// Processes returns the processes in the order of their start, including ended ones. With one
// function this is rank order.
func (g *Group) Processes() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// A halt is the cause of the context of a group that was canceled by the group itself, because
// of a failure or Close, not by the context passed to NewGroup.
type halt struct{ error }

func (h *halt) Unwrap() error { return h.error }

func (g *Group) isHalted() bool {
	_, own := context.Cause(g.ctx).(*halt)
	return own
}

// Close ends the processes that are still running: by cancellation, by SIGTERM after Grace, and
// by SIGKILL after another Grace. It waits for them and returns the same error as [Group.Wait].
// It should be deferred; after Wait it only returns the same error again.
func (g *Group) Close() error {
	g.cancel(&halt{ErrClosed})
	return g.Wait()
}
