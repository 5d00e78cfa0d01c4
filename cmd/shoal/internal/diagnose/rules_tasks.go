package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// getsIn reports whether the main thread of a process waited in get of a multiprocessing queue
// in both samples, called from the function of the file, and did not run in between. file is the
// end of a path; if it is empty, the caller may be any function.
func (j *job) getsIn(pid int, function, file string) bool {
	for _, stacks := range [][]pystack.Stack{j.first.stacks[pid], j.last.stacks[pid]} {
		s, ok := stackOf(stacks, pid)
		if !ok {
			return false
		}
		get, caller := indexFunction(s, "get", "multiprocessing/queues.py"), indexFunction(s, function, file)
		if get < 0 || file != "" && (caller < get || !areLibrary(s.Frames[:caller])) {
			return false
		}
	}
	return j.isWaiting(pid)
}

func areLibrary(frames []pystack.Frame) bool {
	for _, f := range frames {
		if !isLibrary(f.File) {
			return false
		}
	}
	return true
}

// getsResult reports whether the main thread was in a function that waits for a result of a Pool.
func (j *job) getsResult(pid int) bool {
	const file = "multiprocessing/pool.py"
	s, ok := stackOf(j.last.stacks[pid], pid)
	return ok && (indexFunction(s, "get", file) >= 0 || indexFunction(s, "wait", file) >= 0 ||
		indexFunction(s, "next", file) >= 0)
}

// waitsInPool reports whether the main thread waits for a result of a Pool, and the Pool's thread
// that sends tasks waits for new ones.
func (j *job) waitsInPool(pid int) bool {
	const file = "multiprocessing/pool.py"
	if !j.getsResult(pid) || !j.isWaiting(pid) {
		return false
	}
	for _, s := range j.last.stacks[pid] {
		if len(s.Frames) == 0 || s.Frames[0].Function != "_handle_tasks" || !strings.HasSuffix(s.Frames[0].File, file) {
			continue
		}
		t, ok := threadOf(j.last.processes[pid], s.TID)
		return ok && kindOf(t) == waitFutex // an iterator of the user may read a file
	}
	return false
}

// findLostTasks finds programs that wait for a result of a Pool while its workers have nothing to
// do. A Pool replaces a worker that dies, but not the task that the worker had.
//
// https://github.com/python/cpython/issues/66587
func findLostTasks(j *job) (found []Finding) {
	for _, p := range j.living() {
		if !j.waitsInPool(p.PID) {
			continue
		}
		var workers []*procfs.Process
		idle, reads := true, false
		for _, c := range j.created(p.PID) {
			w := j.last.processes[c]
			if w == nil || !hasFunction(j.last.stacks[c], "worker", "multiprocessing/pool.py") {
				continue
			}
			workers = append(workers, w)
			idle = idle && j.getsIn(c, "worker", "multiprocessing/pool.py")
			t, ok := j.mainThread(c)
			reads = reads || ok && kindOf(t) == waitRead
		}
		if len(workers) == 0 || !idle || !reads {
			continue
		}
		f := Finding{Rule: "pool-task-lost", PID: p.PID, weight: weightTasks,
			Cause: fmt.Sprintf("%s waits for a result of its Pool, but %s idle: a worker died with the task",
				j.label(p.PID), areText(len(workers))),
			Evidence: []string{"the Pool's task thread has sent all tasks, and each worker waits for a new one"},
			Cure: "look in the kernel's log for the death (dmesg | grep -i kill). concurrent.futures." +
				"ProcessPoolExecutor raises BrokenProcessPool in such a case; get(timeout) ends the wait"}
		oldest, youngest := workers[0], workers[0]
		for _, w := range workers {
			if w.Start < oldest.Start {
				oldest = w
			}
			if w.Start > youngest.Start {
				youngest = w
			}
		}
		if d := float64(youngest.Start-oldest.Start) * tick.Seconds(); d > 0.3 {
			f.Evidence = append(f.Evidence, evidence(
				"worker %d started %.1f s after worker %d: it replaces one that died", youngest.PID, d, oldest.PID))
		}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// findFailingPools finds programs that wait for a Pool with workers that end before they take a
// task and are replaced again and again. A worker that reaches its maximum of tasks has sent
// results.
func findFailingPools(j *job) (found []Finding) {
	for _, p := range j.living() {
		old := j.first.processes[p.PID]
		_, stuck := j.stuckIn(p.PID)
		if p.ChildFaults == old.ChildFaults || !stuck || !j.getsResult(p.PID) || !j.resultsMissing(p.PID) {
			continue
		}
		lives := slices.ContainsFunc(j.created(p.PID), func(c int) bool {
			w := j.last.processes[c]
			return w != nil && w.State != 'Z' && j.roles[c].works()
		})
		if lives {
			continue
		}
		f := Finding{Rule: "pool-workers-fail", PID: p.PID, weight: weightTasks,
			Cause: fmt.Sprintf("%s waits for its Pool, but the workers end as soon as they are started, and are "+
				"replaced without end", j.label(p.PID)),
			Evidence: []string{"children of the process were reaped during the observation, no worker lived through " +
				"it, and the Pool's result thread received nothing"},
			Cure: "look at the traceback that each worker prints: an exception in the initializer, or in the import " +
				"of the main module. concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool instead"}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// resultsMissing reports whether the thread of a Pool that receives results did not run during the
// observation.
func (j *job) resultsMissing(pid int) bool {
	for _, t := range j.stuckThreads(pid) {
		s, ok := stackOf(j.last.stacks[pid], t.PID)
		if ok && indexFunction(s, "_handle_results", "multiprocessing/pool.py") >= 0 {
			return true
		}
	}
	return false
}

func areText(n int) string {
	if n == 1 {
		return "its only worker is"
	}
	return fmt.Sprintf("all %d workers are", n)
}

// findUnfinishedTasks finds a JoinableQueue.join that waits although all consumers are idle.
func findUnfinishedTasks(j *job) (found []Finding) {
	for _, p := range j.living() {
		s, ok := stackOf(j.last.stacks[p.PID], p.PID)
		if !ok || indexFunction(s, "join", "multiprocessing/queues.py") < 0 || !j.isWaiting(p.PID) {
			continue
		}
		consumers, idle := 0, true
		for _, o := range j.living() {
			if o.PID == p.PID || !j.roles[o.PID].works() {
				continue
			}
			consumers++
			idle = idle && j.getsIn(o.PID, "", "")
		}
		if consumers == 0 || !idle {
			continue
		}
		f := Finding{Rule: "task-done-missing", PID: p.PID, weight: weightTasks,
			Cause: fmt.Sprintf("%s waits in JoinableQueue.join, but its consumers are idle: one did not call "+
				"task_done, or died with an item", j.label(p.PID)),
			Evidence: []string{evidence("%s waited in get during the whole observation",
				words.Count(consumers, "consumer"))},
			Cure: "call task_done() after each get(), also if the item fails: in a finally clause"}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}
