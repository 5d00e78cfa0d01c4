package doctor

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// A Domain is a Shoal program that runs, of this user.
type Domain struct {
	Address   string    `json:"address"`
	Error     string    `json:"error,omitempty"` // why it did not answer; then there is nothing else
	Limit     int64     `json:"limit"`           // budget, in bytes
	Committed int64     `json:"committed"`
	Processes []Process `json:"processes"` // the one that has the domain first
}

// A Process is one of a domain's family.
type Process struct {
	PID                  int     `json:"pid"`
	Name                 string  `json:"name"`
	Threads              int     `json:"threads"`    // of the kernel's
	Runnable             int     `json:"runnable"`   // threads that ran or could, on average
	GOMAXPROCS           int     `json:"gomaxprocs"` // that it was started with; 0 if it was not told
	CPUs                 float64 `json:"cpus"`       // processors that it kept busy
	InvoluntaryPerSecond float64 `json:"involuntary_per_second"`
}

// workers returns those that were started with a thread budget, and the sum of it.
func (d Domain) workers() (n, threads int) {
	for _, p := range d.Processes[min(1, len(d.Processes)):] {
		if p.GOMAXPROCS > 0 {
			n++
			threads += p.GOMAXPROCS
		}
	}
	return n, threads
}

func (d Domain) involuntary() (perSecond float64) {
	for _, p := range d.Processes {
		perSecond += p.InvoluntaryPerSecond
	}
	return perSecond
}

// runnable is how many threads wanted a processor.
func (d Domain) runnable() (n int) {
	for _, p := range d.Processes {
		n += p.Runnable
	}
	return n
}

// findDomains asks all domains of this user.
func findDomains(ctx context.Context) ([]Domain, error) {
	addresses, err := shm.Domains()
	if err != nil {
		return nil, err
	}
	all := []Domain{}
	for _, a := range addresses {
		all = append(all, ask(ctx, a))
	}
	return all, nil
}

func ask(ctx context.Context, address string) Domain {
	d := Domain{Address: address}
	r, err := shm.Inspect(ctx, address)
	if err == nil {
		d.Limit, d.Committed = r.Stats.Limit, r.Stats.Committed
		err = d.addFamily(r)
	}
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// addFamily adds the process that answered, its descendants, and strangers who hold memory.
func (d *Domain) addFamily(r shm.Report) error {
	pids, err := sys.Family(r.PID)
	if err != nil {
		return err
	}
	for _, h := range r.Holders {
		if !slices.Contains(pids, h.PID) {
			pids = append(pids, h.PID)
		}
	}
	pids = append([]int{r.PID}, slices.DeleteFunc(pids, func(p int) bool { return p == r.PID })...)
	for _, pid := range pids {
		if name, err := sys.ProcessName(pid); err == nil { // or it has ended meanwhile
			d.Processes = append(d.Processes, Process{PID: pid, Name: name, GOMAXPROCS: startedWith(pid)})
		}
	}
	return nil
}

// startedWith reads the thread budget in the environment of a process.
func startedWith(pid int) int {
	env, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(kv, "GOMAXPROCS="); ok {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// sample looks at the machine and at the domains for as long as span.
func (r *Report) sample(ctx context.Context, span time.Duration) (err error) {
	if r.Domains, err = findDomains(ctx); err != nil {
		return err
	}
	const looks = 5 // at what is runnable
	before, err := look(r.Domains)
	if err != nil {
		return err
	}
	runnable := make(map[int]int)
	for range looks {
		select {
		case <-time.After(span / looks):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for pid, l := range loads(r.Domains) {
			runnable[pid] += l.Runnable
		}
	}
	after, err := look(r.Domains)
	if err != nil {
		return err
	}
	r.compare(before, after)
	for i := range r.Domains {
		for j := range r.Domains[i].Processes {
			p := &r.Domains[i].Processes[j]
			p.Runnable = (runnable[p.PID] + looks/2) / looks
		}
	}
	return nil
}

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

// compare fills in what lies between two glances. A process that was not there both times counts for nothing.
func (r *Report) compare(before, after glance) {
	seconds := after.at.Sub(before.at).Seconds()
	busy, idle := after.machine.Busy-before.machine.Busy, after.machine.Idle-before.machine.Idle
	r.Machine.Seconds = seconds
	if busy+idle > 0 {
		r.Machine.Utilisation = float64(busy) / float64(busy+idle)
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
		r.Machine.InvoluntaryPerSecond += rate(pid)
	}
	for i := range r.Domains {
		for j := range r.Domains[i].Processes {
			p := &r.Domains[i].Processes[j]
			p.Threads = after.loads[p.PID].Threads
			p.CPUs = max(0, (after.loads[p.PID].CPU-before.loads[p.PID].CPU).Seconds()/seconds)
			p.InvoluntaryPerSecond = rate(p.PID)
		}
	}
}
