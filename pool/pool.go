package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/registry"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Pool is a number of workers that run tasks. Several goroutines may call its methods. The caller
// closes it.
type Pool struct {
	opts Options
	init call // of each worker

	ctx      context.Context // of the workers
	cancel   context.CancelCauseFunc
	deadline sys.Deadline  // of the context given to New
	detach   func() bool   // from the context given to New
	ready    chan struct{} // closed when every worker was ready once, or none will be
	gone     chan struct{} // closed when no worker is left and none will come
	seed     uint64        // what those of the workers follow from

	mu       sync.Mutex
	members  []*member // by rank
	ranks    []rank
	pending  queue // tasks that no worker has
	given    int   // tasks that workers have
	lastID   uint64
	lives    int         // workers that have not ended
	newborn  int         // ranks none of whose workers was ready yet
	spread   *time.Timer // see lookAgain
	finished bool
	restful  bool
	rested   chan struct{} // closed, with restful, when nothing is left to do, ever
	cause    error         // of the end, once the pool has ended
}

// A rank is what is known of the workers that had one place, one after the other.
type rank struct {
	hired  int       // how often
	begun  bool      // one was ready
	barren int       // how many in a row ended before they were ready
	since  time.Time // the first of these ended
	why    error     // of the last of these
}

// New starts the workers of a pool. It does not wait until they are ready; [Pool.Ready] does. When
// ctx ends, the pool ends as by Close. The caller closes the pool. The error wraps shoal.ErrNoMain
// in a program that has not called shoal.Main.
func New(ctx context.Context, opts Options) (*Pool, error) {
	if !registry.Sealed() {
		return nil, fmt.Errorf("pool: %w", shoal.ErrNoMain)
	}
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if opts.Process.Files, err = duplicate(opts.Process.Files); err != nil {
		return nil, fmt.Errorf("pool: Process.Files: %w", err)
	}
	p := &Pool{opts: opts, ready: make(chan struct{}), gone: make(chan struct{}), newborn: opts.Workers,
		rested: make(chan struct{}), seed: seed.From(ctx).Next(), deadline: sys.DeadlineOf(ctx)}
	if capture := opts.Initializer.capture; capture != nil {
		if p.init, err = capture(); err != nil {
			return nil, errors.Join(fmt.Errorf("pool: the initializer's argument cannot cross: %w", err),
				closeFiles(opts.Process.Files))
		}
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	p.members, p.ranks = make([]*member, opts.Workers), make([]rank, opts.Workers)
	p.lives = opts.Workers
	for rank := range opts.Workers {
		p.hire(rank)
	}
	p.detach = context.AfterFunc(ctx, func() { p.end(context.Cause(ctx)) })
	return p, nil
}

// Ready waits until every worker has run its initializer. The error is ErrBroken with the reason,
// ErrClosed or that of ctx.
func (p *Pool) Ready(ctx context.Context) error {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// Finish says that no more tasks come: Python's close. Workers end after the last task.
func (p *Pool) Finish() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
	p.rest()
	p.feedAll()
}

// Join waits, after Finish or Close, until all workers have ended. The error is the reason if the
// pool ended otherwise, the error of ctx, or ErrRunning before Finish and Close.
func (p *Pool) Join(ctx context.Context) error {
	p.mu.Lock()
	running := !p.finished && p.cause == nil
	p.mu.Unlock()
	if running {
		return ErrRunning
	}
	select {
	case <-p.gone:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == ErrClosed {
		return nil
	}
	return p.cause
}

// Close ends the pool at once and waits for its workers: Python's terminate and join. Unfinished
// tasks fail with ErrClosed. To finish all tasks, call Finish and Join before Close. Close is
// idempotent.
func (p *Pool) Close() error {
	p.end(ErrClosed)
	<-p.gone
	if p.detach != nil {
		p.detach()
	}
	return nil
}

// end fails what waits and cancels the workers, whose tasks fail when they have ended.
func (p *Pool) end(cause error) {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
		p.cancel(cause)
	}
	waiting := p.pending.clear()
	if p.spread != nil {
		p.spread.Stop()
	}
	if p.newborn > 0 {
		p.newborn = 0
		close(p.ready)
	}
	p.mu.Unlock()
	for _, t := range waiting {
		t.fail(cause)
	}
}

// leave is the end of a worker that gets no successor.
func (p *Pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives--; p.lives > 0 {
		return
	}
	p.cancel(p.cause)
	p.init.args.release()
	closeFiles(p.opts.Process.Files)
	close(p.gone)
}

// submit hands tasks in. Those that the pool does not take fail.
func (p *Pool) submit(tasks []*task) {
	p.mu.Lock()
	err := p.cause
	if err == nil && p.finished {
		err = ErrClosed
	}
	if err == nil {
		for _, t := range tasks {
			p.lastID++
			t.id = p.lastID
		}
		p.pending.push(tasks...)
	}
	p.mu.Unlock()
	if err != nil {
		for _, t := range tasks {
			t.fail(err)
		}
		return
	}
	p.feedAll()
}

// feedAll gives each worker what it can take.
func (p *Pool) feedAll() {
	p.mu.Lock()
	members := slices.Clone(p.members)
	p.mu.Unlock()
	for _, m := range members {
		if m != nil {
			m.feed()
		}
	}
}

// hire starts a worker that is counted among the living already.
func (p *Pool) hire(rank int) {
	m, err := newMember(p, rank, p.seedOf(rank))
	if err != nil {
		p.mu.Lock()
		broken := p.despair(rank, err)
		p.mu.Unlock()
		p.reportBarren(rank, err)
		if broken != nil {
			p.end(broken)
		}
		p.succeed(rank)
		return
	}
	p.mu.Lock()
	p.members[rank] = m
	p.mu.Unlock()
	m.feed() // it may have been ready before it was in its place
}

// succeed starts the next worker of a rank, after a pause if those before it were never ready, or
// is the end of the rank.
func (p *Pool) succeed(rank int) {
	p.mu.Lock()
	over := p.cause != nil || p.exhausted()
	pause := backOff(p.ranks[rank].barren)
	p.mu.Unlock()
	switch {
	case over:
		p.leave()
	case pause == 0:
		p.hire(rank)
	default:
		go func() {
			select {
			case <-time.After(pause):
				p.mu.Lock()
				over := p.cause != nil || p.exhausted()
				p.mu.Unlock()
				if !over {
					p.hire(rank)
					return
				}
			case <-p.ctx.Done():
			case <-p.rested:
			}
			p.leave()
		}()
	}
}

// seedOf returns what the random numbers of the next worker of a rank begin with, whenever the
// others come and go.
func (p *Pool) seedOf(rank int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ranks[rank].hired++
	return seed.Of(p.seed, "", rank, p.ranks[rank].hired-1)
}

// exhausted reports whether nothing is left to do, ever. mu is held.
func (p *Pool) exhausted() bool { return p.finished && p.pending.len() == 0 && p.given == 0 }
