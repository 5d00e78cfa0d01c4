package domains

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Census is the machine and the Shoal programs on it, over some time.
type Census struct {
	Machine Machine  `json:"machine"`
	Domains []Domain `json:"domains"`
}

// Machine is what the processors did while we looked.
type Machine struct {
	Seconds              float64 `json:"seconds"`
	Utilisation          float64 `json:"utilisation"` // 0 to 1, of all processors
	InvoluntaryPerSecond float64 `json:"involuntary_per_second"`
}

// Look looks once for as long as span, or until ctx is done. What a domain holds is as it was at
// the end.
func Look(ctx context.Context, span time.Duration) (Census, error) {
	return new(Watcher).Look(ctx, span)
}

// A Watcher looks again and again. It compares with what it saw last, so each look costs one
// reading. The zero Watcher has seen nothing.
type Watcher struct {
	before  *reading
	looks   int
	facts   map[int]facts // of processes
	threads threads       // of the last thorough look
}

// A reading is all that we see at one moment.
type reading struct {
	at      time.Time
	machine sys.CPUTime
	table   map[int]sys.ProcessEntry
	domains []Domain
}

// Look is as the function Look. After the first one, the rates are of the time since the last look,
// and each tenth look renews the number of runnable threads and the rate of involuntary switches,
// which is that of the time since it was renewed last.
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
		w.threads.count(w.before.table)
	}
	var err error
	if all {
		err = w.threads.watch(ctx, w.before, first, span)
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
		w.threads.count(after.table)
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

// read looks at everything but threads.
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

// compare fills in what lies between two readings. A process that was not there both times counts
// for nothing.
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

// compare fills in the rates, and the deadlocks that two looks have seen.
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

// doubtBusy adds that a process of the circle computes: one of its goroutines may let another one
// go on.
func (d *Domain) doubtBusy(c *Deadlock) {
	const busy = 0.05 // of a processor
	for _, w := range c.Waits {
		for _, p := range d.Processes {
			if p.PID == w.PID && p.CPUs > busy && c.Doubt == "" {
				c.Doubt = fmt.Sprintf("process %d computes, and may go on", p.PID)
			}
		}
	}
}
