package diagnose

import (
	"fmt"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// awaitsBatch reports whether the main thread of a process waited for DataLoader workers in both
// samples.
func (j *job) awaitsBatch(pid int) bool {
	for _, s := range []*sample{j.first, j.last} {
		if !hasFunction(s.stacks[pid], "_try_get_data", "utils/data/dataloader.py") {
			return false
		}
	}
	return j.isWaiting(pid)
}

// stuckIn returns the main thread if it was in one wait during the whole observation, and false
// otherwise.
func (j *job) stuckIn(pid int) (procfs.Thread, bool) {
	for _, t := range j.stuckThreads(pid) {
		if t.PID == pid {
			return t, true
		}
	}
	return procfs.Thread{}, false
}

// findStuckLoaders finds DataLoader workers that were in one wait during the whole observation,
// outside of the queues of the DataLoader, while their parent waited for a batch. The other workers
// must be idle. If there are no others, a child program or a short sleep may be all of the work, so
// such a wait is only a note.
func findStuckLoaders(j *job) (found []Finding) {
	for _, parent := range j.living() {
		if !j.awaitsBatch(parent.PID) {
			continue
		}
		stuck, idle, active := j.sortLoaders(parent.PID)
		if len(stuck) == 0 || active > 0 {
			continue
		}
		for _, t := range stuck {
			p := j.last.processes[t.PID]
			wait := j.describeWait(p, t)
			rest, sleeps := j.sleepRest(p.PID, t)
			if sleeps {
				wait = j.sleepText(p.PID, t)
			}
			if len(idle) == 0 && (sleeps && rest < longSleep || !sleeps && kindOf(t) == waitSleep ||
				kindOf(t) == waitChild) {
				j.notes = append(j.notes, fmt.Sprintf("%s waits for a DataLoader worker, and %s was in one "+
					"wait during the whole observation: %s, in %s", j.label(parent.PID), j.label(t.PID), wait,
					j.placeOf(t.PID)))
				continue
			}
			f := Finding{Rule: "stuck-worker", PID: t.PID, weight: weightStuck,
				Cause: fmt.Sprintf("%s is stuck in a wait (%s), and %s waits for it", j.label(t.PID), wait,
					j.label(parent.PID)),
				Evidence: []string{evidence("it was in this wait during all of the %.1f s, and did not run",
					j.elapsed.Seconds())},
				Cure: "look at the function below. Give every wait of a data set a timeout: sockets, locks, " +
					"subprocesses. DataLoader(timeout=…) raises an error instead of waiting for ever"}
			if n := len(idle); n > 0 {
				f.Evidence = append(f.Evidence, evidence("%s for new work: %v", words.Count(n, "other worker")+
					map[bool]string{true: " waits", false: " wait"}[n == 1], idle))
			}
			f.Evidence = j.appendPlace(f.Evidence, t.PID)
			found = append(found, f)
		}
	}
	return found
}

// sortLoaders sorts the DataLoader workers of a process: it returns the main threads of those
// that are stuck in a sample, the processes that wait for work, and the number of the others.
func (j *job) sortLoaders(parent int) (stuck []procfs.Thread, idle []int, active int) {
	for _, c := range j.created(parent) {
		p := j.last.processes[c]
		if j.roles[c] != roleLoader || p == nil {
			continue
		}
		t, waits := j.stuckIn(c)
		k := kindOf(t)
		switch {
		case j.getsIn(c, "_worker_loop", "_utils/worker.py"):
			idle = append(idle, c)
		case waits && j.idle(c) && k != waitDisk && k != waitStop && j.entersSample(c):
			stuck = append(stuck, t)
		default:
			active++
		}
	}
	return stuck, idle, active
}

// entersSample reports whether a worker was reading a sample of the data set when its stack was
// last read.
func (j *job) entersSample(pid int) bool {
	s, ok := stackOf(j.last.stacks[pid], pid)
	return ok && indexFunction(s, "fetch", "_utils/fetch.py") >= 0
}
