package shoal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Options of a Group. The zero value is good.
type Options struct {
	// Workers is how many processes are expected, for the thread budget: each gets Threads()/Workers, at least one. 0 means as
	// many as there are threads, so each gets one.
	Workers int

	// Threads replaces the share that a worker would get.
	Threads int

	// Grace is how long a cancelled worker has until SIGTERM, and from there to SIGKILL. Default 2 s.
	Grace time.Duration

	// OrphanGrace is how long a worker, and its descendants, live on after their starter has died, however it died. Default 50 ms.
	OrphanGrace time.Duration

	// Env has entries KEY=VALUE that replace or add to those of this process.
	Env []string

	// Stdout and Stderr receive what workers print. Defaults are os.Stdout and os.Stderr. A group
	// writes to each from one goroutine at a time.
	Stdout, Stderr io.Writer

	// Output is what is done with it, and Dir the folder for Files.
	Output Output
	Dir    string
}

const (
	defaultGrace       = 2 * time.Second
	defaultOrphanGrace = 50 * time.Millisecond
)

// A Group is a set of processes that live and end together: the first that fails cancels the others. Its methods may be called
// by several goroutines. Every group needs a Wait or a Close.
type Group struct {
	opts     Options
	out, err *stream

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	changed  sync.Cond // of live
	live     map[*Process]struct{}
	ranks    map[string]int
	failures []error
	closed   bool
}

// NewGroup returns an empty group. When ctx is cancelled its processes are, too.
func NewGroup(ctx context.Context, opts Options) *Group {
	opts.Grace = cmp.Or(opts.Grace, defaultGrace)
	opts.OrphanGrace = cmp.Or(opts.OrphanGrace, defaultOrphanGrace)
	if opts.Stdout == nil {
		opts.Stdout = os.Stdout
	}
	if opts.Stderr == nil {
		opts.Stderr = os.Stderr
	}
	g := &Group{
		opts:  opts,
		live:  make(map[*Process]struct{}),
		ranks: make(map[string]int),
	}
	g.changed.L = &g.mu
	oom()
	g.out, g.err = newStreams(opts.Stdout, opts.Stderr)
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Spawn runs n processes with ranks 0 to n-1 and the same argument, and waits for all of them. The first failure
// cancels the others; the error joins all failures, the first one first, each a *ProcessError. The thread
// budget of this process is divided by n.
//
// Tensors and whatever else is shared in the argument are not copied: every process works on the same memory.
func (f *Func[In]) Spawn(ctx context.Context, n int, in In) error {
	if n < 1 {
		return fmt.Errorf("shoal: %s.Spawn: %d processes; at least 1 is needed", f.name, n)
	}
	g := NewGroup(ctx, Options{Workers: n})
	s, err := f.ship(in, n)
	if err != nil {
		g.Close()
		return fmt.Errorf("shoal: %s.Spawn: %w", f.name, err)
	}
	for range n {
		g.start(f.name, s)
	}
	return g.Wait()
}

// Go starts one more process in g. Ranks count per function within a group. It does not wait for the process, and never returns
// nil: a process that could not be started has failed, which Process.Wait and Group.Wait say.
func (f *Func[In]) Go(g *Group, in In) *Process {
	s, err := f.ship(in, 1)
	if err != nil {
		return g.unstarted(f.name, err)
	}
	return g.start(f.name, s)
}

// ship encodes the argument for n processes.
func (f *Func[In]) ship(in In, n int) (*shipment, error) {
	if !functions.ready() {
		return nil, ErrNoMain
	}
	return f.arg.encode(in, n)
}

// start adds a process to the group.
func (g *Group) start(name string, s *shipment) *Process {
	p, err := g.enter(name)
	if err == nil {
		err = p.start(s)
	}
	if err != nil {
		s.done()
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
	p := &Process{group: g, name: name, rank: g.ranks[name], origin: caller(), ended: make(chan struct{})}
	g.ranks[name]++
	g.live[p] = struct{}{}
	if len(g.live) == 1 {
		groups.add(g)
	}
	if g.closed {
		return p, ErrClosed
	}
	if g.ctx.Err() != nil {
		return p, fmt.Errorf("not started, because its group is cancelled: %w", context.Cause(g.ctx))
	}
	return p, nil
}

// leave is the end of a process.
func (g *Group) leave(p *Process, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, p)
	if len(g.live) == 0 {
		groups.remove(g)
	}
	if err != nil && !g.echo(err) {
		g.failures = append(g.failures, err)
		g.cancel(&halt{err})
	}
	g.changed.Broadcast()
}

// echo reports whether err only says that a process obeyed the cancellation.
func (g *Group) echo(err error) bool {
	if g.ctx.Err() == nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(g.ctx)) || errors.Is(err, ErrClosed)
}

// Wait blocks until every process of the group has ended, and closes the group. Its error joins all failures, the first
// one first, each a *ProcessError, or is nil. What a process returned only because it was cancelled is no failure; the cancellation
// of the group's context is one, whatever the processes made of it.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.live) > 0 {
		g.changed.Wait()
	}
	if !g.closed {
		g.closed = true
		if g.ctx.Err() != nil && !g.halted() && len(g.ranks) > 0 {
			g.failures = append([]error{context.Cause(g.ctx)}, g.failures...)
		}
		g.cancel(&halt{ErrClosed})
	}
	return join(g.failures)
}

// A halt is the cause of a cancellation by the group itself, not by the context that it was given.
type halt struct{ error }

func (h *halt) Unwrap() error { return h.error }

func (g *Group) halted() bool {
	_, own := context.Cause(g.ctx).(*halt)
	return own
}

// Close ends what still runs, by a cancel message, SIGTERM after Grace and SIGKILL after Grace again, and waits for it.
// It returns what Wait does. It is meant for defer: after Wait it does nothing.
func (g *Group) Close() error {
	g.cancel(&halt{ErrClosed})
	return g.Wait()
}

// threads returns the budget of one worker.
func (g *Group) threads() int {
	switch {
	case g.opts.Threads > 0:
		return g.opts.Threads
	case g.opts.Workers > 0:
		return share(Threads(), g.opts.Workers)
	}
	return 1
}

// liveGroups are the groups with processes.
type liveGroups struct {
	mu  sync.Mutex
	set map[*Group]struct{}
}

var groups liveGroups

func (l *liveGroups) add(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		l.set = make(map[*Group]struct{})
	}
	l.set[g] = struct{}{}
}

func (l *liveGroups) remove(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, g)
}

// list returns them.
func (l *liveGroups) list() []*Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Group
	for g := range l.set {
		all = append(all, g)
	}
	return all
}

// close ends every process that this one has started.
func (l *liveGroups) close() {
	all := l.list()
	for _, g := range all {
		g.cancel(&halt{ErrClosed}) // all of them at once
	}
	for _, g := range all {
		g.Close()
	}
}
