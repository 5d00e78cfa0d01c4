package kernel

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Note [Helpers]: a training step runs hundreds of kernels, a few microseconds apart. Starting a
// goroutine for each of them costs as much as a small kernel, because an idle thread must be woken
// by a system call. So a goroutine that has helped with a kernel, a helper, polls for the next one
// for spinTime, and then ends. A process that runs no kernels has no helpers.
//
// Each helper has a place in the table team. A caller hands a task to a helper by storing it in the
// helper's place. It starts a helper only for a place without one. The caller works too, and takes
// back the task from all helpers that have not begun when no parts are left. Therefore it never
// waits for a helper that has not begun, and a nested or concurrent call that finds no idle helper
// runs on its own goroutine.
//
// Each worker of a task begins with parts of its own, one after the other, and then takes those
// that others have left. So a thread works on the same range of memory in each kernel, as long as
// no worker is late, and finds some of it in its caches.
//
// All callers of a process share the first Threads()-1 places, so the helpers of a process cannot
// exceed its thread budget. Helpers must not slow down other processes either: a helper that has
// been preempted while it was polling shares its processor, and then no helper polls for
// quietTime.

const (
	maxHelpers = 127
	spinTime   = 100 * time.Microsecond
	// awaitTime limits the polling of a caller that waits for its helpers.
	awaitTime = 50 * time.Microsecond
	// preemptedTime is the time between two polls that proves a preemption. Linux's time slices are
	// longer, and interrupts are shorter.
	preemptedTime = 500 * time.Microsecond
	quietTime     = 20 * time.Millisecond
	// yieldTime is the interval at which a polling helper lets other goroutines run.
	yieldTime = 20 * time.Microsecond
)

// helper is a place for a helper. Its task is nil without a helper, idle while a helper polls, and
// busy while a helper runs a task. Any other task has been handed over and not yet begun.
type helper struct {
	task atomic.Pointer[task]
	_    [120]byte // helpers poll different cache lines
}

var (
	team       [maxHelpers]helper
	idle, busy = new(task), new(task)
	// quietUntil is the time until which helpers must not poll, in nanoseconds since began.
	quietUntil atomic.Int64
	began      = time.Now()
)

// A task is a call of [runParts].
type task struct {
	do                    func(worker, lo, hi int)
	workers, parts, total int64

	next [maxHelpers + 1]counter // the next part of each worker's own parts
	// running is the number of helpers that have begun and not finished. Helpers that finish early
	// make it negative until the caller adds their number. It includes parked while the caller
	// waits for a value of wake.
	running atomic.Int64
	wake    chan struct{}
	failure atomic.Pointer[failure]
}

// A counter is a number that has a cache line of its own.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// A failure is the panic of a helper.
type failure struct{ value any }

const parked = 1 << 32

var tasks = sync.Pool{New: func() any { return &task{wake: make(chan struct{}, 1)} }}

// recruit hands t to the helpers in the first n places that do not run another task, starting
// those that are missing, and returns the number of helpers that have got it.
func (t *task) recruit(n int) (handed int) {
	for i := range n {
		place := &team[i].task
		switch {
		case place.Load() == idle && place.CompareAndSwap(idle, t):
			handed++
		case place.Load() == nil && place.CompareAndSwap(nil, t):
			handed++
			go help(i)
		}
	}
	return handed
}

// setWork prepares t for n workers, which call do for [0, total) divided into the given number
// of parts.
func (t *task) setWork(n, parts, total int, do func(worker, lo, hi int)) {
	t.do, t.workers, t.parts, t.total = do, int64(n), int64(parts), int64(total)
	for w := range t.workers {
		t.next[w].Store(t.firstPart(w))
	}
}

// firstPart returns the first of a worker's own parts.
func (t *task) firstPart(worker int64) int64 { return worker * t.parts / t.workers }

