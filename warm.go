package shoal

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/registry"
)

// Warm keeps n started processes of the kind described by opts waiting for jobs of groups with
// WarmStart. It returns when they are ready. A waiting process starts a job as soon as it has read
// it; meanwhile its successor is started. Kinds differ by Executable, Env, WorkDir and OrphanGrace.
// Threads and Workers determine the number of threads of most jobs, as in a group; Workers defaults
// to n. A job with another number of threads starts slightly later. If n is 0, Warm ends the
// waiting processes. They end with this process at the latest. Each uses memory and one of the
// domain's 256 seats.
//
// A group with WarmStart that finds no process of its kind starts one, and from then on keeps one
// waiting.
//
// Warm returns [ErrNoMain] before [Main], an error that wraps [ErrClosed] after [Shutdown], and an
// error that wraps the cause of ctx if ctx is done first.
func Warm(ctx context.Context, n int, opts Options) error {
	switch {
	case n < 0:
		return fmt.Errorf("shoal: Warm: %d processes, want 0 or more", n)
	case !registry.Sealed():
		return ErrNoMain
	case shutdown.Load():
		return errShutdown
	}
	opts.Workers = cmp.Or(opts.Workers, n)
	return reserve.setTarget(ctx, launchOf(opts.withDefaults()), n)
}

// reserve contains the processes that wait for a job.
var reserve = warmPool{kinds: make(map[string]*warmKind)}

// A warmPool contains this process's started processes that wait for a job. Its methods may be
// called concurrently unless they require mu.
type warmPool struct {
	mu     sync.Mutex
	home   arena.Token          // domain of the waiting processes
	kinds  map[string]*warmKind // by domain and kind of launch
	closed bool
}

// A warmKind contains the waiting processes of one kind.
type warmKind struct {
	launch launch
	want   int
	asked  int // number of calls of Warm for this kind
	ready  []*child
	busy   bool // whether a goroutine is starting processes
	err    error
	more   chan struct{} // closed and replaced at each change
}

// kindOf returns the warmKind for a launch in the current domain, and makes it if there is none.
// New processes are started with the requested number of threads, because changing it later
// stops the world. mu must be held.
func (w *warmPool) kindOf(b launch) *warmKind {
	if h := domainToken(); h != w.home { // waiting processes in another domain can get no job
		w.home = h
		for _, r := range w.kinds {
			r.want = 0
			r.trimExcess()
		}
	}
	b.warm, b.title = true, titlePrefix+"warm"
	kind := fmt.Sprintf("%x %s", w.home, b.launchKey())
	r := w.kinds[kind]
	if r == nil {
		r = &warmKind{launch: b, more: make(chan struct{})}
		w.kinds[kind] = r
	}
	r.launch.threads = b.threads
	return r
}

func (r *warmKind) signalChange() {
	close(r.more)
	r.more = make(chan struct{})
}

// setTarget sets the wanted number of waiting processes for launch b to n, and blocks until they
// are ready and no goroutine is starting more. It returns the error of starting one, or an error
// that wraps the cause of ctx if ctx is done first; the target remains set.
func (w *warmPool) setTarget(ctx context.Context, b launch, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.kindOf(b)
	r.want = n
	r.asked++
	r.trimExcess()
	w.startMissing(r)
	for (len(r.ready) < r.want || r.busy) && r.err == nil && !w.closed {
		more := r.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
		}
		w.mu.Lock()
		if ctx.Err() != nil {
			return fmt.Errorf("shoal: Warm: %w", context.Cause(ctx))
		}
	}
	if r.err != nil {
		return fmt.Errorf("shoal: Warm: %w", r.err)
	}
	return nil
}

// refillDelay delays the start of a successor, so that it does not compete for the processor with
// the worker that starts its job.
const refillDelay = time.Millisecond

