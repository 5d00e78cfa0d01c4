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

// Warm keeps n started processes of the kind that opts describe ready for groups with WarmStart,
// and returns when they are ready. A job begins as soon as one of these processes has read it. A
// successor of this process is started meanwhile. Kinds differ by Executable, Env, WorkDir and
// OrphanGrace. Threads and Workers give the number of threads of most jobs, as in a group. Workers
// is n if it is 0. A job with another number of threads costs a moment. With n = 0 Warm ends the
// processes that wait. They end with this process at the latest. Each costs its memory and a seat
// of the domain's 256.
//
// A group with WarmStart that finds no process of its kind starts one, and from then on one waits.
func Warm(ctx context.Context, n int, opts Options) error {
	switch {
	case n < 0:
		return fmt.Errorf("shoal: Warm: %d processes; at least 0 are needed", n)
	case !registry.Sealed():
		return ErrNoMain
	case shutdown.Load():
		return errShutdown
	}
	opts.Workers = cmp.Or(opts.Workers, n)
	return reserve.keep(ctx, launchOf(opts.withDefaults()), n)
}

// reserve has the processes that wait for a job.
var reserve = warmPool{kinds: make(map[string]*warmKind)}

type warmPool struct {
	mu     sync.Mutex
	home   arena.Token          // the domain of the processes that wait
	kinds  map[string]*warmKind // by domain and kind of launch
	closed bool
}

// A warmKind has the processes of one kind.
type warmKind struct {
	launch launch
	want   int
	asked  int // how often Warm has set how many are wanted
	ready  []*child
	busy   bool // a goroutine is starting more
	err    error
	more   chan struct{} // closed and made anew at each change
}

// kindOf returns the warmKind for a kind of launch. Processes that are started from now on have as
// many threads as are wanted now, because a later change of the number stops the world. mu is held.
func (w *warmPool) kindOf(b launch) *warmKind {
	if h := home(); h != w.home { // the processes that wait are in another domain, where no job comes for them
		w.home = h
		for _, r := range w.kinds {
			r.want = 0
			r.clear()
		}
	}
	b.warm, b.title = true, titlePrefix+"warm"
	kind := fmt.Sprintf("%x %s", w.home, b.kind())
	r := w.kinds[kind]
	if r == nil {
		r = &warmKind{launch: b, more: make(chan struct{})}
		w.kinds[kind] = r
	}
	r.launch.threads = b.threads
	return r
}

func (r *warmKind) changed() {
	close(r.more)
	r.more = make(chan struct{})
}

// keep sets how many processes wait, and returns when so many wait and no goroutine starts another
// one.
func (w *warmPool) keep(ctx context.Context, b launch, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.kindOf(b)
	r.want = n
	r.asked++
	r.clear()
	w.fill(r)
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

// refillDelay is how long the start of a successor is put off, so that it does not take the
// processor from the worker that begins.
const refillDelay = time.Millisecond

// take returns a process that waits, or nil if there is none. Call refill when the process has its
// job.
func (w *warmPool) take(b launch) *child {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.kindOf(b)
	for len(r.ready) > 0 {
		c := r.ready[0]
		r.ready = r.ready[1:]
		if !c.death.over() {
			return c
		}
		go c.await() // the process has died while it waited
	}
	return nil
}

// refill has another process started in the place of one that was taken, unless Warm sets a new
// number meanwhile.
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
		w.fill(r)
	})
}

// fill starts the missing processes, one after the other, unless a goroutine does so already. mu is
// held.
func (w *warmPool) fill(r *warmKind) {
	if r.busy || w.closed || len(r.ready) >= r.want {
		return
	}
	r.busy, r.err = true, nil
	go func() {
		for w.add(r) {
		}
	}()
}

// add starts one process, unless there are enough, and reports whether it did so.
func (w *warmPool) add(r *warmKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || r.err != nil || len(r.ready) >= r.want {
		r.busy = false
		r.changed()
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
		r.clear() // the new process may be of no use any more
	}
	r.changed()
	return true
}

// startWarm starts a process and returns when it waits for its job.
func startWarm(b launch) (*child, error) {
	c, err := startChild(b)
	if err != nil {
		return nil, err
	}
	kind, body, err := readFrame(c.control)
	if err == nil {
		if c.reply.take(kind, body); c.reply.member {
			return c, nil
		}
	}
	return nil, c.stillborn(cmp.Or(c.reply.err, err))
}

// stillborn is the error of a process that ended before it could wait for a job.
func (c *child) stillborn(err error) error {
	c.process.Kill()
	c.death.wait()
	var said strings.Builder
	drain(c.stderr, &said, make([]byte, 4<<10))
	e := c.await()
	if e.state != nil {
		err = fmt.Errorf("%w: %v", ErrExited, e.state)
	}
	if why := c.reply.refusal(); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return fmt.Errorf("a process ended before it could wait for a job: %w: %s", err, lastLines([]byte(said.String())))
}

// clear ends the processes beyond the wanted number. mu is held.
func (r *warmKind) clear() {
	for len(r.ready) > r.want {
		r.dismiss()
	}
}

// dismiss ends one process that waits. mu is held.
func (r *warmKind) dismiss() {
	c := r.ready[len(r.ready)-1]
	r.ready = r.ready[:len(r.ready)-1]
	c.process.Kill()
	c.await()
}

// close ends all processes that wait. Those that are being started follow.
func (w *warmPool) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, r := range w.kinds {
		for len(r.ready) > 0 || r.busy {
			if len(r.ready) > 0 {
				r.dismiss()
				continue
			}
			more := r.more
			w.mu.Unlock()
			<-more
			w.mu.Lock()
		}
	}
}

// rest ends all processes that wait. The next start may make more, unless the end is for good.
func (w *warmPool) rest(forGood bool) {
	w.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = forGood
}
