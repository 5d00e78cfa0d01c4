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

// A Pool is a set of workers that run tasks. All methods may be called from several goroutines. The
// caller must close the pool.
type Pool struct {
	opts Options
	init call // initializer call of each worker

	local bool // the workers are goroutines of this process

	ctx      context.Context // context of the workers
	cancel   context.CancelCauseFunc
	deadline sys.Deadline  // deadline of the context passed to New
	detach   func() bool   // stops watching the context passed to New
	ready    chan struct{} // closed when each rank has had a ready worker, or the pool has ended
	gone     chan struct{} // closed when no worker is left and none will be started
	seed     uint64        // seed from which the workers' seeds are derived

	mu       sync.Mutex
	members  []*member // by rank
	ranks    []rank
	pending  queue // tasks that are not assigned to a worker
	given    int   // number of tasks assigned to workers
	lastID   uint64
	lives    int         // ranks that have a worker or will get one
	newborn  int         // ranks that have not had a ready worker yet
	spread   *time.Timer // see scheduleFeed
	finished bool
	restful  bool
	rested   chan struct{} // closed, and restful set, when no work is left and none can follow
	cause    error         // why the pool ended, or nil
}

// A rank is the history of the consecutive workers with one rank.
type rank struct {
	hired  int       // number of workers started
	begun  bool      // a worker was ready
	barren int       // consecutive workers that ended before being ready
	since  time.Time // time of the first of these failures
	why    error     // error of the last of these failures
}

// New returns a pool with opts and starts its workers, but does not wait until they are ready;
// see [Pool.Ready]. When ctx is done, the pool ends as if it were closed, with the cause of ctx.
// The caller must close the pool. It returns an error if an option is negative or the argument
// of the initializer cannot be encoded. The error wraps shoal.ErrNoMain if the program has not
// called shoal.Main.
func New(ctx context.Context, opts Options) (*Pool, error) {
	if !registry.Sealed() {
		return nil, fmt.Errorf("pool: %w", shoal.ErrNoMain)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Process.Files, err = duplicateFiles(opts.Process.Files); err != nil {
		return nil, fmt.Errorf("pool: Process.Files: %w", err)
	}
	p := &Pool{opts: opts, ready: make(chan struct{}), gone: make(chan struct{}), newborn: opts.Workers,
		rested: make(chan struct{}), seed: seed.From(ctx).Next(), deadline: sys.DeadlineOf(ctx),
		local: opts.Process.Start == shoal.GoroutineStart}
	if capture := opts.Initializer.capture; capture != nil {
		if p.init, err = capture(); err != nil {
			return nil, errors.Join(fmt.Errorf("pool: encode argument of the initializer: %w", err),
				closeFiles(opts.Process.Files))
		}
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	p.members, p.ranks = make([]*member, opts.Workers), make([]rank, opts.Workers)
	p.lives = opts.Workers
	for rank := range opts.Workers {
		p.startWorker(rank)
	}
	p.detach = context.AfterFunc(ctx, func() { p.endPool(context.Cause(ctx)) })
	return p, nil
}

// Ready blocks until every worker has run its initializer, and then returns nil. It returns
// [ErrBroken] with the reason, [ErrClosed], or the cause of ctx.
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

// Finish declares that no more tasks will be submitted, like Python's Pool.close. Workers exit
// after the last task; further calls return [ErrClosed].
func (p *Pool) Finish() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
	p.releaseIdle()
	p.feedWorkers()
}

// CancelPending fails the tasks that no worker has started with [ErrCanceled], and returns their
// number. A task is one value, or one chunk of a call with several values; the call fails with its
// first failed task. Running tasks continue, and new ones are accepted. CancelPending before
// [Pool.Finish] and [Pool.Join] corresponds to shutdown(cancel_futures=True) of Python's
// concurrent.futures.
func (p *Pool) CancelPending() int {
	p.mu.Lock()
	tasks := p.pending.popAll()
	members := slices.Clone(p.members)
	p.mu.Unlock()
	for _, m := range members {
		if m != nil {
			tasks = append(tasks, m.takeBackAll()...)
		}
	}
	for _, t := range tasks {
		t.failTask(ErrCanceled)
	}
	p.releaseIdle()
	p.feedWorkers()
	return len(tasks)
}

// Join blocks until all workers have exited after Finish or Close, and then returns nil. It
// returns [ErrRunning] if neither was called, the cause of ctx, or the reason if the pool ended
// for another one.
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

// Close ends the pool immediately and waits for its workers, like Python's Pool.terminate and
// join. Unfinished tasks fail with [ErrClosed]. To complete all tasks, the caller must call
// [Pool.Finish] and [Pool.Join] before Close. Close is idempotent and returns nil.
func (p *Pool) Close() error {
	p.endPool(ErrClosed)
	<-p.gone
	if p.detach != nil {
		p.detach()
	}
	return nil
}

// endPool ends the pool for the given cause, unless it has ended: it fails the pending tasks
// with cause and cancels the workers. It does not wait for them. p.mu must not be held. The
// workers' tasks fail when the workers have exited.
func (p *Pool) endPool(cause error) {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
		p.cancel(cause)
	}
	waiting := p.pending.popAll()
	if p.spread != nil {
		p.spread.Stop()
	}
	if p.newborn > 0 {
		p.newborn = 0
		close(p.ready)
	}
	p.mu.Unlock()
	for _, t := range waiting {
		t.failTask(cause)
	}
}

