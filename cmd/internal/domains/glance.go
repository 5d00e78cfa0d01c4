package domains

import (
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A glance is all counters at a moment.
type glance struct {
	at       time.Time
	machine  sys.CPUTime
	loads    map[int]sys.Load // of the processes of the domains
	switches map[int]int64    // involuntary, of all processes
}

func look(domains []Domain) (g glance, err error) {
	g = glance{at: time.Now(), loads: loads(domains), switches: make(map[int]int64)}
	if g.machine, err = sys.MachineTime(); err != nil {
		return g, err
	}
	pids, err := sys.Processes()
	for _, pid := range pids {
		if s, err := sys.ContextSwitches(pid); err == nil { // or it has ended, or is not ours to look at
			g.switches[pid] = s.Involuntary
		}
	}
	return g, err
}

func loads(domains []Domain) map[int]sys.Load {
	all := make(map[int]sys.Load)
	for _, d := range domains {
		for _, p := range d.Processes {
			if l, err := sys.ProcessLoad(p.PID); err == nil {
				all[p.PID] = l
			}
		}
	}
	return all
}