// run calls t.do for a worker's own parts, and then for those of the others, until none are
// left.
func (t *task) run(worker int) {
	for k := range t.workers {
		w := (int64(worker) + k) % t.workers
		for end := t.firstPart(w + 1); t.next[w].Load() < end; {
			if i := t.next[w].Add(1) - 1; i < end {
				t.do(worker, int(i*t.total/t.parts), int((i+1)*t.total/t.parts))
			}
		}
	}
}

// stop makes the workers leave the parts that have not begun.
func (t *task) stop() {
	for w := range t.workers {
		t.next[w].Store(t.firstPart(w + 1))
	}
}

// finish takes t back from the helpers in the first n places that have not begun, waits for the
// others, and releases t. handed is the number of helpers that recruit returned. finish panics
// if a helper did. The caller must defer it, because helpers use the caller's memory even if
// the caller panics.
func (t *task) finish(n, handed int) {
	t.stop() // after a panic of the caller, parts may be left
	for i := range n {
		if place := &team[i].task; place.Load() == t && place.CompareAndSwap(t, idle) {
			handed--
		}
	}
	t.running.Add(int64(handed))
	t.await()
	failed := t.failure.Load()
	t.reset()
	if failed != nil {
		panic(failed.value)
	}
}

// await waits until no helper runs t. The caller must have added the number of the helpers that
// have begun to t.running.
func (t *task) await() {
	if t.running.Load() == 0 {
		return
	}
	for begin := time.Now(); ; {
		for range pollsPerLook {
			if t.running.Load() == 0 {
				return
			}
		}
		if time.Since(begin) > awaitTime {
			if t.running.Add(parked) != parked {
				<-t.wake
			}
			return
		}
	}
}

// reset returns t to the pool for another call. The caller must not use it afterwards, and no
// helper may have it.
func (t *task) reset() {
	t.do = nil
	t.running.Store(0)
	t.failure.Store(nil)
	tasks.Put(t)
}

// help runs the tasks that are stored in place i of the team, and ends when there have been none
// for a while. A fault in a mapped file that has been truncated must reach the caller as a panic.
func help(i int) {
	debug.SetPanicOnFault(true)
	place := &team[i].task
	polls := i+1 < runtime.GOMAXPROCS(0) // otherwise polling would hold up the callers
	yielded := time.Since(began)
	for {
		if t := place.Load(); t != idle {
			if place.CompareAndSwap(t, busy) {
				t.assist(i)
			}
			continue
		}
		if polls && pollPlace(place, &yielded) {
			continue
		}
		if place.CompareAndSwap(idle, nil) {
			return
		}
	}
}

// pollsPerLook is the number of polls between two looks at the clock, about 50 ns.
const pollsPerLook = 64

// pollPlace polls until place has a task, and returns true. It returns false after spinTime
// without a task, and while helpers must not poll. yielded is the last time when other
// goroutines could run; pollPlace updates it.
func pollPlace(place *atomic.Pointer[task], yielded *time.Duration) bool {
	begin := time.Since(began)
	for last := begin; int64(last) >= quietUntil.Load() && last-begin < spinTime; {
		for range pollsPerLook {
			if place.Load() != idle {
				return true
			}
		}
		if last-*yielded > yieldTime {
			runtime.Gosched()
			*yielded = last
		}
		now := time.Since(began)
		if now-last > preemptedTime {
			quietUntil.Store(int64(now + quietTime))
		}
		last = now
	}
	return false
}

// assist runs parts of t on the helper in place i, which then becomes idle. It records a panic
// in t.failure and stops the other workers.
func (t *task) assist(i int) {
	defer func() {
		if p := recover(); p != nil {
			t.failure.CompareAndSwap(nil, &failure{p})
			t.stop()
		}
		team[i].task.Store(idle)
		if t.running.Add(-1) == parked {
			t.wake <- struct{}{}
		}
	}()
	t.run(i + 1) // worker 0 is the caller
}
