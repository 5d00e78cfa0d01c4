package diagnose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Options configures an examination. The zero value is valid.
type Options struct {
	System procfs.System // default: the running machine
	Span   time.Duration // duration of the observation; default 1 s
	CPUs   int           // usable CPUs; default: the affinity and quota of this process
}

const (
	defaultSpan = time.Second
	quickEvery  = 100 * time.Millisecond
	maxJob      = 4096 // processes
)

// A job is a process tree, observed for a while. [newJob] finds its processes, and [job.observe]
// fills in the samples, which the rules read. Only one goroutine may use a job.
type job struct {
	Options
	root     int
	tree     []int // parents before children
	parent   map[int]int
	depth    map[int]int
	orphans  map[int]bool // processes of the job that are not below the root
	roles    map[int]role
	first    *sample
	last     *sample
	quick    []quickSample
	elapsed  time.Duration
	stackErr error
	spyErr   error                              // of py-spy; it is not started again after an error
	spied    bool                               // some stacks are of py-spy
	notes    []string                           // of rules
	locks    map[int]map[uint64]pystack.SemLock // by process; read on demand
	searched map[int]uint64                     // semaphore of the last search
	objects  map[uint64]uint64                  // SemLock objects by semaphore, in the last process searched
	held     []heldLock                         // set by findDeadHolders
	outside  map[string][]pipeEnd               // ends of pipes and sockets in all processes; read on demand
	sockets  map[uint32]sys.UnixSocket          // by inode; read on demand
	kills    []oomKill                          // read on demand
	logRead  bool                               // kills has been read
}

// A sample is the state of all processes of a job at about one time.
type sample struct {
	processes map[int]*procfs.Process
	groups    map[int]procfs.Group
	stacks    map[int][]pystack.Stack
}

// A quickSample holds the thread states and stacks between two samples.
type quickSample struct {
	states map[int]map[int]byte // by process and thread
	stacks map[int][]pystack.Stack
}

// readStats reads the stat file of all visible processes and returns the results by process. It
// skips processes that end meanwhile.
func readStats(s procfs.System) (map[int]procfs.Stat, error) {
	pids, err := s.PIDs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make(map[int]procfs.Stat, len(pids))
	for _, pid := range pids {
		if st, err := s.ReadStat(pid); err == nil {
			all[pid] = st
		}
	}
	return all, nil
}

// newJob finds the job of a process: its root, the processes below the root, and orphans in its
// process group. The error wraps [os.ErrProcessDone] if there is no such process.
func newJob(o Options, pid int) (*job, error) {
	all, err := readStats(o.System)
	if err != nil {
		return nil, err
	}
	if _, ok := all[pid]; !ok {
		return nil, fmt.Errorf("%w: %w", os.ErrProcessDone, errNoProcess)
	}
	j := &job{Options: o, parent: make(map[int]int), depth: make(map[int]int), orphans: make(map[int]bool),
		roles: make(map[int]role), locks: make(map[int]map[uint64]pystack.SemLock), searched: make(map[int]uint64),
		objects: make(map[uint64]uint64)}
	j.root = o.findRoot(all, pid)
	children := make(map[int][]int)
	for _, st := range all {
		children[st.PPID] = append(children[st.PPID], st.PID)
	}
	var add func(pid, depth int)
	add = func(pid, depth int) {
		if len(j.tree) >= maxJob || slices.Contains(j.tree, pid) {
			return
		}
		j.tree = append(j.tree, pid)
		j.parent[pid], j.depth[pid] = all[pid].PPID, depth
		below := children[pid]
		slices.Sort(below)
		for _, c := range below {
			if c != pid && c != os.Getpid() {
				add(c, depth+1)
			}
		}
	}
	add(j.root, 0)
	for _, st := range sortedStats(all) {
		if o.isStray(all, st, j.root) && !slices.Contains(j.tree, st.PID) {
			j.orphans[st.PID] = true
			add(st.PID, 1)
		}
	}
	return j, nil
}

var errNoProcess = errors.New("there is no such process")

func sortedStats(all map[int]procfs.Stat) []procfs.Stat {
	list := make([]procfs.Stat, 0, len(all))
	for _, st := range all {
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b procfs.Stat) int { return a.PID - b.PID })
	return list
}

// findRoot climbs from process pid to the process that started the job, and returns its number.
// The result is pid if its parent is not of the job. all holds all processes by number.
func (o Options) findRoot(all map[int]procfs.Stat, pid int) int {
	for range maxJob {
		st := all[pid]
		up, ok := all[st.PPID]
		if !ok || st.PPID <= 1 {
			return pid
		}
		child, parent := o.commandOf(pid), o.commandOf(up.PID)
		if !isChildCommand(child, parent, st) {
			return pid
		}
		pid = up.PID
	}
	return pid
}

