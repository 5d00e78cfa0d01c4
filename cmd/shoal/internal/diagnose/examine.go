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

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/internal/sys"
)

// applyDefaults returns the options with the defaults filled in.
func (o Options) applyDefaults() Options {
	if o.System == (procfs.System{}) {
		o.System = procfs.Machine
	}
	if o.Span <= 0 {
		o.Span = defaultSpan
	}
	if o.CPUs <= 0 {
		o.CPUs = sys.CPUs()
	}
	return o
}

// Examine observes the job of process pid, which may be any process of the job, for o.Span and
// reports its faults. If the process has ended, it reports the orphans and the shared memory
// that it has left. The error wraps [ErrProcess] if there is no such process and no trace of it,
// if it may not be examined, or if its job has no Python program.
func Examine(ctx context.Context, o Options, pid int) (*Report, error) {
	o = o.applyDefaults()
	if pid <= 0 {
		return nil, fmt.Errorf("%w: pid %d: want a positive number", ErrProcess, pid)
	}
	st, err := o.System.ReadStat(pid)
	zombie := err == nil && st.State == 'Z'
	if zombie {
		if r, ok, err := o.examineGroup(ctx, pid); err == nil && ok && hasRule(r, "orphan") {
			return r, nil
		}
	}
	j, err := newJob(o, pid)
	if errors.Is(err, os.ErrProcessDone) || err == nil && zombie && j.root == pid {
		return o.examineEnded(ctx, pid)
	}
	if err != nil {
		return nil, err
	}
	if err := j.observe(ctx); err != nil {
		return nil, err
	}
	if j.last.processes[j.root] == nil {
		return nil, fmt.Errorf("%w: process %d ended during the observation", ErrProcess, j.root)
	}
	j.assignRoles()
	if err := j.checkPython(pid); err != nil {
		return nil, err
	}
	return j.report(), nil
}

func hasRule(r *Report, rule string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == rule })
}

// checkPython returns an error that wraps [ErrProcess] and names process pid if no process of
// the job is a Python program or a torch_shm_manager.
func (j *job) checkPython(pid int) error {
	for _, p := range j.last.processes {
		if len(p.Maps.Python) > 0 || j.roles[p.PID] == roleManager {
			return nil
		}
		if slices.Contains(p.Denied, "maps") {
			return fmt.Errorf("%w: process %d belongs to another user, or may not be read; run shoal as its user "+
				"or as root",
				ErrProcess, p.PID)
		}
	}
	if p := j.last.processes[pid]; p != nil && p.State == 'Z' {
		return fmt.Errorf("%w: process %d has ended and waits for its parent %d to reap it", ErrProcess, pid, p.PPID)
	}
	return fmt.Errorf("%w: process %d is not a Python program; want a process of a PyTorch job", ErrProcess, pid)
}

// report applies the rules and returns the report with the processes, the notes and the verdict.
// The job must have been observed, and its roles assigned.
func (j *job) report() *Report {
	r := &Report{Findings: j.applyRules(), Notes: []string{}, Seconds: j.elapsed.Seconds()}
	r.Stacks = j.describeStacks()
	for _, pid := range j.tree {
		if p := j.last.processes[pid]; p != nil {
			r.Processes = append(r.Processes, j.describe(p))
		}
	}
	j.addNotes(r)
	r.Verdict = fmt.Sprintf("no fault found in %s of job %d", countProcesses(len(r.Processes)), j.root)
	if len(r.Findings) > 0 {
		r.Verdict = r.Findings[0].Cause
	}
	return r
}

func (j *job) describeStacks() string {
	if j.spied {
		return "from py-spy, because they cannot be read from the memory of the interpreters: " + j.stackErr.Error()
	}
	if len(j.last.stacks) > 0 {
		return "read from the memory of the interpreters"
	}
	if j.stackErr != nil {
		text := "not available: " + j.stackErr.Error()
		if j.spyErr != nil {
			text += "; " + j.spyErr.Error()
		}
		return text
	}
	return "not available: no supported interpreter"
}

