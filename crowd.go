package shoal

import (
	"log/slog"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Too many threads]: more busy threads than processors make every process slower, by far more than their number, because whoever is sent away
// in the middle of something lets others wait for it. A group that shares the budget among its workers cannot come to it; one
// that is told Threads, or more workers than there are processors, can. That is said once, when it is so; and once more if it is
// seen to hurt, which is when the kernel takes processors away from the workers all the time.

const crowdSwitches = 100 // involuntary switches a second for each CPU, of all workers together: more than that is a queue

var crowdPeriod = 5 * time.Second

// crowd watches the workers of this process.
var crowd struct {
	mu       sync.Mutex
	warned   bool // that there are too many
	watching bool
	hurt     bool // that it is seen
}

// load is what the workers that run may keep busy.
func load() (workers, threads int) {
	for _, p := range ActiveChildren() {
		if p.group.opts.Start != GoroutineStart {
			workers++
			threads += p.group.opts.threads()
		}
	}
	return workers, threads
}

// watchCrowd is called when a process has been started.
func watchCrowd() {
	crowd.mu.Lock()
	defer crowd.mu.Unlock()
	if crowd.warned && (crowd.watching || crowd.hurt) {
		return
	}
	workers, threads := load()
	cpus := machineThreads()
	if threads <= cpus {
		return
	}
	if !crowd.warned {
		crowd.warned = true
		warnCrowd(workers, threads, cpus)
	}
	if !crowd.watching {
		crowd.watching = true
		watchSwitches(workerSwitches(), cpus)
	}
}

func warnCrowd(workers, threads, cpus int) {
	if workers > cpus {
		slog.Warn("shoal: more workers than CPUs, so they take turns; start at most as many as there are CPUs",
			"workers", workers, "threads", threads, "cpus", cpus)
		return
	}
	slog.Warn("shoal: the workers' threads exceed the CPUs; set Options.Threads to the share or leave it 0",
		"workers", workers, "threads", threads, "cpus", cpus, "share", share(cpus, workers))
}

// watchSwitches looks now and then, as long as there are too many threads, and until it has said so. Nothing waits in between.
func watchSwitches(before map[int]int64, cpus int) {
	time.AfterFunc(crowdPeriod, func() {
		if now := workerSwitches(); !judgeSwitches(before, now, cpus) {
			watchSwitches(now, cpus)
		}
	})
}

// judgeSwitches reports whether there is nothing left to watch for.
func judgeSwitches(before, now map[int]int64, cpus int) (over bool) {
	workers, threads := load()
	perSecond := switchesPerSecond(before, now, crowdPeriod)
	crowd.mu.Lock()
	defer crowd.mu.Unlock()
	crowd.hurt = crowd.hurt || perSecond > float64(crowdSwitches*cpus)
	if crowd.hurt {
		slog.Warn("shoal: workers get in each other's way; each should have the share of threads, and shoal doctor shows more",
			"involuntary_switches_per_s", int(perSecond), "workers", workers, "threads", threads, "cpus", cpus, "share", share(cpus, workers))
	}
	crowd.watching = !crowd.hurt && threads > cpus
	return !crowd.watching
}

// workerSwitches returns the involuntary switches of each worker so far.
func workerSwitches() map[int]int64 {
	all := make(map[int]int64)
	for _, p := range ActiveChildren() {
		if s, err := sys.ContextSwitches(p.PID()); err == nil && p.group.opts.Start != GoroutineStart {
			all[p.PID()] = s.Involuntary
		}
	}
	return all
}

// switchesPerSecond counts those who were there before.
func switchesPerSecond(before, now map[int]int64, d time.Duration) float64 {
	var n int64
	for pid, then := range before {
		n += max(0, now[pid]-then)
	}
	return float64(n) / d.Seconds()
}
