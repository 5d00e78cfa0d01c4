package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// A blockedWriter is a process with a thread that waits for space in a pipe.
type blockedWriter struct {
	pid     int
	thread  int
	fd      int
	pipe    string
	readers []int // other processes with the reading end
}

// blockedWriters returns the processes that were blocked in a write to a pipe in both samples,
// each with one such thread. It leaves out the pipes through which multiprocessing passes arguments
// to a new process: the process reads them once it has imported its modules.
func (j *job) blockedWriters() (all []blockedWriter) {
	for _, p := range j.living() {
		for _, t := range p.Threads {
			old, ok := threadOf(j.first.processes[p.PID], t.PID)
			if !ok || kindOf(t) != waitWrite || kindOf(old) != waitWrite || old.Call.Args[0] != t.Call.Args[0] {
				continue
			}
			f, ok := fileOf(p, t)
			if !ok || f.Pipe() == "" {
				continue
			}
			w := blockedWriter{pid: p.PID, thread: t.PID, fd: f.FD, pipe: f.Pipe()}
			for _, e := range j.pipes()[w.pipe] {
				if e.mode != procfs.WriteOnly && e.pid != p.PID && !slices.Contains(w.readers, e.pid) {
					w.readers = append(w.readers, e.pid)
				}
			}
			if !j.passesArguments(w) {
				all = append(all, w)
			}
			break
		}
	}
	return all
}

// pipeHandle finds the descriptor from which a spawned process reads its arguments, in its command.
var pipeHandle = regexp.MustCompile(`pipe_handle=(\d+)`)

// passesArguments reports whether w starts a process and writes the arguments of its function:
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/popen_spawn_posix.py#L61. The
// writer has such a frame on its stack, or the reader has the pipe under the number that is in its
// command.
func (j *job) passesArguments(w blockedWriter) bool {
	if s, ok := stackOf(j.last.stacks[w.pid], w.thread); ok {
		for _, file := range []string{"multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py"} {
			if indexFunction(s, "_launch", file) >= 0 {
				return true
			}
		}
	}
	for _, e := range j.pipes()[w.pipe] {
		p := j.last.processes[e.pid]
		if p == nil || e.mode == procfs.WriteOnly {
			continue
		}
		m := pipeHandle.FindStringSubmatch(strings.Join(p.Command, " "))
		if m != nil && m[1] == strconv.Itoa(e.fd) {
			return true
		}
	}
	return false
}

// waitsForEnd reports whether a process waits for the end of another one.
func (j *job) waitsForEnd(pid int) bool {
	t, ok := j.mainThread(pid)
	if !ok || !j.isWaiting(pid) {
		return false
	}
	if kindOf(t) == waitChild {
		return true
	}
	s, ok := stackOf(j.last.stacks[pid], pid)
	return ok && (indexFunction(s, "join", "multiprocessing/process.py") >= 0 ||
		indexFunction(s, "join", "torch/multiprocessing/spawn.py") >= 0)
}

// findUndrained finds a parent that joins a child, while the child cannot end before the parent
// reads the rest of a queue.
//
// https://docs.python.org/3/library/multiprocessing.html#joining-processes-that-use-queues
func findUndrained(j *job) (found []Finding) {
	for _, w := range j.blockedWriters() {
		parent := j.creator(w.pid)
		if !j.waitsForEnd(parent) || !j.hasEnd(w.pipe, parent) || !j.isWaiting(w.pid) {
			continue
		}
		f := Finding{Rule: "join-before-drain", PID: parent, weight: weightUndrained,
			Cause: fmt.Sprintf("%s joins %s before it has read the queue that this process fills: each waits for "+
				"the other",
				j.label(parent), j.label(w.pid)),
			Evidence: []string{evidence("a thread of process %d is blocked in a write to the full %s", w.pid, w.pipe),
				evidence("process %d has its reading end, and waits for the end of a child", parent)},
			Cure: "get all results from the queue before join(), or use a manager's queue"}
		if w.fd == 1 || w.fd == 2 {
			f.Cause = fmt.Sprintf("%s waits for the end of process %d and does not read its output: each waits for "+
				"the other", j.label(parent), w.pid)
			f.Cure = "read the output with communicate() of subprocess.Popen before wait(), or redirect it to a file"
		}
		f.Evidence = j.appendPlace(j.appendPlace(f.Evidence, parent), w.pid)
		found = append(found, f)
	}
	return append(found, j.findUndrainedBounded()...)
}

