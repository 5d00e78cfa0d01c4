package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// signalNames are the signals that end workers, as kill(1) names them.
var signalNames = map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM",
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS", syscall.SIGABRT: "SIGABRT", syscall.SIGINT: "SIGINT",
	syscall.SIGFPE: "SIGFPE", syscall.SIGILL: "SIGILL", syscall.SIGHUP: "SIGHUP", syscall.SIGPIPE: "SIGPIPE"}

func signalText(number int) string {
	if name := signalNames[syscall.Signal(number)]; name != "" {
		return fmt.Sprintf("signal %d (%s)", number, name)
	}
	return fmt.Sprintf("signal %d", number)
}

// zombies returns the processes of the job that have ended and that were not reaped during the
// observation.
func (j *job) zombies() (all []*procfs.Process) {
	for _, pid := range j.tree {
		if p := j.last.processes[pid]; p != nil && p.State == 'Z' && j.first.processes[pid].State == 'Z' {
			all = append(all, p)
		}
	}
	return all
}

// trackerFD finds the descriptor of the resource tracker's pipe in the command of a spawned
// process.
var trackerFD = regexp.MustCompile(`tracker_fd=(\d+)`)

// deadTracker returns a pipe to a resource tracker that no process reads, and a process that
// writes to it. It returns "" and 0 if the tracker lives or the job has none.
func (j *job) deadTracker() (pipe string, writer int) {
	if slices.ContainsFunc(j.living(), func(p *procfs.Process) bool { return j.roles[p.PID] == roleTracker }) {
		return "", 0
	}
	z := j.trackerZombie()
	forked := z != nil && z.ExitSignal() != 0 && j.isForked()
	for _, p := range j.living() {
		command := strings.Join(p.Command, " ")
		number := -1
		if m := trackerFD.FindStringSubmatch(command); m != nil {
			number, _ = strconv.Atoi(m[1])
		}
		for _, f := range p.Files {
			name := f.Pipe()
			if name == "" || f.Mode() != procfs.WriteOnly || !j.isUnread(name) {
				continue
			}
			if f.FD == number || (j.isServed(p.PID) || forked && number < 0) && j.hasEnd(name, j.root) {
				return name, p.PID
			}
		}
	}
	return "", 0
}

// isForked reports whether the job has workers and the root has forked all of them, so that a
// zombie that has called execve is no worker.
func (j *job) isForked() bool {
	forked := 0
	for _, p := range j.living() {
		if j.roles[p.PID] == roleSpawned || j.isServed(p.PID) {
			return false
		}
		if j.parent[p.PID] == j.root && p.PID != j.root && j.roles[p.PID].works() && !p.Executed() {
			forked++
		}
	}
	return forked > 0
}

// creator returns the parent of a process, or the one that asked a fork server for it.
func (j *job) creator(pid int) int {
	parent := j.parent[pid]
	if j.roles[parent] == roleServer {
		return j.parent[parent]
	}
	return parent
}

// created returns the children of a process, and those that a fork server has started for it.
func (j *job) created(pid int) (all []int) {
	for _, c := range j.tree {
		if c != pid && j.creator(c) == pid {
			all = append(all, c)
		}
	}
	return all
}

// isServed reports whether a process is a fork server or was started by one.
func (j *job) isServed(pid int) bool {
	return j.roles[pid] == roleServer || j.roles[j.parent[pid]] == roleServer
}

func (j *job) isUnread(pipe string) bool {
	return !slices.ContainsFunc(j.pipes()[pipe], func(e pipeEnd) bool { return e.mode != procfs.WriteOnly })
}

func (j *job) hasEnd(pipe string, pid int) bool {
	return slices.ContainsFunc(j.pipes()[pipe], func(e pipeEnd) bool { return e.pid == pid })
}

