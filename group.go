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

// A Group is a set of processes that live and end together: the first one that fails cancels the
// others. Several goroutines may call its methods. Every group needs a Wait or a Close.
type Group struct {
	opts     Options
	out, err *stream

	ctx    context.Context
	cancel context.CancelCauseFunc
	seed   func() uint64 // the seeds of its processes follow from it; drawn when the first process starts

	mu       sync.Mutex
	changed  sync.Cond // signals a change of live
	live     map[*Process]struct{}
	all      []*Process // in the order of their start
	ranks    map[string]int
	failures []error // those of killed processes first, those that follow from others last
	killed   int     // how many the first are
	causes   int     // how many the last stand behind
	closed   bool
}

// NewGroup returns an empty group. When ctx is cancelled, so are the contexts of its processes, and
// they have the deadline of ctx. The caller Waits for it or closes it.
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

// Spawn runs n processes with ranks 0 to n-1 and the same argument, and waits for all of them. The
// first failure cancels the others. The error joins all failures as that of Group.Wait does, each a
// *ProcessError. The thread budget of this process is divided by n. The contexts of the processes
// have the deadline of ctx.
//
// Tensors and other shared values in the argument are not copied: every process works on the same
// memory.
func (f *Func[In]) Spawn(ctx context.Context, n int, in In) error {
	if n < 1 {
		return fmt.Errorf("shoal: %s.Spawn: %d processes; at least 1 is needed", f.name, n)
	}
	g := NewGroup(ctx, Options{Workers: n})
	if err := f.startIn(g, n, in); err != nil {
		g.Close()
		return fmt.Errorf("shoal: %s.Spawn: %w", f.name, err)
	}
	return g.Wait()
}

// Start starts n processes with ranks 0 to n-1, the same argument and Options, and does not wait:
// it is Python's start_processes. The caller Joins, Waits for or closes the group.
func (f *Func[In]) Start(ctx context.Context, n int, in In, opts Options) (*Group, error) {
	if n < 1 {
		return nil, fmt.Errorf("shoal: %s.Start: %d processes; at least 1 is needed", f.name, n)
	}
	opts.Workers = cmp.Or(opts.Workers, n)
	g := NewGroup(ctx, opts)
	if err := f.startIn(g, n, in); err != nil {
		g.Close()
		return nil, fmt.Errorf("shoal: %s.Start: %w", f.name, err)
	}
	return g, nil
}

// startIn starts n processes with one copy of the argument.
func (f *Func[In]) startIn(g *Group, n int, in In) error {
	s, err := f.ship(g, in, n)
	if err != nil {
		return err
	}
	for range n {
		g.start(f.name, s)
	}
	return nil
}

// Go starts one more process in g. Ranks count per function within a group. Go does not wait for
// the process, and never returns nil. A process that could not be started has failed, and
// Process.Wait and Group.Wait return the error.
func (f *Func[In]) Go(g *Group, in In) *Process {
	s, err := f.ship(g, in, 1)
	if err != nil {
		return g.unstarted(f.name, err)
	}
	return g.start(f.name, s)
}

// ship encodes the argument for n processes of g.
func (f *Func[In]) ship(g *Group, in In, n int) (*encodedArg, error) {
	switch {
	case !registry.Sealed():
		return nil, ErrNoMain
	case shutdown.Load():
		return nil, errShutdown
	}
	return f.arg.encode(in, g.opts.Files, n)
}

// start adds a process to the group.
func (g *Group) start(name string, s *encodedArg) *Process {
	p, err := g.enter(name)
	if err != nil {
		s.lost(0)
	} else {
		err = p.start(s)
	}
	if err != nil {
		p.finish(p.failure(err))
	}
	return p
}

// unstarted adds a process that failed before it began.
func (g *Group) unstarted(name string, err error) *Process {
	p, refused := g.enter(name)
	p.finish(p.failure(cmp.Or(refused, err)))
	return p
}

// enter gives the next process its rank.
func (g *Group) enter(name string) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &Process{group: g, name: name, rank: g.opts.FirstRank + g.ranks[name], origin: callers(),
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
		return p, fmt.Errorf("not started, because its group is cancelled: %w", context.Cause(g.ctx))
	}
	return p, g.opts.check()
}

// leave takes note of the end of a process.
func (g *Group) leave(p *Process, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, p)
	if len(g.live) == 0 {
		groups.remove(g)
	}
	if err != nil && !p.asked.Load() && !g.echo(err) {
		g.fail(p, err)
		g.cancel(&halt{err})
	}
	g.changed.Broadcast()
}

// fail takes note of a failure. A process that notices the end of another one may end before the
// system, or the other one itself, says why: its failure follows from that one.
func (g *Group) fail(p *Process, err error) {
	pe, ok := err.(*ProcessError)
	switch {
	case ok && (p.forced.Load() || pe.follows()):
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

// awaitDeadline waits until the group's context has noticed its deadline, if err says that a
// process has: its timer may be the quicker one.
func (g *Group) awaitDeadline(err error) {
	at, ok := g.ctx.Deadline()
	if ok && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(at) {
		<-g.ctx.Done()
	}
}

// echo reports whether err only says that a process obeyed the cancellation.
func (g *Group) echo(err error) bool {
	if g.ctx.Err() == nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(g.ctx)) || errors.Is(err, ErrClosed)
}

// Wait blocks until every process of the group has ended, and closes the group. Its error is nil,
// or joins all failures, each a *ProcessError, the first one first; but those of processes that
// something killed come before the others, and those that say that another process has ended, or
// has closed what both used, come last. An error that a process
// returned only because it was cancelled is no failure. The cancellation of the group's context is
// a failure, whatever the processes returned after it.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.live) > 0 {
		g.changed.Wait()
	}
	return g.conclude()
}

// conclude closes a group without processes and returns its error.
func (g *Group) conclude() error {
	if !g.closed {
		g.closed = true
		if g.ctx.Err() != nil && !g.halted() && len(g.ranks) > 0 {
			g.failures = append([]error{context.Cause(g.ctx)}, g.failures...)
		}
		g.cancel(&halt{ErrClosed})
	}
	return join(g.failures)
}

// Join waits as Wait does, until ctx is done. If no process has failed by then, it returns false
// and no error, and may be called again. Once a process has failed, Join waits as long as Grace
// lets the others live, and returns true and the error of Wait. With context.WithTimeout it is
// Python's ProcessContext.join(timeout).
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
	return true, g.conclude()
}

// Poll waits until no process of the group runs. With it ipc.Wait can wait for a group among queues
// and pipes. A Wait then returns at once. Poll leaves the group open. It returns nil or the cause
// of ctx.
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

// wakeAfter wakes the goroutines that wait for a change of the group when ctx is done.
func (g *Group) wakeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
}

// Processes returns the processes in the order in which they were started. With one function this
// is the order of ranks.
func (g *Group) Processes() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// A halt is the cause of a cancellation by the group itself, not by the context that the group was
// given.
type halt struct{ error }

func (h *halt) Unwrap() error { return h.error }

func (g *Group) halted() bool {
	_, own := context.Cause(g.ctx).(*halt)
	return own
}

// Close ends the processes that still run, by a cancel message, by SIGTERM after Grace and by
// SIGKILL after Grace again, and waits for them. It returns what Wait returns. It is meant for
// defer: after Wait it does nothing.
func (g *Group) Close() error {
	g.cancel(&halt{ErrClosed})
	return g.Wait()
}