// findUndrainedBounded is like [findUndrained] for children that wait for space in a queue with a
// limit. A queue from which another process has received items may be drained by that one.
func (j *job) findUndrainedBounded() (found []Finding) {
	for _, l := range j.lockWaits() {
		for _, pid := range l.waiters {
			parent := j.creator(pid)
			p := j.last.processes[parent]
			puts := putsIn(j.first.stacks[pid], pid) && putsIn(j.last.stacks[pid], pid)
			if p == nil || !puts || !j.waitsForEnd(parent) {
				continue
			}
			if _, maps := semaphoreMapping(p, l.inode); !maps {
				continue
			}
			if c, _ := j.bounded(l.inode, pid); c != 0 && c != parent {
				continue
			}
			f := Finding{Rule: "join-before-drain", PID: parent, weight: weightUndrained,
				Cause: fmt.Sprintf("%s joins %s before it has read the queue that this process fills: each waits for "+
					"the other", j.label(parent), j.label(pid)),
				Evidence: []string{
					evidence("process %d waits in put for space in a full queue (semaphore %s)", pid, l.name),
					evidence("process %d has the queue, and waits for the end of a child", parent)},
				Cure: "get all results from the queue before join(), or use a queue without a limit and a manager"}
			f.Evidence = j.appendPlace(j.appendPlace(f.Evidence, parent), pid)
			found = append(found, f)
		}
	}
	return found
}

// findSlowConsumers finds producers that wait for a full queue. DataLoader's workers are left out:
// they wait whenever training is slower than loading, which is not a fault. So are threads that
// send tasks to workers of their process, such as the one of a Pool: a backlog of tasks is normal.
func findSlowConsumers(j *job) (found []Finding) {
	producers := make(map[int][]string) // evidence by consumer
	count := make(map[int]int)
	for _, w := range j.blockedWriters() {
		c := j.consumerOf(w.readers)
		backlog := w.thread != w.pid && j.creator(c) == w.pid
		if c != 0 && j.roles[w.pid] != roleLoader && !j.waitsForEnd(c) && !backlog {
			producers[c] = append(producers[c],
				evidence("%s is blocked in a write to the full %s", j.label(w.pid), w.pipe))
			count[c]++
		}
	}
	for _, p := range j.living() {
		t, ok := j.mainThread(p.PID)
		old, ok2 := threadOf(j.first.processes[p.PID], p.PID)
		m, isLock := semaphoreOf(p, t)
		_, wasLock := semaphoreOf(j.first.processes[p.PID], old)
		puts := putsIn(j.last.stacks[p.PID], p.PID) && putsIn(j.first.stacks[p.PID], p.PID)
		if !ok || !ok2 || !isLock || !wasLock || !puts {
			continue
		}
		c, taken := j.bounded(m.Inode, p.PID)
		if c == 0 {
			continue
		}
		producers[c] = append(producers[c],
			evidence("%s waits in put for space in a full queue (semaphore %s; the consumer has received %s)",
				j.label(p.PID), shortName(m.Path), words.Count(taken, "item")))
		count[c]++
	}
	for c, list := range producers {
		t, _ := j.mainThread(c)
		if j.last.processes[c].State == 'T' {
			continue
		}
		f := Finding{Rule: "slow-consumer", PID: c, weight: weightConsumer,
			Cause: fmt.Sprintf("%s consumes more slowly than its producers: %s for a full queue", j.label(c),
				waitText(count[c])),
			Evidence: append(list, evidence("consumer %d uses %.2f CPUs; its main thread: %s", c, j.cpu(c),
				j.describeWait(j.last.processes[c], t))),
			Cure: "speed up the consumer or add consumers; a larger queue only delays the wait"}
		f.Evidence = j.appendPlace(f.Evidence, c)
		found = append(found, f)
	}
	return found
}

