package domains

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Process is the root process of a domain, one of its descendants, or another participant.
type Process struct {
	PID                  int     `json:"pid"`
	Name                 string  `json:"name"`        // as in ps; the script of a Python process
	Holds                int64   `json:"holds"`       // bytes of its blocks, shared ones included
	HoldsAlone           int64   `json:"holds_alone"` // bytes of the blocks that only it holds
	HoldsBlocks          int     `json:"holds_blocks"`
	Parent               int     `json:"parent"` // 0 if the process is dead
	Role                 string  `json:"role"`   // root, worker, peer, or child (not a participant)
	Function             string  `json:"function,omitempty"`
	Rank                 *int    `json:"rank,omitempty"`
	State                string  `json:"state"`      // running, stopped or dead
	Seat                 int     `json:"seat"`       // index in the domain, or -1
	Threads              int     `json:"threads"`    // kernel threads
	Runnable             int     `json:"runnable"`   // average number of running or ready threads
	GOMAXPROCS           int     `json:"gomaxprocs"` // thread budget from the environment, or 0
	CPUs                 float64 `json:"cpus"`       // average number of CPUs used
	InvoluntaryPerSecond float64 `json:"involuntary_per_second"`
}

// Roles of a process.
const (
	Root   = "root"
	Worker = "worker"
	Peer   = "peer"
	Child  = "child"
)

// States of a process.
const (
	Running = "running"
	Stopped = "stopped"
	Dead    = "dead"
)

// facts are properties of a process that do not change.
type facts struct {
	start      uint64
	gomaxprocs int
	title      string // first word of the command line
	script     string // of a Python process; otherwise empty
}

// participants returns the root process, and then its descendants and the other participants by
// process ID.
func (w *Watcher) participants(o observe.Observation, table map[int]sys.ProcessEntry) []Process {
	seats := make(map[int]observe.Participant)
	for _, s := range o.Participants {
		seats[s.PID] = s
	}
	holds := make(map[int]observe.HolderCount)
	for _, h := range o.Holders { // the only data of an old program
		holds[h.PID] = observe.HolderCount{PID: h.PID, Count: observe.Count{Bytes: h.Bytes}}
	}
	for _, h := range o.Summary.Holders {
		holds[h.PID] = h
	}
	pids := make(map[int]bool)
	for pid := range table {
		if pid != o.PID && isDescendant(table, pid, o.PID) {
			pids[pid] = true
		}
	}
	for pid := range holds {
		pids[pid] = true
	}
	for pid := range seats {
		pids[pid] = true
	}
	delete(pids, o.PID)
	all := []Process{}
	for _, pid := range append([]int{o.PID}, slices.Sorted(maps.Keys(pids))...) {
		p := w.processFacts(pid, table)
		p.Holds, p.HoldsAlone, p.HoldsBlocks = holds[pid].Bytes, holds[pid].Alone.Bytes, holds[pid].Blocks
		p.Seat = -1
		if s, ok := seats[pid]; ok {
			p.Seat = s.Seat
			if s.State == Dead {
				p.State = Dead
			}
		}
		p.Role = processRole(o, pid, p, table)
		all = append(all, p)
	}
	return all
}

func processRole(o observe.Observation, pid int, p Process, table map[int]sys.ProcessEntry) string {
	switch {
	case pid == o.PID:
		return Root
	case p.Function != "":
		return Worker
	case !isDescendant(table, pid, o.PID):
		return Peer
	case p.Seat >= 0:
		return Worker
	}
	return Child
}

func isDescendant(table map[int]sys.ProcessEntry, pid, from int) bool {
	for range len(table) { // limits the loop if the table is inconsistent
		if pid == from {
			return true
		}
		e, ok := table[pid]
		if !ok {
			return false
		}
		pid = e.Parent
	}
	return false
}

// processFacts returns the data that the kernel has on a process. A process that is not in table
// is dead and has only its ID.
func (w *Watcher) processFacts(pid int, table map[int]sys.ProcessEntry) Process {
	e, ok := table[pid]
	p := Process{PID: pid, Parent: e.Parent, Threads: e.Threads, State: Running}
	switch e.State {
	case 'T', 't':
		p.State = Stopped
	case 'Z', 'X', 'x', 0:
		p.State = Dead
	}
	if !ok {
		return p
	}
	f := w.factsOf(pid, e.Start)
	p.GOMAXPROCS = f.gomaxprocs
	p.Name, _ = sys.ProcessName(pid)
	if isPython(p.Name) { // otherwise the process has set its name
		p.Name = cmp.Or(w.scriptOf(pid, table), p.Name)
	}
	p.Function, p.Rank = workerJob(f.title, p.Name)
	return p
}

// workerJob returns the function and the rank of a worker from its title and its name in ps. It
// returns "" for other processes, and nil for a worker without a rank. For a worker that was
// started warm, the title says nothing, and the name is used, which the kernel truncates to 15
// bytes.
func workerJob(title, name string) (function string, rank *int) {
	text, isWorker := strings.CutPrefix(title, "shoal: ")
	if !isWorker {
		return "", nil
	}
	if text == "warm" {
		text = name
	}
	function, number, ok := cutLast(text, " ")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return strings.TrimSpace(text), nil
	}
	return function, &n
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// factsOf returns the facts of a process. They are read once for each process ID and start time.
func (w *Watcher) factsOf(pid int, start uint64) facts {
	f, ok := w.facts[pid]
	if ok && f.start == start {
		return f
	}
	f = facts{start: start}
	env, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(kv, "GOMAXPROCS="); ok {
			f.gomaxprocs, _ = strconv.Atoi(value)
			break
		}
	}
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	f.title, f.script = words[0], scriptName(words)
	if w.facts == nil {
		w.facts = make(map[int]facts)
	}
	w.facts[pid] = f
	return f
}

// removeEnded removes the facts of processes that have ended.
func (w *Watcher) removeEnded(table map[int]sys.ProcessEntry) {
	maps.DeleteFunc(w.facts, func(pid int, f facts) bool { return table[pid].Start != f.start })
}