// endRank records that one rank has no worker and gets no more. It must be called once per rank.
// The last call releases the pool's resources and closes p.gone.
func (p *Pool) endRank() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives--; p.lives > 0 {
		return
	}
	p.cancel(p.cause)
	p.init.args.releaseBlocks()
	closeFiles(p.opts.Process.Files)
	close(p.gone)
}

// submitTasks gives the tasks their ids, adds them to the pending queue and assigns them to
// workers. If the pool has ended or is finished, they fail with the pool's cause or [ErrClosed].
// No lock may be held.
func (p *Pool) submitTasks(tasks []*task) {
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
			t.failTask(err)
		}
		return
	}
	p.feedWorkers()
}

// feedWorkers assigns tasks to each worker that may have more. No lock may be held.
func (p *Pool) feedWorkers() {
	p.mu.Lock()
	members := slices.Clone(p.members)
	p.mu.Unlock()
	for _, m := range members {
		if m != nil {
			m.feedWorker()
		}
	}
}

// startWorker starts a worker of the rank. If that fails, it records the failure and replaces
// the worker. p.mu must not be held.
func (p *Pool) startWorker(rank int) {
	m, err := newMember(p, rank, p.seedOf(rank))
	if err != nil {
		p.mu.Lock()
		broken := p.recordBarren(rank, err)
		p.mu.Unlock()
		p.reportBarren(rank, err)
		if broken != nil {
			p.endPool(broken)
		}
		p.replaceWorker(rank)
		return
	}
	p.mu.Lock()
	p.members[rank] = m
	p.mu.Unlock()
	m.feedWorker() // the worker may have been ready before it was in p.members
}

// replaceWorker starts the next worker of the rank, after a pause if the previous ones failed to
// start. If the pool has ended or no task is left and none can follow, it ends the rank. It must
// be called once after the end of each worker, with p.mu not held.
func (p *Pool) replaceWorker(rank int) {
	p.mu.Lock()
	over := p.cause != nil || p.isExhausted()
	pause := startPause(p.ranks[rank].barren)
	p.mu.Unlock()
	switch {
	case over:
		p.endRank()
	case pause == 0:
		p.startWorker(rank)
	default:
		go func() {
			select {
			case <-time.After(pause):
				p.mu.Lock()
				over := p.cause != nil || p.isExhausted()
				p.mu.Unlock()
				if !over {
					p.startWorker(rank)
					return
				}
			case <-p.ctx.Done():
			case <-p.rested:
			}
			p.endRank()
		}()
	}
}

// seedOf returns the random seed of the next worker of the rank. It counts that worker, so it
// must be called once for each. The seed depends on the rank and the number of its workers only,
// so that it is reproducible.
func (p *Pool) seedOf(rank int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ranks[rank].hired++
	return seed.Of(p.seed, "", rank, p.ranks[rank].hired-1)
}

// isExhausted reports whether [Pool.Finish] was called and no task is pending or assigned to a
// worker. p.mu must be held.
func (p *Pool) isExhausted() bool { return p.finished && p.pending.len() == 0 && p.given == 0 }