func findDeadTracker(j *job) []Finding {
	pipe, writer := j.deadTracker()
	if pipe == "" {
		return nil
	}
	pid, how := j.root, "it has ended"
	if z := j.trackerZombie(); z != nil {
		pid, how = z.PID, "it is a zombie that exited with status "+itoa(z.ExitStatus())
		if z.ExitSignal() != 0 {
			how = "it is a zombie that was killed by " + signalText(z.ExitSignal())
		}
	}
	return []Finding{{Rule: "resource-tracker-dead", PID: pid, weight: weightTracker,
		Cause: fmt.Sprintf("the resource tracker (process %d) of job %d is dead: names in shared memory will leak",
			pid, j.root),
		Evidence: []string{evidence("%s writes to the tracker's %s, which no process reads", j.label(writer), pipe),
			how, "no resource tracker is among the processes of the job"},
		Cure: "restart the job; do not kill processes of multiprocessing.resource_tracker. Afterwards, remove " +
			"leaked names with shoal doctor --clean",
	}}
}

// trackerZombie returns the ended child of the root that was probably the tracker, or nil: the
// first one that runs the interpreter as a program of its own, because multiprocessing starts
// the tracker before the workers.
func (j *job) trackerZombie() *procfs.Process {
	var oldest *procfs.Process
	for _, z := range j.zombies() {
		tracker := j.parent[z.PID] == j.root && z.Executed() && strings.HasPrefix(z.Name, "python")
		if tracker && (oldest == nil || z.Start < oldest.Start) {
			oldest = z
		}
	}
	return oldest
}

// isWaiting reports whether a process made no progress during the observation: it was
// [job.idle], and its main thread does not run in the last sample.
func (j *job) isWaiting(pid int) bool {
	t, ok := j.mainThread(pid)
	return ok && j.idle(pid) && t.State != 'R'
}

func findDeadWorkers(j *job) (found []Finding) {
	tracker := 0
	if pipe, _ := j.deadTracker(); pipe != "" {
		if z := j.trackerZombie(); z != nil {
			tracker = z.PID
		}
	}
	for _, z := range j.zombies() {
		if z.ExitCode == 0 || z.PID == tracker {
			continue
		}
		parent := j.parent[z.PID]
		f := Finding{Rule: "worker-killed", PID: z.PID, weight: weightKilled}
		waits := "and its parent " + itoa(parent) + " has not noticed"
		if j.isWaiting(parent) {
			waits = "and its parent " + itoa(parent) + " waits for it"
		}
		if signal := z.ExitSignal(); signal != 0 {
			f.Cause = fmt.Sprintf("worker %d was killed by %s, %s", z.PID, signalText(signal), waits)
			f.Cure = killCure(signal)
			j.explainKill(&f, z)
		} else {
			f.Rule = "worker-failed"
			f.Cause = fmt.Sprintf("worker %d exited with status %d, %s", z.PID, z.ExitStatus(), waits)
			f.Cure = "look for the worker's traceback on standard error; join workers with a check of exitcode, " +
				"or start them with torch.multiprocessing.spawn"
		}
		f.Evidence = append(f.Evidence, evidence("process %d is a zombie, and its exit code is %#x", z.PID, z.ExitCode))
		if t, ok := j.mainThread(parent); ok {
			f.Evidence = append(f.Evidence,
				evidence("%s waits: %s", j.label(parent), j.describeWait(j.last.processes[parent], t)))
		}
		f.Evidence = j.appendPlace(f.Evidence, parent)
		found = append(found, f)
	}
	return found
}

func killCure(signal int) string {
	switch syscall.Signal(signal) {
	case syscall.SIGBUS:
		return "the file system of shared memory was probably full: enlarge /dev/shm (docker run --shm-size=8g), " +
			"or use fewer workers or a smaller prefetch_factor"
	case syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGILL, syscall.SIGFPE:
		return "native code crashed: run the worker with python -X faulthandler, and with num_workers=0 to get " +
			"the traceback"
	}
	return "find the sender of the signal (a scheduler, a container runtime, a user); then restart the job. To " +
		"notice such deaths, wait with a timeout and check is_alive()"
}