// isChildCommand reports whether a process was started by multiprocessing or by torchrun from
// its parent. child and parent are their command lines, and st is the state of the child.
func isChildCommand(child, parent string, st procfs.Stat) bool {
	if !strings.Contains(parent, "python") && !isAgent(parent) {
		return false
	}
	switch {
	case isAgent(parent), isHelper(child), strings.Contains(child, "multiprocessing.spawn"):
		return true
	case strings.Contains(parent, "multiprocessing.forkserver"):
		return true
	}
	zombie := child == "" && st.State == 'Z' && (!st.Executed() || st.PGID != st.PID) // not a program of its own
	return child == parent || zombie || strings.HasPrefix(st.Name, "pt_data_")
}

// isStray reports whether a process without a parent belongs to the job of root: a
// torch_shm_manager or a worker that is a member of its process group.
func (o Options) isStray(all map[int]procfs.Stat, st procfs.Stat, root int) bool {
	if st.PPID != 1 || st.PID == root {
		return false
	}
	if st.PGID != all[root].PGID && st.SID != root {
		return false
	}
	command := o.commandOf(st.PID)
	return strings.Contains(command, "torch_shm_manager") || isHelper(command) ||
		strings.Contains(command, "multiprocessing.spawn") || command == o.commandOf(root)
}

// commandOf returns the command line with spaces between the arguments, or "" if it may not be
// read or the process is a zombie.
func (o Options) commandOf(pid int) string {
	text, _ := os.ReadFile(filepath.Join(o.System.Proc, fmt.Sprint(pid), "cmdline"))
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// readSample reads the full state of all processes of the job that still exist. It copies the
// parts that do not change from previous, which must be nil for the first sample.
func (j *job) readSample(previous *sample) *sample {
	s := &sample{processes: make(map[int]*procfs.Process), groups: make(map[int]procfs.Group),
		stacks: make(map[int][]pystack.Stack)}
	for _, pid := range j.tree {
		st, err := j.System.ReadStat(pid)
		if err != nil {
			continue
		}
		p := &procfs.Process{Stat: st}
		if previous != nil && previous.processes[pid] != nil && previous.processes[pid].Start == st.Start {
			old := previous.processes[pid]
			p.Command, p.Exe, p.Groups, p.Env, p.Limits = old.Command, old.Exe, old.Groups, old.Env, old.Limits
			p.Maps = old.Maps
		} else {
			j.System.ReadIdentity(p)
		}
		if previous == nil || len(p.Maps.Python) == 0 {
			j.System.ReadMaps(p)
		}
		j.System.ReadThreads(p, true)
		j.System.ReadIO(p)
		j.System.ReadFiles(p)
		s.groups[pid] = j.System.ReadGroup(p)
		s.processes[pid] = p
		j.readStacks(s.stacks, p)
		j.spyStacks(s.stacks, p)
	}
	return s
}

// maxSpy limits the time of py-spy for one process.
const maxSpy = time.Second

// spyStacks stores the stacks of a process in into, from py-spy, if [job.readStacks] could not
// read them. After an error it does not start py-spy again.
func (j *job) spyStacks(into map[int][]pystack.Stack, p *procfs.Process) {
	if j.stackErr == nil || j.spyErr != nil || len(into[p.PID]) > 0 || len(p.Maps.Python) == 0 || p.State == 'Z' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxSpy)
	defer cancel()
	stacks, err := pystack.Spy(ctx, p.PID)
	if err != nil {
		j.spyErr = err
		return
	}
	j.spied = true
	into[p.PID] = stacks
}

func (j *job) readStacks(into map[int][]pystack.Stack, p *procfs.Process) {
	if len(p.Maps.Python) == 0 || p.State == 'Z' {
		return
	}
	stacks, err := pystack.Read(j.System, p)
	if len(stacks) > 0 {
		into[p.PID] = stacks
	}
	if err != nil && len(stacks) == 0 && j.stackErr == nil && !errors.Is(err, os.ErrNotExist) {
		j.stackErr = err
	}
}

// observe fills in the first and the last sample, and the states of the threads in between. It
// takes j.Span and returns only errors of ctx.
func (j *job) observe(ctx context.Context) error {
	begin := time.Now()
	j.first = j.readSample(nil)
	measured := time.Now()                                // rates are between the middles of the samples
	for time.Since(begin) < j.Span || len(j.quick) == 0 { // a rate needs an interval
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quickEvery):
		}
		j.quick = append(j.quick, j.readQuick())
	}
	j.elapsed = time.Since(measured)
	j.last = j.readSample(j.first)
	for pid, p := range j.last.processes {
		if j.first.processes[pid] == nil {
			j.first.processes[pid] = p
		}
	}
	return nil
}

