package shoal

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Too many threads]: more busy threads than processors make every process slower, by far more
// than their number. A thread that loses its processor in the middle of a step lets others wait for
// that step. A group that shares the budget among its workers does not oversubscribe. A group with
// the option Threads, or with more workers than processors, can. But workers that wait, as servers
// do, disturb no process, however many there are. So if there could be too many threads, this
// process now and then counts the threads that run or could run. If they are too many, it says so
// once. It says so once more if it sees that they do harm, which is when the kernel takes
// processors away from the workers all the time.

const (
	// involuntary switches a second for each CPU, of all workers together: more than this means
	// that threads queue for processors
	oversubscribedSwitches = 100
	oversubscriptionLooks  = 5 // in a row: a thread that runs at one moment may wait at the next
)

var oversubscriptionPeriod = 5 * time.Second

// oversubscription watches the workers of this process.
var oversubscription struct {
	mu       sync.Mutex
	off      bool
	warned   bool // it has warned that there are too many
	watching bool
	hurt     bool // it has warned that they do harm
	looks    int  // periods that are over
}

// SetThreadWarning says whether this process warns, by package slog, when its workers keep more
// threads busy than there are CPUs. It warns unless it is told not to.
func SetThreadWarning(on bool) {
	oversubscription.mu.Lock()
	oversubscription.off = !on
	oversubscription.mu.Unlock()
	watchOversubscription()
}

// allowed is how many threads the workers that run may keep busy.
func allowed() (threads int) {
	for _, p := range busyProcesses() {
		threads += p.group.opts.threads()
	}
	return threads
}

// busyProcesses returns the workers that are processes.
func busyProcesses() []*Process {
	return slices.DeleteFunc(ActiveChildren(), func(p *Process) bool { return p.group.opts.Start == GoroutineStart })
}

// busy counts the threads of workers that run or could run, and the workers that have such threads.
// Only threads that are busy in all looks count.
func busy(cpus int) (workers, threads int) {
	for n := range oversubscriptionLooks {
		if n > 0 {
			time.Sleep(oversubscriptionPeriod / 100)
		}
		workers, threads = 0, 0
		for _, p := range busyProcesses() {
			if l, err := sys.ProcessLoad(p.PID()); err == nil && l.Runnable > 0 {
				workers++
				threads += l.Runnable
			}
		}
		if threads <= cpus {
			break
		}
	}
	return workers, threads
}

// watchOversubscription is called when there may be too many threads to be watched.
func watchOversubscription() {
	oversubscription.mu.Lock()
	defer oversubscription.mu.Unlock()
	o := &oversubscription
	if cpus := machineThreads(); !o.off && !o.watching && !o.hurt && allowed() > cpus {
		o.watching = true
		watchBusy(workerSwitches(), cpus)
	}
}

// watchBusy looks now and then, as long as there may be too many threads, and until it has said
// all. No goroutine waits in between.
func watchBusy(before map[int]int64, cpus int) {
	time.AfterFunc(oversubscriptionPeriod, func() {
		workers, threads := busy(cpus)
		now := workerSwitches()
		if !judgeBusy(workers, threads, cpus, switchesPerSecond(before, now, oversubscriptionPeriod)) {
			watchBusy(now, cpus)
		}
	})
}

// judgeBusy reports whether there is nothing left to watch for.
func judgeBusy(workers, threads, cpus int, switches float64) (over bool) {
	oversubscription.mu.Lock()
	defer oversubscription.mu.Unlock()
	oversubscription.looks++
	if threads > cpus && !oversubscription.off {
		sayOversubscription(workers, threads, cpus, switches)
	}
	oversubscription.watching = !oversubscription.off && !oversubscription.hurt && allowed() > cpus
	return !oversubscription.watching
}

// sayOversubscription gives the warnings that were not given yet. mu is held.
func sayOversubscription(workers, threads, cpus int, switches float64) {
	if !oversubscription.warned {
		oversubscription.warned = true
		warnOversubscription(workers, threads, cpus)
	}
	if switches > float64(oversubscribedSwitches*cpus) {
		oversubscription.hurt = true
		slog.Warn("shoal: workers get in each other's way; each should have the share of threads, and shoal doctor shows more",
			"involuntary_switches_per_s", int(switches), "workers", workers, "threads", threads, "cpus", cpus,
			"share", share(cpus, workers))
	}
}

// warnOversubscription says how many workers and threads are busy.
func warnOversubscription(workers, threads, cpus int) {
	if workers > cpus {
		slog.Warn("shoal: more busy workers than CPUs, so they take turns; start at most as many as there are CPUs, or call shoal.SetThreadWarning(false)",
			"workers", workers, "threads", threads, "cpus", cpus)
		return
	}
	slog.Warn("shoal: the workers' busy threads exceed the CPUs; set Options.Threads to the share or leave it 0, or call shoal.SetThreadWarning(false)",
		"workers", workers, "threads", threads, "cpus", cpus, "share", share(cpus, workers))
}

// workerSwitches returns the involuntary switches of each worker so far.
func workerSwitches() map[int]int64 {
	all := make(map[int]int64)
	for _, p := range busyProcesses() {
		if s, err := sys.ContextSwitches(p.PID()); err == nil {
			all[p.PID()] = s.Involuntary
		}
	}
	return all
}

// switchesPerSecond counts the workers that were there before.
func switchesPerSecond(before, now map[int]int64, d time.Duration) float64 {
	var n int64
	for pid, then := range before {
		n += max(0, now[pid]-then)
	}
	return float64(n) / d.Seconds()
}