// takeChild removes and returns a process that waits for a job and was started as b requires, or
// nil if there is none. The caller must call refill after it has sent the job.
func (w *warmPool) takeChild(b launch) *child {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.kindOf(b)
	for len(r.ready) > 0 {
		c := r.ready[0]
		r.ready = r.ready[1:]
		if !c.death.hasEnded() {
			return c
		}
		go c.awaitEnd() // the process died while waiting
	}
	return nil
}

// refill starts a replacement for a process that takeChild has removed, after [refillDelay] and
// in the background, unless [Warm] is called meanwhile.
func (w *warmPool) refill(b launch) {
	w.mu.Lock()
	r := w.kindOf(b)
	asked := r.asked
	w.mu.Unlock()
	time.AfterFunc(refillDelay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed || w.kindOf(b) != r || r.asked != asked {
			return
		}
		r.want = max(r.want, 1)
		w.startMissing(r)
	})
}

// startMissing starts the missing processes of r one after the other in the background, unless a
// goroutine already does. mu must be held.
func (w *warmPool) startMissing(r *warmKind) {
	if r.busy || w.closed || len(r.ready) >= r.want {
		return
	}
	r.busy, r.err = true, nil
	go func() {
		for w.startOne(r) {
		}
	}()
}

// startOne starts one process of r and returns true. It returns false, and clears r.busy, if
// there are enough, if the last start failed, or if the pool is closed. mu must not be held.
func (w *warmPool) startOne(r *warmKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || r.err != nil || len(r.ready) >= r.want {
		r.busy = false
		r.signalChange()
		return false
	}
	b := r.launch
	w.mu.Unlock()
	c, err := startWarm(b)
	w.mu.Lock()
	switch {
	case err != nil:
		r.err = err
	default:
		r.ready = append(r.ready, c)
		r.trimExcess() // the new process may not be needed any more
	}
	r.signalChange()
	return true
}

// startWarm starts a process and returns it when it waits for its job. If the process ends
// before, the error contains the last lines that it has written.
func startWarm(b launch) (*child, error) {
	c, err := startChild(b)
	if err != nil {
		return nil, err
	}
	kind, body, err := readFrame(c.control)
	if err == nil {
		if c.reply.decodeFrame(kind, body); c.reply.member {
			return c, nil
		}
	}
	return nil, c.startupError(cmp.Or(c.reply.err, err))
}

// startupError ends and closes the process of c, which has not become ready for a job, and
// returns the error that says why. err is the error of reading its first frame.
func (c *child) startupError(err error) error {
	c.process.Kill()
	c.death.wait()
	var said strings.Builder
	drain(c.stderr, &said, make([]byte, 4<<10))
	e := c.awaitEnd()
	if e.state != nil {
		err = fmt.Errorf("%w: %v", ErrExited, e.state)
	}
	if why := c.reply.refusalError(); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return fmt.Errorf("process ended before it was ready for a job: %w: %s", err, lastLines([]byte(said.String())))
}

// trimExcess ends the waiting processes in excess of the wanted number. The pool's mu must be
// held.
func (r *warmKind) trimExcess() {
	for len(r.ready) > r.want {
		r.endOne()
	}
}

// endOne kills one waiting process and waits for its end. There must be one. The pool's mu must
// be held.
func (r *warmKind) endOne() {
	c := r.ready[len(r.ready)-1]
	r.ready = r.ready[:len(r.ready)-1]
	c.process.Kill()
	c.awaitEnd()
}

// close ends all waiting processes, including those that are being started, and waits for their
// end. Later calls of takeChild find none.
func (w *warmPool) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, r := range w.kinds {
		for len(r.ready) > 0 || r.busy {
			if len(r.ready) > 0 {
				r.endOne()
				continue
			}
			more := r.more
			w.mu.Unlock()
			<-more
			w.mu.Lock()
		}
	}
}

// endWaiting ends all waiting processes. If forGood is false, later starts may create new ones;
// otherwise no more are created.
func (w *warmPool) endWaiting(forGood bool) {
	w.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = forGood
}
