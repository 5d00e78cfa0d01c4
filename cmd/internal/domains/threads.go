package domains

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// threads holds figures that must be read from the /proc files of each thread. Reading all of them
// costs more than the rest of an observation, so only one observation in ten does, and it skips
// processes that have not run since.
type threads struct {
	runnable    map[int]int     // average number of runnable threads by process
	switches    map[int]counted // by process
	involuntary map[int]float64 // switches per second by process
	machine     float64         // sum over all processes
}

// counted is the number of involuntary switches of a process at a time.
type counted struct {
	start       uint64        // identifies the process
	cpu         time.Duration // CPU time at that moment
	at          time.Time
	involuntary int64
}

const thorough = 10

// sampleRunnable samples the number of runnable threads of the domains' processes for the
// duration span and stores the averages. Unless first is set, it skips processes that did not
// use a CPU before and were not runnable either. before must not be nil. It returns an error
// only if ctx is done.
func (t *threads) sampleRunnable(ctx context.Context, before *reading, first bool, span time.Duration) error {
	const looks = 5
	t.runnable = make(map[int]int)
	for range looks {
		if err := sleep(ctx, span/looks); err != nil {
			return err
		}
		for _, d := range before.domains {
			for _, p := range d.Processes {
				if !first && p.CPUs == 0 && before.table[p.PID].State != 'R' {
					continue
				}
				if l, err := sys.ProcessLoad(p.PID); err == nil { // fails if the process has ended
					t.runnable[p.PID] += l.Runnable
				}
			}
		}
	}
	for pid, n := range t.runnable {
		t.runnable[pid] = (n + looks/2) / looks
	}
	return nil
}

// countSwitches reads the involuntary switches of all processes and stores the rates since the
// previous call. There are no rates after the first call.
func (t *threads) countSwitches(table map[int]sys.ProcessEntry) {
	before := t.switches
	t.switches, t.involuntary, t.machine = make(map[int]counted, len(table)), make(map[int]float64), 0
	for pid, e := range table {
		was, known := before[pid]
		known = known && was.start == e.Start
		if known && was.cpu == e.CPU {
			t.switches[pid] = was // the rate is 0
			continue
		}
		s, err := sys.ContextSwitches(pid)
		if err != nil { // it has ended, or belongs to another user
			continue
		}
		now := counted{start: e.Start, cpu: e.CPU, at: time.Now(), involuntary: s.Involuntary}
		t.switches[pid] = now
		if known { // negative if a thread has ended
			perSecond := float64(max(0, now.involuntary-was.involuntary)) / now.at.Sub(was.at).Seconds()
			t.involuntary[pid] = perSecond
			t.machine += perSecond
		}
	}
}

func (t *threads) addTo(c *Census) {
	c.Machine.InvoluntaryPerSecond = t.machine
	for i := range c.Domains {
		for j := range c.Domains[i].Processes {
			p := &c.Domains[i].Processes[j]
			p.Runnable, p.InvoluntaryPerSecond = t.runnable[p.PID], t.involuntary[p.PID]
		}
	}
}
