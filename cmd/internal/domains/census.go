package domains

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
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

// Look looks for as long as span, or until ctx is done. What a domain holds is as it was at the
// end.
func Look(ctx context.Context, span time.Duration) (Census, error) {
	first, then, err := find(ctx)
	if err != nil {
		return Census{}, err
	}
	before, err := look(first)
	if err != nil {
		return Census{}, err
	}
	const looks = 5 // at what is runnable
	runnable := make(map[int]int)
	for range looks {
		select {
		case <-time.After(span / looks):
		case <-ctx.Done():
			return Census{}, context.Cause(ctx)
		}
		for pid, l := range loads(first) {
			runnable[pid] += l.Runnable
		}
	}
	var c Census
	var now []shm.Stats
	if c.Domains, now, err = find(ctx); err != nil {
		return Census{}, err
	}
	after, err := look(c.Domains)
	if err != nil {
		return Census{}, err
	}
	c.compare(before, after)
	counted := make(map[string]shm.Stats)
	for i, d := range first {
		counted[d.Address] = then[i]
	}
	for i := range c.Domains {
		d := &c.Domains[i]
		if s, ok := counted[d.Address]; ok && d.Error == "" {
			d.AllocsPerSecond = float64(max(0, now[i].Allocs-s.Allocs)) / c.Machine.Seconds
			d.CopiedPerSecond = float64(max(0, now[i].Copied-s.Copied)) / c.Machine.Seconds
		}
		for j := range d.Processes {
			p := &d.Processes[j]
			p.Runnable = (runnable[p.PID] + looks/2) / looks
		}
	}
	return c, nil
}

// compare fills in what lies between two glances. A process that was not there both times counts
// for nothing.
func (c *Census) compare(before, after glance) {
	seconds := after.at.Sub(before.at).Seconds()
	busy, idle := after.machine.Busy-before.machine.Busy, after.machine.Idle-before.machine.Idle
	c.Machine.Seconds = seconds
	if busy+idle > 0 {
		c.Machine.Utilisation = float64(busy) / float64(busy+idle)
	}
	rate := func(pid int) float64 {
		then, ok1 := before.switches[pid]
		now, ok2 := after.switches[pid]
		if !ok1 || !ok2 {
			return 0
		}
		return float64(max(0, now-then)) / seconds // a thread that has ended took its count along
	}
	for pid := range after.switches {
		c.Machine.InvoluntaryPerSecond += rate(pid)
	}
	for i := range c.Domains {
		for j := range c.Domains[i].Processes {
			p := &c.Domains[i].Processes[j]
			p.Threads = after.loads[p.PID].Threads
			if then, ok := before.loads[p.PID]; ok {
				p.CPUs = max(0, (after.loads[p.PID].CPU-then.CPU).Seconds()/seconds)
			}
			p.InvoluntaryPerSecond = rate(p.PID)
		}
	}
}
