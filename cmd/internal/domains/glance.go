package domains

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// lookAtThreads looks for as long as span at the threads of the domains' processes, and at how
// often the threads of all processes are sent away.
func (w *Watcher) lookAtThreads(ctx context.Context, span time.Duration) error {
	begin, before := time.Now(), switches(w.before.table)
	const looks = 5 // at what is runnable
	runnable := make(map[int]int)
	for range looks {
		if err := sleep(ctx, span/looks); err != nil {
			return err
		}
		for _, d := range w.before.domains {
			for _, p := range d.Processes {
				if l, err := sys.ProcessLoad(p.PID); err == nil { // or it has ended
					runnable[p.PID] += l.Runnable
				}
			}
		}
	}
	seconds := time.Since(begin).Seconds()
	w.threads, w.machine = make(map[int]thread), 0
	for pid, now := range switches(w.before.table) {
		t := thread{runnable: (runnable[pid] + looks/2) / looks}
		if then, ok := before[pid]; ok {
			t.involuntary = float64(max(0, now-then)) / seconds // a thread that has ended took its count along
		}
		w.threads[pid] = t
		w.machine += t.involuntary
	}
	return nil
}

// switches counts the involuntary ones of each process.
func switches(table map[int]sys.ProcessEntry) map[int]int64 {
	all := make(map[int]int64)
	for pid := range table {
		if s, err := sys.ContextSwitches(pid); err == nil { // or it has ended, or is not ours to look at
			all[pid] = s.Involuntary
		}
	}
	return all
}

func (w *Watcher) addThreads(c *Census) {
	c.Machine.InvoluntaryPerSecond = w.machine
	for i := range c.Domains {
		for j := range c.Domains[i].Processes {
			p := &c.Domains[i].Processes[j]
			t := w.threads[p.PID]
			p.Runnable, p.InvoluntaryPerSecond = t.runnable, t.involuntary
		}
	}
}