func waitText(n int) string {
	if n == 1 {
		return "1 process waits"
	}
	return fmt.Sprintf("%d processes wait", n)
}

// consumerOf selects the consumer among the readers of a pipe, or returns 0 if all of them are
// blocked writers or run no user code. If processes were forked, all of them have both ends, so
// the root is preferred if it is not blocked itself.
func (j *job) consumerOf(readers []int) int {
	blocked := make(map[int]bool)
	for _, w := range j.blockedWriters() {
		blocked[w.pid] = true
	}
	for _, want := range []func(int) bool{
		func(pid int) bool { return pid == j.root },
		func(pid int) bool { return j.roles[pid].works() },
	} {
		for _, pid := range readers {
			if want(pid) && !blocked[pid] {
				return pid
			}
		}
	}
	return 0
}

// putsIn reports whether a thread is in Queue.put of multiprocessing.
func putsIn(stacks []pystack.Stack, tid int) bool {
	s, ok := stackOf(stacks, tid)
	return ok && indexFunction(s, "put", "multiprocessing/queues.py") >= 0
}

// bounded returns the consumer of a queue with a limit, and the number of items that it has
// received, or 0, 0 if there is no such process. The queue's semaphore is released by each get, so
// the count that the consumer stores is negative. bounded does not search other producers.
func (j *job) bounded(inode uint64, producer int) (consumer, received int) {
	for _, p := range j.living() { // the root is the first
		if p.PID == producer || putsIn(j.last.stacks[p.PID], p.PID) {
			continue
		}
		m, ok := semaphoreMapping(p, inode)
		if !ok {
			continue
		}
		if lock, known := j.semLock(p, m.Start); known && lock.Count < 0 {
			return p.PID, -lock.Count
		}
	}
	return 0, 0
}

// findLastWriters finds processes that wait for a queue or a pipe that no other process can write
// to. That happens when the writers are dead and were reaped, for example by a fork server.
func findLastWriters(j *job) (found []Finding) {
	for _, p := range j.living() {
		for _, t := range j.stuckThreads(p.PID) {
			f, ok := fileOf(p, t)
			s, known := stackOf(j.last.stacks[p.PID], t.PID)
			receives := known && indexFunction(s, "_recv", "multiprocessing/connection.py") >= 0
			reads := t.PID == p.PID && kindOf(t) == waitRead && receives
			if !ok || !reads || f.Pipe() == "" || !j.isOnlyWriter(p.PID, f.Pipe()) {
				continue
			}
			cause := fmt.Sprintf("%s waits for data that no living process can send", j.label(p.PID))
			if p.PID == j.root {
				cause += ": its workers have ended"
			}
			found = append(found, Finding{Rule: "waits-for-ended", PID: p.PID, weight: weightKilled, Cause: cause,
				Evidence: j.appendPlace([]string{evidence(
					"it reads %s, and no other process has an end of it to write to", f.Pipe())}, p.PID),
				Cure: "look for the worker's traceback, or for its death in the kernel's log; get with a " +
					"timeout, and check exitcode of the workers"})
		}
	}
	return found
}

// isOnlyWriter reports whether no other process can write to a pipe.
func (j *job) isOnlyWriter(pid int, pipe string) bool {
	return !slices.ContainsFunc(j.pipes()[pipe], func(e pipeEnd) bool {
		return e.mode != procfs.ReadOnly && e.pid != pid
	})
}
