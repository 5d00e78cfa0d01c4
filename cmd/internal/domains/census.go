package domains

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Census describes the machine and its Shoal programs over an interval.
type Census struct {
	Machine Machine  `json:"machine"`
	Domains []Domain `json:"domains"`
}

// Machine holds the CPU usage of the machine during the interval.
type Machine struct {
	Seconds              float64 `json:"seconds"`
	Utilisation          float64 `json:"utilisation"` // 0 to 1, over all CPUs
	InvoluntaryPerSecond float64 `json:"involuntary_per_second"`
}

// Look observes the machine once, for the duration span. The contents of the domains are as of the
// end of the interval. If ctx is done, it returns an error.
func Look(ctx context.Context, span time.Duration) (Census, error) {
	return new(Watcher).Look(ctx, span)
}

// A Watcher observes repeatedly. Each observation is compared with the previous one, so it costs a
// single reading. The zero Watcher is ready to use. A Watcher must not be used concurrently.
type Watcher struct {
	before  *reading
	looks   int
	facts   map[int]facts // by process ID
	threads threads       // of the last thorough observation
}

// A reading is a snapshot of the machine, the processes and the domains.
type reading struct {
	at      time.Time
	machine sys.CPUTime
	table   map[int]sys.ProcessEntry
	domains []Domain
}

// Look is like the function [Look]. Each call waits for span, but from the second call on, rates
// cover the time since the previous call. Only one call in ten updates the number of runnable
// threads and the rate of involuntary switches, which then covers the time since its previous
// update.
func (w *Watcher) Look(ctx context.Context, span time.Duration) (Census, error) {
	if w.before == nil {
		r, err := w.read(ctx)
		if err != nil {
			return Census{}, err
		}
		w.before = r
	}
	first, all := w.looks == 0, w.looks%thorough == 0
	if first {
		w.threads.countSwitches(w.before.table)
	}
	var err error
	if all {
		err = w.threads.sampleRunnable(ctx, w.before, first, span)
	} else {
		err = sleep(ctx, span)
	}
	if err != nil {
		return Census{}, err
	}
	after, err := w.read(ctx)
	if err != nil {
		return Census{}, err
	}
	if all {
		w.threads.countSwitches(after.table)
	}
	c := Census{Domains: after.domains}
	c.compare(w.before, after)
	w.threads.addTo(&c)
	w.before = after
	w.looks++
	return c, nil
}

func sleep(ctx context.Context, span time.Duration) error {
	select {
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read takes a reading: the CPU time of the machine, the process table and the domains. It does not
// count runnable threads or context switches.
func (w *Watcher) read(ctx context.Context) (r *reading, err error) {
	r = &reading{at: time.Now()}
	if r.machine, err = sys.MachineTime(); err != nil {
		return nil, err
	}
	if r.table, err = sys.ProcessTable(); err != nil {
		return nil, err
	}
	r.domains, err = w.find(ctx, r.table)
	return r, err
}

// compare computes the rates between two readings. A process that is missing in one of them gets no
// CPU usage.
func (c *Census) compare(before, after *reading) {
	seconds := after.at.Sub(before.at).Seconds()
	busy, idle := after.machine.Busy-before.machine.Busy, after.machine.Idle-before.machine.Idle
	c.Machine.Seconds = seconds
	if busy+idle > 0 {
		c.Machine.Utilisation = float64(busy) / float64(busy+idle)
	}
	then := make(map[string]*Domain)
	for i := range before.domains {
		then[before.domains[i].Address] = &before.domains[i]
	}
	for i := range c.Domains {
		d := &c.Domains[i]
		for j := range d.Processes {
			p := &d.Processes[j]
			was, now := before.table[p.PID], after.table[p.PID]
			if was.Start == now.Start && was.Start != 0 {
				p.CPUs = max(0, (now.CPU-was.CPU).Seconds()/seconds)
			}
		}
		if b := then[d.Address]; b != nil && b.Error == "" && d.Error == "" {
			d.compare(b, seconds)
		}
	}
}

// compare computes the rates of a domain and the deadlocks that are present in both readings.
// before must be an earlier state of the same domain.
func (d *Domain) compare(before *Domain, seconds float64) {
	rate := func(now, then uint64) float64 { return float64(max(0, int64(now-then))) / seconds }
	d.AllocsPerSecond = rate(uint64(d.allocs), uint64(before.allocs))
	d.CopiedPerSecond = rate(uint64(d.copied), uint64(before.copied))
	then := make(map[string]*Queue)
	for i := range before.Queues {
		then[before.Queues[i].Block] = &before.Queues[i]
	}
	for i := range d.Queues {
		q := &d.Queues[i]
		if b := then[q.Block]; b != nil {
			q.PutsPerSecond, q.GetsPerSecond = rate(q.Puts, b.Puts), rate(q.Gets, b.Gets)
		}
	}
	d.Deadlocks = Deadlocks(before.Waits, d.Waits)
	for i := range d.Deadlocks {
		d.doubtBusy(&d.Deadlocks[i])
	}
}

// doubtBusy marks a deadlock as doubtful if one of its processes uses the CPU, because another of
// its goroutines may resolve the wait.
func (d *Domain) doubtBusy(c *Deadlock) {
	const busy = 0.05 // CPUs
	for _, w := range c.Waits {
		for _, p := range d.Processes {
			if p.PID == w.PID && p.CPUs > busy && c.Doubt == "" {
				c.Doubt = fmt.Sprintf("process %d is computing and may continue", p.PID)
			}
		}
	}
}
