package domains

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Domain is a Shoal program that runs, of this user. Sizes are in bytes.
type Domain struct {
	Address         string    `json:"address"`
	Error           string    `json:"error,omitempty"` // why it did not answer; then there is nothing else
	Limit           int64     `json:"limit"`           // budget
	Committed       int64     `json:"committed"`       // of blocks in use, and of free ones that are kept warm
	Bytes           int64     `json:"bytes"`           // of blocks in use
	Blocks          int       `json:"blocks"`          // in use
	InTransit       int       `json:"in_transit"`      // references that messages hold
	Reaped          int       `json:"reaped"`          // processes that died and left something
	AllocsPerSecond float64   `json:"allocs_per_second"`
	CopiedPerSecond float64   `json:"copied_per_second"` // bytes
	Names           []string  `json:"names"`             // that are bound
	Processes       []Process `json:"processes"`         // the one that has the domain first
}

// A Process is one of a domain's family.
type Process struct {
	PID                  int     `json:"pid"`
	Name                 string  `json:"name"`
	Holds                int64   `json:"holds"`      // bytes of the blocks that it holds; others may hold them as well
	Threads              int     `json:"threads"`    // of the kernel's
	Runnable             int     `json:"runnable"`   // threads that ran or could, on average
	GOMAXPROCS           int     `json:"gomaxprocs"` // that it was started with; 0 if it was not told
	CPUs                 float64 `json:"cpus"`       // processors that it kept busy
	InvoluntaryPerSecond float64 `json:"involuntary_per_second"`
}

// Workers returns how many were started with a thread budget, and the sum of it.
func (d Domain) Workers() (n, threads int) {
	for _, p := range d.Processes[min(1, len(d.Processes)):] {
		if p.GOMAXPROCS > 0 {
			n++
			threads += p.GOMAXPROCS
		}
	}
	return n, threads
}

// Involuntary is how often its processes were sent away by the kernel, a second.
func (d Domain) Involuntary() (perSecond float64) {
	for _, p := range d.Processes {
		perSecond += p.InvoluntaryPerSecond
	}
	return perSecond
}

// Runnable is how many threads wanted a processor.
func (d Domain) Runnable() (n int) {
	for _, p := range d.Processes {
		n += p.Runnable
	}
	return n
}

// find asks all domains of this user.
func find(ctx context.Context) ([]Domain, []shm.Stats, error) {
	addresses, err := shm.Domains()
	if err != nil {
		return nil, nil, err
	}
	all, stats := []Domain{}, []shm.Stats{}
	for _, a := range addresses {
		d, s := ask(ctx, a)
		all, stats = append(all, d), append(stats, s)
	}
	return all, stats, nil
}

func ask(ctx context.Context, address string) (Domain, shm.Stats) {
	d := Domain{Address: address, Names: []string{}}
	r, err := shm.Inspect(ctx, address)
	if err == nil {
		err = d.addFamily(r)
	}
	if err != nil {
		return Domain{Address: address, Error: err.Error(), Names: []string{}}, shm.Stats{}
	}
	s := r.Stats
	d.Limit, d.Committed, d.Bytes, d.Blocks, d.InTransit, d.Reaped = s.Limit, s.Committed, s.Bytes, s.Blocks,
		s.InTransit, s.Reaped
	d.Names = append(d.Names, r.Names...)
	return d, s
}

// addFamily adds the process that answered, its descendants, and strangers who hold memory.
func (d *Domain) addFamily(r shm.Report) error {
	pids, err := sys.Family(r.PID)
	if err != nil {
		return err
	}
	holds := make(map[int]int64)
	for _, h := range r.Holders {
		holds[h.PID] = h.Bytes
		if !slices.Contains(pids, h.PID) {
			pids = append(pids, h.PID)
		}
	}
	pids = append([]int{r.PID}, slices.DeleteFunc(pids, func(p int) bool { return p == r.PID })...)
	for _, pid := range pids {
		if name, err := sys.ProcessName(pid); err == nil { // or it has ended meanwhile
			d.Processes = append(d.Processes,
				Process{PID: pid, Name: name, Holds: holds[pid], GOMAXPROCS: startedWith(pid)})
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
