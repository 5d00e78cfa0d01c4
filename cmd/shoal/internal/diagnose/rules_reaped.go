package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// deadSentinel returns a pipe of a process that has no writer any more, or "". multiprocessing
// opens such a pipe for each worker, and keeps it when it has reaped the worker.
//
// https://github.com/python/cpython/blob/v3.11.7/Lib/multiprocessing/popen_fork.py#L62-L76
func (j *job) deadSentinel(p *procfs.Process) string {
	for _, f := range p.Files {
		name := f.Pipe()
		if name == "" || f.FD < 3 || f.Mode() != procfs.ReadOnly {
			continue
		}
		if !slices.ContainsFunc(j.pipes()[name], func(e pipeEnd) bool { return e.mode != procfs.ReadOnly }) {
			return name
		}
	}
	return ""
}

// waitsForOthers reports whether the main thread of a process waited for another process or thread
// during the whole observation.
func (j *job) waitsForOthers(pid int) bool {
	t, stuck := j.stuckIn(pid)
	switch kindOf(t) {
	case waitRead, waitFutex, waitPoll:
		_, sleeps := j.sleepRest(pid, t)
		return stuck && !sleeps
	}
	return false
}

// findReapedWorkers finds dead workers that were reaped, so that no process is left to show how
// they ended, while a process of an idle job still waits. The kernel's log, the counters of the
// control group and a message of the DataLoader are the only traces.
func findReapedWorkers(j *job) (found []Finding) {
	for _, p := range j.living() {
		if !j.roles[p.PID].works() || !j.waitsForOthers(p.PID) || !j.isIdle() {
			continue
		}
		sentinel := j.deadSentinel(p)
		if kill, ok := j.reapedKill(p, sentinel); ok {
			f := Finding{PID: kill.pid}
			j.setOutOfMemory(&f, kill.pid, kill)
			f.Cause += fmt.Sprintf("; it was reaped, and %s still waits", j.label(p.PID))
			f.Evidence = j.appendReaped(f.Evidence, p, sentinel)
			found = append(found, f)
			continue
		}
		if sentinel == "" {
			continue
		}
		group := j.last.groups[p.PID]
		if pid, how := j.loaderError(p); pid != 0 {
			found = append(found, Finding{Rule: "worker-killed", PID: pid, weight: weightKilled,
				Cause: fmt.Sprintf("DataLoader worker %d was killed by %s; it was reaped, and %s still waits", pid, how,
					j.label(p.PID)),
				Evidence: j.appendReaped(appendGroup([]string{"the error of the DataLoader is in the memory of the " +
					"process"}, group), p, sentinel),
				Cure: "let the error of the DataLoader end the program, or create a new DataLoader after it; if the " +
					"signal is \"Killed\", look at the memory limit"})
			continue
		}
		if group.OOMKills > 0 && strings.Trim(group.Path, "/") != "" && len(j.oomKills()) == 0 && j.inLibrary(p.PID) {
			f := Finding{Rule: "worker-out-of-memory", PID: p.PID, weight: weightOOM,
				Cause: fmt.Sprintf("a worker of %s has ended, probably because control group %s was out of memory",
					j.label(p.PID), group.Path),
				Evidence: j.appendReaped(appendGroup(nil, group), p, sentinel),
				Cure:     "raise the memory limit of the job, or reduce num_workers, prefetch_factor or the batch size"}
			found = append(found, f)
		}
	}
	return found
}

// appendReaped adds the traces of a worker that was reaped to the evidence.
func (j *job) appendReaped(list []string, p *procfs.Process, sentinel string) []string {
	if sentinel != "" {
		list = append(list, evidence("%s waits for the end of a worker through %s, which has no writer any more",
			j.label(p.PID), sentinel))
	}
	if t, ok := j.mainThread(p.PID); ok {
		list = append(list, evidence("%s waits: %s", j.label(p.PID), j.describeWait(p, t)))
	}
	return j.appendPlace(list, p.PID)
}

// isIdle reports whether no process that runs the user's code did anything.
func (j *job) isIdle() bool {
	return !slices.ContainsFunc(j.living(), func(p *procfs.Process) bool {
		return j.roles[p.PID].works() && (!j.isWaiting(p.PID) || j.inDisk(p.PID))
	})
}

// inLibrary reports whether the main thread of a process is in a function of multiprocessing, or
// has no stack that can be read.
func (j *job) inLibrary(pid int) bool {
	s, ok := stackOf(j.last.stacks[pid], pid)
	return !ok || slices.ContainsFunc(s.Frames, func(f pystack.Frame) bool {
		return strings.Contains(f.File, "/multiprocessing/")
	})
}

// reapedKill returns the kernel's message about a process that was a worker of p: it is younger
// than p, has gone, and its number is in the memory of p. If that memory may not be read, p must
// have a sentinel without a writer, and the control groups must be equal. The result is false if
// there is no such message. sentinel is the result of [job.deadSentinel].
func (j *job) reapedKill(p *procfs.Process, sentinel string) (oomKill, bool) {
	group := p.Groups[j.memoryController()]
	for _, k := range slices.Backward(j.oomKills()) {
		if j.exists(k.pid) || k.time < time.Duration(p.Start)*tick || !j.hasName(k.name) {
			continue
		}
		known, err := pystack.HasInt(j.System, p, k.pid, maxErrorSearch)
		if known || err != nil && sentinel != "" && k.group == group {
			return k, true
		}
	}
	return oomKill{}, false
}

// hasName reports whether name is the name of a living process of the job that runs the user's
// code, or a name that DataLoader workers have.
func (j *job) hasName(name string) bool {
	return strings.HasPrefix(name, "pt_data_") || slices.ContainsFunc(j.living(), func(p *procfs.Process) bool {
		return j.roles[p.PID].works() && p.Name == name
	})
}

// loaderMessage is the text of the error that PyTorch raises if it notices a dead worker.
//
// https://github.com/pytorch/pytorch/blob/v2.4.0/torch/csrc/DataLoader.cpp#L113-L146
var loaderMessage = regexp.MustCompile(
	`DataLoader worker \(pid (\d+)\) is killed by signal: (\w+(?: \w+)?)|DataLoader worker \(pid\(s\) (\d+)\) exited`)

// maxErrorSearch limits the memory that is searched for a message.
const maxErrorSearch = 256 << 20

// signalWords maps descriptions of strsignal(3) to signals.
var signalWords = map[string]syscall.Signal{"Killed": syscall.SIGKILL, "Terminated": syscall.SIGTERM,
	"Segmentation fault": syscall.SIGSEGV, "Bus error": syscall.SIGBUS, "Aborted": syscall.SIGABRT}

// loaderError returns the dead worker in an error of the DataLoader that is in the memory of a
// process, and the signal that killed the worker, in words. It returns 0 and "" if there is no
// such error.
func (j *job) loaderError(p *procfs.Process) (pid int, how string) {
	if !p.Maps.Torch {
		return 0, ""
	}
	all, _ := pystack.FindText(j.System, p, loaderMessage, maxErrorSearch) // empty without permission
	for _, m := range all {
		text := m[1] + m[3]
		n, err := strconv.Atoi(text)
		if err != nil || j.exists(n) {
			continue
		}
		if signal, ok := signalWords[m[2]]; ok {
			return n, signalText(int(signal))
		}
		if pid == 0 {
			pid, how = n, "an unknown signal"
		}
	}
	return pid, how
}
