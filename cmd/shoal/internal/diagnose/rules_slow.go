package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// siblings returns the other living workers of a worker's parent.
func (j *job) siblings(pid int) (all []int) {
	for _, c := range j.children(j.parent[pid]) {
		if p := j.last.processes[c]; c != pid && p != nil && p.State != 'Z' && j.roles[c].works() {
			all = append(all, c)
		}
	}
	return all
}

// demand returns the fraction of the observation, 0 to 1, that the main thread spent running or
// queueing for a CPU. It returns 0 if that is not known.
func (j *job) demand(pid int) float64 {
	t, ok := j.mainThread(pid)
	old, ok2 := threadOf(j.first.processes[pid], pid)
	if !ok || !ok2 || t.RunNS < old.RunNS || t.QueueNS < old.QueueNS {
		return 0
	}
	return float64(t.RunNS-old.RunNS+t.QueueNS-old.QueueNS) / float64(max(j.elapsed, time.Millisecond))
}

// repeats reports whether the innermost function of the user's code on the main thread and its
// callers were the same in all samples. It returns false if a stack is missing.
func (j *job) repeats(pid int) bool {
	want := ""
	for _, s := range j.samplesOf(pid) {
		st, ok := stackOf(s, pid)
		if !ok {
			return false
		}
		chain := chainOf(st)
		if want != "" && chain != want {
			return false
		}
		want = chain
	}
	return want != ""
}

// chainOf returns the functions of a stack from the innermost one of the user's code outward as
// one text, or "" if there is no such function.
func chainOf(s pystack.Stack) string {
	var b strings.Builder
	user := false
	for _, f := range s.Frames {
		user = user || !isLibrary(f.File)
		if user {
			b.WriteString(f.File + ":" + f.Function + "\n")
		}
	}
	return b.String()
}

// findBusyWorker finds a worker that computes without sending or receiving anything, while the
// process that created it waits and all of its siblings are idle.
func findBusyWorker(j *job) (found []Finding) {
	for _, p := range j.living() {
		creator := j.creator(p.PID)
		if r := j.roles[p.PID]; r != roleLoader && r != roleSpawned && r != roleForked || j.demand(p.PID) < 0.7 ||
			!j.isWaiting(creator) || !j.repeats(p.PID) {
			continue
		}
		others := j.siblings(p.PID)
		idle := len(others) > 0
		for _, o := range others {
			_, meets := meetingOf(j.last.stacks[o], o)
			meets = meets || j.inCollective(o)
			idle = idle && j.idle(o) && j.demand(o) < 0.2 && !meets && j.last.processes[o].State != 'T' && !j.inDisk(o)
		}
		old := j.first.processes[p.PID]
		sent := p.IO.WriteCalls - old.IO.WriteCalls
		if !idle || sent > 1 {
			continue
		}
		f := Finding{Rule: "busy-worker", PID: p.PID, weight: weightSlow,
			Cause: fmt.Sprintf("%s computes without end, and %s and %s wait for it", j.label(p.PID), j.label(creator),
				words.Count(len(others), "idle worker")),
			Evidence: []string{evidence("in %.1f s it ran or waited for a CPU for %.0f %% of the time, and wrote "+
				"nothing", j.elapsed.Seconds(),
				100*j.demand(p.PID)),
				evidence("it was in the same function in all %d samples", len(j.samplesOf(p.PID)))},
			Cure: "look at the function below for a loop that does not end; a sample that is merely slow ends " +
				"by itself"}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// diskShare returns the fraction of quick samples, 0 to 1, that found the main thread in an
// uninterruptible wait.
func (j *job) diskShare(pid int) float64 {
	n := 0
	for _, q := range j.quick {
		if q.states[pid][pid] == 'D' {
			n++
		}
	}
	return float64(n) / float64(max(len(j.quick), 1))
}

func (j *job) inDisk(pid int) bool { return j.diskShare(pid) >= 0.3 }

// manyFaults is the number of major page faults per second that indicates thrashing.
const manyFaults = 200

// findSlowDevice finds a worker that mostly waits for a device, unlike its siblings.
func findSlowDevice(j *job) (found []Finding) {
	for _, p := range j.living() {
		r := j.roles[p.PID]
		others := j.siblings(p.PID)
		if !r.works() || r == roleMain || len(others) == 0 || j.diskShare(p.PID) < 0.6 {
			continue
		}
		slow := 0
		for _, o := range others {
			if j.diskShare(o) > 0.3 {
				slow++
			}
		}
		if slow > 0 {
			continue
		}
		old := j.first.processes[p.PID]
		rate := float64(p.IO.ReadBytes-old.IO.ReadBytes) / j.elapsed.Seconds()
		f := Finding{Rule: "slow-device", PID: p.PID, weight: weightSlow,
			Cause: fmt.Sprintf("%s waits for a slow device: it reads %s/s, and its %s do not wait", j.label(p.PID),
				words.Bytes(int64(rate)), words.Count(len(others), "sibling")),
			Evidence: []string{evidence("in %.0f %% of %d samples it was in an uninterruptible wait",
				100*j.diskShare(p.PID), len(j.quick))},
			Cure: "move the files that this worker reads to a faster device, or check the device, the network " +
				"mount and the I/O limit of the control group"}
		if t, ok := j.mainThread(p.PID); ok && t.Wait != "" {
			f.Evidence = append(f.Evidence, evidence("it sleeps in the kernel function %s", t.Wait))
		}
		if n := float64(p.MajorFaults-old.MajorFaults) / j.elapsed.Seconds(); n > manyFaults {
			f.Cause = fmt.Sprintf("%s waits for pages: %.0f major page faults/s", j.label(p.PID), n)
			f.Cure = "the memory is short, so that mapped files are read again and again: use less memory, or " +
				"copy the files"
		}
		for _, file := range p.Files {
			if strings.HasPrefix(file.Target, "/") && !strings.HasPrefix(file.Target, "/dev/") {
				f.Evidence = append(f.Evidence, "it has open: "+file.Target)
			}
		}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}