func (j *job) describe(p *procfs.Process) Process {
	d := Process{PID: p.PID, Parent: p.PPID, Depth: j.depth[p.PID], Role: string(j.roles[p.PID]), Rank: p.Env["RANK"],
		State: stateText(p.State), CPU: j.cpu(p.PID), Threads: len(p.Threads), Memory: p.ResidentPages * pageSize,
		Files: len(p.Files), Stacks: j.last.stacks[p.PID]}
	if t, ok := j.mainThread(p.PID); ok {
		d.Wait = j.describeWait(p, t)
	}
	if old := j.first.processes[p.PID]; old != nil && p.IO.ReadBytes >= old.IO.ReadBytes {
		d.Read = float64(p.IO.ReadBytes-old.IO.ReadBytes) / max(j.elapsed.Seconds(), 1e-3)
		d.Faults = float64(p.MajorFaults-old.MajorFaults) / max(j.elapsed.Seconds(), 1e-3)
	}
	return d
}

func stateText(state byte) string {
	switch state {
	case 'R':
		return "running"
	case 'S', 'I':
		return "sleeping"
	case 'D':
		return "waiting for a device"
	case 'T':
		return "stopped"
	case 't':
		return "traced"
	case 'Z', 'X':
		return "ended"
	}
	return string(state)
}

// addNotes adds observations that are no faults to the notes of r. The findings of r must be
// complete.
func (j *job) addNotes(r *Report) {
	var loaders, idle int
	for _, p := range j.living() {
		if j.roles[p.PID] == roleLoader {
			loaders++
			if j.idle(p.PID) {
				idle++
			}
		}
	}
	switch {
	case loaders == 0 || len(r.Findings) > 0:
	case idle == loaders && !j.idle(j.root):
		r.Notes = append(r.Notes, "all DataLoader workers wait for the main process: loading is faster than training")
	case j.isWaiting(j.root) && idle < loaders:
		r.Notes = append(r.Notes, "the main process waits for its DataLoader workers: loading is slower than training")
	}
	r.Notes = append(append(r.Notes, j.notes...), j.describeSegments()...)
	dir := filepath.Join(j.System.Proc, itoa(j.root), "root/dev/shm")
	if size, free, err := sys.FileSystemUsage(dir); err == nil && size > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("/dev/shm: %s of %s used", words.Bytes(size-free), words.Bytes(size)))
	}
}

// examineEnded reports the traces of a process that has ended: members of its process group, and
// shared memory with its number. The error wraps [ErrProcess] if there are none.
func (o Options) examineEnded(ctx context.Context, pid int) (*Report, error) {
	if r, ok, err := o.examineGroup(ctx, pid); ok || err != nil {
		return r, err
	}
	leaks, err := FindLeaks(o.System, "/dev/shm")
	if err != nil {
		return nil, err
	}
	r := &Report{Findings: []Finding{}, Notes: []string{}, Stacks: "not available: the process has ended"}
	if f, ok := leakFinding(pid, leaks); ok {
		r.Findings, r.Verdict = append(r.Findings, f), f.Cause
		return r, nil
	}
	if f, ok := segmentFinding(pid, leaks); ok {
		r.Findings, r.Verdict = append(r.Findings, f), f.Cause
		return r, nil
	}
	unowned := ""
	if n := countUnowned(leaks); n > 0 {
		unowned = fmt.Sprintf("; %s without a recorded creator in /dev/shm, which no process uses: see "+
			"shoal doctor --clean", words.Count(n, "name"))
	}
	return nil, fmt.Errorf(
		"%w: no process %d is running, and it has left neither workers nor tensors in shared memory%s",
		ErrProcess, pid, unowned)
}

// segmentFinding returns the finding for SharedMemory objects without a living owner, or false
// if leaks has none. Their names do not record the creator, so that it may have been another
// process than pid, the one that was asked for.
func segmentFinding(pid int, leaks []Leak) (Finding, bool) {
	var sum int64
	count, semaphores := 0, 0
	f := Finding{Rule: "leaked-names", PID: pid, weight: weightTracker,
		Evidence: []string{"no process has them mapped or open, and no living resource tracker has registered them"},
		Cure: "remove those that no other program needs; their names do not record a creator, so that shoal doctor " +
			"--clean only lists them. In the program, unlink() each SharedMemory, and do not kill the resource tracker"}
	for _, l := range leaks {
		if l.Creator != 0 || l.Tracker != 0 {
			continue
		}
		if !isSegment(shortName(l.Path)) {
			semaphores++
			continue
		}
		count++
		sum += l.Bytes
		if count < 8 {
			f.Evidence = append(f.Evidence, evidence("%s: %s, %.0f s old", l.Path, words.Bytes(l.Bytes), l.Age))
		}
	}
	if semaphores > 0 {
		f.Evidence = append(f.Evidence, evidence("%s without an owner as well", words.Count(semaphores, "semaphore")))
	}
	f.Cause = fmt.Sprintf("no process %d is running, and %s of SharedMemory with %s in /dev/shm belong to no living "+
		"process", pid, words.Count(count, "name"), words.Bytes(sum))
	return f, count > 0
}