func (j *job) readQuick() quickSample {
	q := quickSample{states: make(map[int]map[int]byte), stacks: make(map[int][]pystack.Stack)}
	for _, pid := range j.tree {
		known := j.first.processes[pid]
		if known == nil || known.State == 'Z' {
			continue
		}
		p := *known
		p.Threads = nil
		j.System.ReadThreads(&p, false)
		states := make(map[int]byte)
		for _, t := range p.Threads {
			states[t.PID] = t.State
		}
		q.states[pid] = states
		j.readStacks(q.stacks, &p)
	}
	return q
}

// ran returns the CPU time that a process used between the samples, or 0 if it is not in both.
func (j *job) ran(pid int) time.Duration {
	a, b := j.first.processes[pid], j.last.processes[pid]
	if a == nil || b == nil {
		return 0
	}
	old := make(map[int]uint64)
	for _, t := range a.Threads {
		old[t.PID] = t.RunNS
	}
	var sum uint64
	for _, t := range b.Threads {
		if t.RunNS > old[t.PID] {
			sum += t.RunNS - old[t.PID]
		}
	}
	if sum == 0 { // without schedstat
		sum = (b.Ticks() - a.Ticks()) * uint64(tick)
	}
	return time.Duration(sum)
}

// tick is the unit of the CPU times in /proc.
const tick = 10 * time.Millisecond

// cpu returns the average number of CPUs that a process used between the samples.
func (j *job) cpu(pid int) float64 {
	return float64(j.ran(pid)) / float64(max(j.elapsed, time.Millisecond))
}

// idle reports whether a process used less than 2 % of a CPU between the samples, as one does
// that only checks a timeout now and then.
func (j *job) idle(pid int) bool { return j.ran(pid) < j.elapsed/50 }

// mainThread returns the main thread in the last sample, or false if the sample does not have
// it.
func (j *job) mainThread(pid int) (procfs.Thread, bool) { return threadOf(j.last.processes[pid], pid) }

func threadOf(p *procfs.Process, tid int) (procfs.Thread, bool) {
	if p != nil {
		for _, t := range p.Threads {
			if t.PID == tid {
				return t, true
			}
		}
	}
	return procfs.Thread{}, false
}

// stuckThreads returns the threads of a process, as of the last sample, that were in the same
// known wait in both samples and did not run between them.
func (j *job) stuckThreads(pid int) (stuck []procfs.Thread) {
	a, b := j.first.processes[pid], j.last.processes[pid]
	if a == nil || b == nil {
		return nil
	}
	for _, t := range b.Threads {
		if old, ok := threadOf(a, t.PID); ok && old.Call == t.Call && old.Wait == t.Wait && kindOf(t) != waitNone &&
			t.RunNS == old.RunNS {
			stuck = append(stuck, t)
		}
	}
	return stuck
}

// children returns the processes of the job that a process started.
func (j *job) children(pid int) (all []int) {
	for _, c := range j.tree {
		if j.parent[c] == pid && c != pid {
			all = append(all, c)
		}
	}
	return all
}

// living returns the processes that had not ended in the last sample.
func (j *job) living() (all []*procfs.Process) {
	for _, pid := range j.tree {
		if p := j.last.processes[pid]; p != nil && p.State != 'Z' && p.State != 'X' {
			all = append(all, p)
		}
	}
	return all
}

// A pipeEnd is a descriptor that a process has for an end of a pipe or for a socket. mode is
// [procfs.ReadOnly] or [procfs.WriteOnly] for a pipe; it says nothing about a socket.
type pipeEnd struct {
	pid, fd int
	mode    int
}

// pipes returns the ends of all pipes and sockets in all visible processes. The keys are the
// names that [endName] returns. The processes are read once for a job.
func (j *job) pipes() map[string][]pipeEnd {
	if j.outside != nil {
		return j.outside
	}
	j.outside = make(map[string][]pipeEnd)
	pids, _ := j.System.PIDs()
	for _, pid := range pids {
		p := j.last.processes[pid]
		if p == nil {
			p = &procfs.Process{Stat: procfs.Stat{PID: pid}}
			j.System.ReadFiles(p)
		}
		for _, f := range p.Files {
			if name := endName(f); name != "" {
				j.outside[name] = append(j.outside[name], pipeEnd{pid, f.FD, f.Mode()})
			}
		}
	}
	return j.outside
}