// explainKill changes f, the finding about the zombie z, into one about a lack of memory if the
// kernel's log or the counters of the control groups tell that the kernel killed z for that
// reason.
func (j *job) explainKill(f *Finding, z *procfs.Process) {
	if z.ExitSignal() != int(syscall.SIGKILL) {
		return
	}
	group := j.last.groups[z.PID]
	if parent := j.last.groups[j.parent[z.PID]]; group.OOMKills == 0 && group.Path == parent.Path {
		group = parent
	}
	kill, logged := j.killOf(z)
	if !logged && group.OOMKills == 0 {
		return
	}
	if !logged {
		kill.limited = group.Path
	}
	j.setOutOfMemory(f, z.PID, kill)
	f.Cause += fmt.Sprintf(", and its parent is %d", j.parent[z.PID])
}

// setOutOfMemory makes f a finding about the worker pid, which the kernel killed for lack of
// memory. It appends to the evidence of f and does not set its PID.
func (j *job) setOutOfMemory(f *Finding, pid int, kill oomKill) {
	f.Rule, f.weight = "worker-out-of-memory", weightOOM
	where := "the machine"
	var group procfs.Group
	if kill.limited != "" {
		where = "control group " + kill.limited
		group = j.System.ReadGroup(&procfs.Process{Groups: map[string]string{j.memoryController(): kill.limited}})
	}
	f.Cause = fmt.Sprintf("worker %d was killed by the kernel because %s was out of memory", pid, where)
	if kill.line != "" {
		f.Evidence = append(f.Evidence, "the kernel's log: "+kill.line)
	}
	f.Evidence = appendGroup(f.Evidence, group)
	f.Cure = "raise the memory limit of the job, or reduce num_workers, prefetch_factor or the batch size"
}

// appendGroup adds the counters of a control group to the evidence, if processes were killed in it.
func appendGroup(list []string, group procfs.Group) []string {
	if group.OOMKills == 0 {
		return list
	}
	limit := "no limit"
	if group.MemoryLimit > 0 {
		limit = "a limit of " + words.Bytes(int64(group.MemoryLimit))
	}
	return append(list, evidence("control group %s: %d processes killed for memory, %s, peak %s", group.Path,
		group.OOMKills, limit, words.Bytes(int64(group.MemoryPeak))))
}

// An oomKill is the kernel's message about a process that it killed for lack of memory.
type oomKill struct {
	pid     int
	time    time.Duration // since boot
	name    string
	group   string // control group of the process
	limited string // control group that was out of memory; "" if the machine was
	line    string
}

var (
	killedLine = regexp.MustCompile(`Killed process (\d+) \(([^)]*)\)`)
	chosenLine = regexp.MustCompile(`^oom-kill:.*?(?:oom_memcg=([^,]*),)?(?:global_oom,)?` +
		`task_memcg=([^,]*),task=.*,pid=(\d+),`)
)

// killOf returns the latest message about the kill of p, or false if the log has none. An older
// message with its number is about an earlier process. The clock of the log may differ a little
// from the one of start times.
func (j *job) killOf(p *procfs.Process) (oomKill, bool) {
	for _, k := range slices.Backward(j.oomKills()) {
		if k.pid == p.PID && k.time > time.Duration(p.Start)*tick-time.Second {
			return k, true
		}
	}
	return oomKill{}, false
}

// oomKills returns the messages in the kernel's log about processes killed for lack of memory, in
// the order of time. There are none if the log may not be read.
func (j *job) oomKills() []oomKill {
	if !j.logRead {
		j.logRead, j.kills = true, readKills(j.System.Log)
	}
	return j.kills
}