// countUnowned returns the number of leaks with an unknown creator.
func countUnowned(leaks []Leak) (n int) {
	for _, l := range leaks {
		if l.Creator == 0 {
			n++
		}
	}
	return n
}

// examineGroup examines the job of a Python program in the process group or session of process
// pid, which has ended. ok is false if there is no such program; otherwise r and err are the
// results of [Examine].
func (o Options) examineGroup(ctx context.Context, pid int) (r *Report, ok bool, err error) {
	all, err := readStats(o.System)
	if err != nil {
		return nil, false, err
	}
	parents := make(map[int]bool)
	for _, st := range all {
		parents[st.PPID] = true
	}
	for _, st := range sortedStats(all) {
		if st.PGID != pid && st.SID != pid || st.PID == pid || st.State == 'Z' {
			continue
		}
		command := o.commandOf(st.PID)
		served := strings.Contains(command, "multiprocessing.forkserver") // a worker or the server
		if !strings.Contains(command, "python") || isHelper(command) && (!served || parents[st.PID]) {
			continue
		}
		r, err := o.examineOrphan(ctx, pid, st.PID)
		if served && (err != nil || !hasRule(r, "orphan")) {
			continue
		}
		return r, true, err
	}
	return nil, false, nil
}

// examineOrphan examines the job of process orphan. A note in the report says that pid, which
// was asked for, has ended.
func (o Options) examineOrphan(ctx context.Context, pid, orphan int) (*Report, error) {
	r, err := Examine(ctx, o, orphan)
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes,
		fmt.Sprintf("process %d, which was asked for, has ended; process %d is of its process group", pid, orphan))
	return r, nil
}

// leakFinding returns one finding for the leaks with the creator pid, or for all proven leaks if
// pid is 0. The result is false if there are none.
func leakFinding(pid int, leaks []Leak) (Finding, bool) {
	var sum int64
	count := 0
	f := Finding{Rule: "leaked-names", PID: pid, weight: weightTracker,
		Cure: "remove them with shoal doctor --clean --yes"}
	for _, l := range leaks {
		if l.Creator == 0 || pid != 0 && l.Creator != pid || pid == 0 && !l.Proven {
			continue
		}
		count++
		sum += l.Bytes
		if f.PID == 0 {
			f.PID = l.Creator
		}
		if len(f.Evidence) < 8 {
			f.Evidence = append(f.Evidence,
				evidence("%s: %s, %.0f s old; %s", l.Path, words.Bytes(l.Bytes), l.Age, l.Reason))
		}
	}
	f.Cause = fmt.Sprintf("process %d is dead and has left %s with %s in /dev/shm, which no process uses", f.PID,
		words.Count(count, "name"), words.Bytes(sum))
	return f, count > 0
}

// ExamineAll observes all PyTorch jobs that this process may examine, one after another and each
// for at most a second, and then looks for names in shared memory that dead processes have left.
// It returns a report for each job and, if there are such names, one more for them.
func ExamineAll(ctx context.Context, o Options) ([]*Report, error) {
	o = o.applyDefaults()
	all, err := readStats(o.System)
	if err != nil {
		return nil, err
	}
	reports := []*Report{}
	done := make(map[int]bool)
	for _, st := range sortedStats(all) {
		if !o.isTorch(st) {
			continue
		}
		root := o.findRoot(all, st.PID)
		if done[root] {
			continue
		}
		done[root] = true
		one := o
		one.Span = min(o.Span, time.Second)
		r, err := Examine(ctx, one, root)
		if errors.Is(err, ErrProcess) {
			continue
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	leaks, err := FindLeaks(o.System, "/dev/shm")
	if err != nil {
		return nil, err
	}
	if f, ok := leakFinding(0, leaks); ok {
		reports = append(reports, &Report{Verdict: f.Cause, Findings: []Finding{f}, Notes: []string{}})
	}
	return reports, nil
}

// isTorch reports whether a process is a Python program that has loaded PyTorch.
func (o Options) isTorch(st procfs.Stat) bool {
	if st.State == 'Z' {
		return false
	}
	p := &procfs.Process{Stat: st}
	o.System.ReadMaps(p)
	return p.Maps.Torch && len(p.Maps.Python) > 0
}
