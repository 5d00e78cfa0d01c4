package shoal

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Too many threads]: more busy threads than processors slow down every process, by much more
// than the ratio. For example, a thread that is preempted during a step delays all threads that
// wait for that step. A group that divides the budget among its workers does not oversubscribe. A
// group with the option Threads, or with more workers than processors, may. However, waiting
// workers, such as servers, harm no process, even if there are many. Therefore, if there may be too
// many threads, this process periodically counts the runnable threads. If there are too many, it
// logs one warning. It logs a second one if they do harm, because the kernel preempts the workers
// all the time.

const (
	// involuntary context switches of all workers, per second and CPU; more of them mean that
	// threads queue for processors
	oversubscribedSwitches = 100
	oversubscriptionLooks  = 5 // consecutive samples: a thread may run at one moment only
)

var oversubscriptionPeriod = 5 * time.Second

// oversubscription is the state of the monitor.
var oversubscription struct {
	mu       sync.Mutex
	off      bool
	warned   bool // the first warning has been logged
	watching bool
	hurt     bool // the second warning has been logged
	looks    int  // number of completed periods
}

// SetThreadWarning enables or disables warnings by package slog if this process's workers keep more
// threads busy than there are CPUs. They are enabled by default.
func SetThreadWarning(on bool) {
	oversubscription.mu.Lock()
	oversubscription.off = !on
	oversubscription.mu.Unlock()
	watchOversubscription()
}

// allowedThreads returns the number of threads that the running workers may keep busy together.
func allowedThreads() (threads int) {
	for _, p := range busyProcesses() {
		threads += p.group.opts.workerThreads()
	}
	return threads
}

// busyProcesses returns the running workers that are processes.
func busyProcesses() []*Process {
	return slices.DeleteFunc(ActiveChildren(), func(p *Process) bool { return p.group.opts.Start == GoroutineStart })
}

// countBusy returns the number of workers with runnable threads, and the number of these
// threads. cpus is the number of CPUs. While there are more threads than that, it takes up to
// [oversubscriptionLooks] samples and returns the last one; in between it sleeps.
func countBusy(cpus int) (workers, threads int) {
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

// watchOversubscription starts the monitor if there may be too many threads. It must be called
// after a process has started, and after warnings have been enabled.
func watchOversubscription() {
	oversubscription.mu.Lock()
	defer oversubscription.mu.Unlock()
	o := &oversubscription
	if cpus := machineThreads(); !o.off && !o.watching && !o.hurt && allowedThreads() > cpus {
		o.watching = true
		watchBusy(workerSwitches(), cpus)
	}
}

// watchBusy counts the busy threads after [oversubscriptionPeriod], logs warnings, and starts
// itself again unless the monitor has finished. before is the result of [workerSwitches] now. It
// returns immediately: it uses timers instead of a goroutine.
func watchBusy(before map[int]int64, cpus int) {
	time.AfterFunc(oversubscriptionPeriod, func() {
		workers, threads := countBusy(cpus)
		now := workerSwitches()
		if !reportBusy(workers, threads, cpus, switchesPerSecond(before, now, oversubscriptionPeriod)) {
			watchBusy(now, cpus)
		}
	})
}

// reportBusy logs warnings about one sample: the busy workers, their runnable threads, and the
// involuntary context switches per second. It reports whether the monitor has finished, because
// all warnings are logged or disabled or there cannot be too many threads any more.
func reportBusy(workers, threads, cpus int, switches float64) (over bool) {
	oversubscription.mu.Lock()
	defer oversubscription.mu.Unlock()
	oversubscription.looks++
	if threads > cpus && !oversubscription.off {
		logOversubscription(workers, threads, cpus, switches)
	}
	oversubscription.watching = !oversubscription.off && !oversubscription.hurt && allowedThreads() > cpus
	return !oversubscription.watching
}

// logOversubscription logs the warnings that have not been logged. oversubscription.mu must be
// held.
func logOversubscription(workers, threads, cpus int, switches float64) {
	if !oversubscription.warned {
		oversubscription.warned = true
		warnOversubscription(workers, threads, cpus)
	}
	if switches > float64(oversubscribedSwitches*cpus) {
		oversubscription.hurt = true
		slog.Warn("shoal: workers preempt each other: limit each to the share of threads; see shoal doctor",
			"involuntary_switches_per_s", int(switches), "workers", workers, "threads", threads, "cpus", cpus,
			"share", shareThreads(cpus, workers))
	}
}

// warnOversubscription logs the first warning, with the number of busy workers, their threads,
// and CPUs.
func warnOversubscription(workers, threads, cpus int) {
	if workers > cpus {
		slog.Warn("shoal: more busy workers than CPUs; start at most one per CPU, or call "+
			"shoal.SetThreadWarning(false) to disable this warning",
			"workers", workers, "threads", threads, "cpus", cpus)
		return
	}
	slog.Warn("shoal: the workers' busy threads exceed the CPUs; set Options.Threads to the share or leave it 0, "+
		"or call shoal.SetThreadWarning(false) to disable this warning",
		"workers", workers, "threads", threads, "cpus", cpus, "share", shareThreads(cpus, workers))
}

// workerSwitches returns the number of involuntary context switches of each running worker so
// far, by process id.
func workerSwitches() map[int]int64 {
	all := make(map[int]int64)
	for _, p := range busyProcesses() {
		if s, err := sys.ContextSwitches(p.PID()); err == nil {
			all[p.PID()] = s.Involuntary
		}
	}
	return all
}

// switchesPerSecond returns the involuntary context switches per second between two results of
// [workerSwitches] that are d apart, of all workers in the first one together.
func switchesPerSecond(before, now map[int]int64, d time.Duration) float64 {
	var n int64
	for pid, then := range before {
		n += max(0, now[pid]-then)
	}
	return float64(n) / d.Seconds()
}
