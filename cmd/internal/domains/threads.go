package domains

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// threads is what only the files of each thread tell. To read them all costs more than the rest. So
// only one look of thorough reads any, and none of a process that has had no processor meanwhile.
type threads struct {
	runnable    map[int]int     // threads of each process that could run, on average
	switches    map[int]counted // of each process
	involuntary map[int]float64 // switches a second of each process, since the last thorough look
	machine     float64         // and of all processes
}

// counted is how often the threads of a process had been sent away.
type counted struct {
	start       uint64        // of the process
	cpu         time.Duration // that it had had by then
	at          time.Time
	involuntary int64
}

const thorough = 10

// watch looks for as long as span at how many threads of the domains' processes are runnable.
func (t *threads) watch(ctx context.Context, before *reading, first bool, span time.Duration) error {
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
				if l, err := sys.ProcessLoad(p.PID); err == nil { // or it has ended
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

// count reads how often the threads of all processes have been sent away, and compares that with
// what it read before.
func (t *threads) count(table map[int]sys.ProcessEntry) {
	before := t.switches
	t.switches, t.involuntary, t.machine = make(map[int]counted, len(table)), make(map[int]float64), 0
	for pid, e := range table {
		was, known := before[pid]
		known = known && was.start == e.Start
		if known && was.cpu == e.CPU {
			t.switches[pid] = was // and a rate of 0
			continue
		}
		s, err := sys.ContextSwitches(pid)
		if err != nil { // it has ended, or is not ours to look at
			continue
		}
		now := counted{start: e.Start, cpu: e.CPU, at: time.Now(), involuntary: s.Involuntary}
		t.switches[pid] = now
		if known { // a thread that has ended took its count along
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