// readKills returns the kills in the kernel's log, the file path, in the order of time. It
// returns nil if the log may not be read, which only privileged users may. Two lines describe
// one kill: the choice of the process, and its end.
//
// https://github.com/torvalds/linux/blob/v6.12/mm/oom_kill.c#L440-L460
// https://github.com/torvalds/linux/blob/v6.12/mm/oom_kill.c#L942-L948
func readKills(path string) (all []oomKill) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	chosen := make(map[int]oomKill)
	buffer := make([]byte, 8192)
	for range maxRecords { // each read returns one record, and EAGAIN at the end of the log
		n, err := syscall.Read(fd, buffer)
		switch {
		case err == syscall.EPIPE || err == syscall.EINTR: // the kernel has overwritten records
		case err != nil || n <= 0:
			return all
		default:
			all = appendKill(all, chosen, string(buffer[:n]))
		}
	}
	return all
}

// maxRecords is the maximum number of records of the kernel's log that are read. The kernel's
// buffer holds fewer, unless it is larger than 16 MiB.
const maxRecords = 1 << 18

// appendKill decodes a record of the kernel's log. It returns all with the kill appended if the
// record is about the end of a process, and stores a record about the choice of a process in
// chosen, by process, until then.
//
// https://github.com/torvalds/linux/blob/v6.12/Documentation/ABI/testing/dev-kmsg
func appendKill(all []oomKill, chosen map[int]oomKill, record string) []oomKill {
	head, text, _ := strings.Cut(record, ";")
	text, _, _ = strings.Cut(text, "\n")
	if !strings.HasPrefix(text, "oom-kill:") && !strings.Contains(text, "Killed process ") {
		return all // without a search, because the log may have many thousands of records
	}
	if m := chosenLine.FindStringSubmatch(text); m != nil {
		pid, _ := strconv.Atoi(m[3])
		chosen[pid] = oomKill{group: m[2], limited: m[1]}
	}
	if m := killedLine.FindStringSubmatch(text); m != nil {
		pid, _ := strconv.Atoi(m[1])
		k := chosen[pid]
		k.pid, k.name, k.line = pid, m[2], text
		if field := strings.Split(head, ","); len(field) > 2 {
			us, _ := strconv.ParseInt(field[2], 10, 64)
			k.time = time.Duration(us) * time.Microsecond
		}
		all = append(all, k)
	}
	return all
}

// memoryController returns the key of the memory control group in [procfs.Process].Groups:
// "memory" for cgroup v1, and "" for v2.
func (j *job) memoryController() string {
	if _, ok := j.last.processes[j.root].Groups["memory"]; ok {
		return "memory"
	}
	return ""
}

func findStopped(j *job) (found []Finding) {
	for _, p := range j.living() {
		old := j.first.processes[p.PID]
		if p.State != 'T' && p.State != 't' || old.State != p.State {
			continue
		}
		f := Finding{Rule: "stopped", PID: p.PID, weight: weightStopped,
			Evidence: []string{evidence("state %c in both samples", p.State)}}
		if p.State == 't' {
			f.Cause = fmt.Sprintf("%s is stopped by a debugger", j.label(p.PID))
			f.Cure = "continue it in the debugger, or detach"
		} else {
			f.Cause = fmt.Sprintf("%s is stopped (SIGSTOP or SIGTSTP)", j.label(p.PID))
			f.Cure = fmt.Sprintf("continue it with kill -CONT %d", p.PID)
		}
		if parent := j.creator(p.PID); j.isWaiting(parent) && j.roles[parent] != "" {
			f.Cause += fmt.Sprintf(", and %s waits", j.label(parent))
			f.Evidence = j.appendPlace(f.Evidence, parent)
		}
		found = append(found, f)
	}
	return found
}

// findZombies finds parents that do not reap children that ended well. A parent that still has
// workers is left alone, because programs commonly join all workers at the end.
func findZombies(j *job) (found []Finding) {
	for _, z := range j.zombies() {
		parent := j.parent[z.PID]
		if z.ExitCode != 0 || j.hasWorkers(parent) || j.last.processes[parent] == nil || j.roles[parent] == roleServer {
			continue
		}
		f := Finding{Rule: "zombie", PID: z.PID, weight: weightZombie,
			Evidence: []string{evidence("process %d is a zombie with exit status 0, in both samples", z.PID)},
			Cure:     "join the process, or call multiprocessing.active_children(), which reaps"}
		f.Cause = fmt.Sprintf("process %d has ended, but its parent %d does not reap it", z.PID, parent)
		t, ok := j.mainThread(parent)
		k := kindOf(t)
		if ok && j.isWaiting(parent) && (k == waitRead || k == waitPoll || k == waitFutex) {
			f.Rule, f.weight = "waits-for-ended", weightKilled
			f.Cause = fmt.Sprintf("process %d has ended with status 0, and its parent %d waits for data that no "+
				"living process will send", z.PID, parent)
			f.Evidence = append(f.Evidence,
				evidence("%s waits: %s", j.label(parent), j.describeWait(j.last.processes[parent], t)))
			f.Cure = "send a value for the end of the data before the worker returns, or get with a timeout and " +
				"check is_alive()"
		}
		f.Evidence = j.appendPlace(f.Evidence, parent)
		found = append(found, f)
	}
	return found
}

// hasWorkers reports whether a process has a living child that runs the user's code.
func (j *job) hasWorkers(pid int) bool {
	for _, c := range j.children(pid) {
		p := j.last.processes[c]
		if p != nil && p.State != 'Z' && (j.roles[c].works() || j.isServed(c) && j.hasWorkers(c)) {
			return true
		}
	}
	return false
}

func findOrphans(j *job) (found []Finding) {
	for _, p := range j.living() {
		spawned := strings.Contains(strings.Join(p.Command, " "), "multiprocessing.spawn")
		started := spawned || hasFunction(j.last.stacks[p.PID], "_bootstrap", "multiprocessing/process.py") &&
			j.isMultiprocessing(p.PID)
		stray := j.orphans[p.PID] && j.roles[p.PID].works()
		// A fork server lives as long as its workers, so it is the root if the main process
		// is dead.
		stray = stray || j.parent[p.PID] == j.root && j.roles[j.root] == roleServer && p.PID != j.root
		if !stray && (p.PID != j.root || !started) {
			continue
		}
		f := Finding{Rule: "orphan", PID: p.PID, weight: weightOrphan,
			Cause: fmt.Sprintf("worker %d is an orphan: the process that started it is dead, and it still runs", p.PID),
			Cure: fmt.Sprintf("end it with kill %d; start workers with daemon=True, and have them exit if "+
				"multiprocessing.parent_process() is not alive", p.PID)}
		f.Evidence = append(f.Evidence, evidence("its parent is now process %d", p.PPID))
		if st, err := j.System.ReadStat(p.PGID); err != nil || st.State == 'Z' {
			f.Evidence = append(f.Evidence, evidence("the leader of its process group, %d, has ended", p.PGID))
		}
		if spawned {
			f.Evidence = append(f.Evidence, "its command is that of a process started by multiprocessing")
		}
		f.Evidence = append(f.Evidence, evidence("it holds %s of memory", words.Bytes(p.ResidentPages*pageSize)))
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// isMultiprocessing reports whether the main thread was started by multiprocessing. threading has a
// function of the same name in another file.
func (j *job) isMultiprocessing(pid int) bool {
	s, ok := stackOf(j.last.stacks[pid], pid)
	return ok && indexFunction(s, "_bootstrap", "multiprocessing/process.py") >= 0
}

// exists reports whether a process exists, as a zombie or alive.
func (o Options) exists(pid int) bool {
	_, err := os.Stat(filepath.Join(o.System.Proc, itoa(pid)))
	return err == nil
}
