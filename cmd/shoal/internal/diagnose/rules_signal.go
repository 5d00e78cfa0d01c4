package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// signalOf returns the name of the object of multiprocessing that the main thread of a process
// waits for, or "". Event and Barrier use a Condition.
func signalOf(stacks []pystack.Stack, pid int) string {
	s, _ := stackOf(stacks, pid)
	waits := 0
	for _, f := range s.Frames {
		if f.Function == "wait" && strings.HasSuffix(f.File, "multiprocessing/synchronize.py") {
			waits++
		}
	}
	switch {
	case waits == 0:
		return ""
	case waits > 1:
		return "Event"
	case indexFunction(s, "_wait", "/threading.py") >= 0:
		return "Barrier"
	}
	return "Condition"
}

// findLostSignals finds processes that wait for an Event, a Condition or a Barrier that no process
// can signal: each process of the job waits for it, too, or waits without a timeout for the end of
// such a process.
func findLostSignals(j *job) (found []Finding) {
	for _, w := range j.lockWaits() {
		name, first := "", w.waiters[0]
		joiners, others := []int{}, 0
		for _, p := range j.living() {
			r := j.roles[p.PID]
			switch {
			case r == roleTracker || r == roleManager || r == roleServer:
			case slices.Contains(w.waiters, p.PID) && j.isAlone(p):
				name = signalOf(j.last.stacks[p.PID], p.PID)
				if name == "" || signalOf(j.first.stacks[p.PID], p.PID) != name {
					others++
				}
			case r.works() && j.joinsForEver(p.PID) && j.isAlone(p):
				joiners = append(joiners, p.PID)
			default:
				others++
			}
		}
		st, err := pystack.ReadSemaphore(j.System, first, w.addr)
		if others > 0 || name == "" || err != nil || st.Value != 0 {
			continue
		}
		cause := fmt.Sprintf("%s waits for %s of multiprocessing, and no process is left to signal it", j.label(first),
			article(name))
		if name == "Barrier" {
			cause = fmt.Sprintf("%s waits in a Barrier that no other process can enter: it has more parties than "+
				"processes", j.label(first))
		}
		f := Finding{Rule: "never-signalled", PID: first, weight: weightStuck, Cause: cause,
			Evidence: []string{evidence("%s waited for it during the whole observation: %v",
				countProcesses(len(w.waiters)), w.waiters)},
			Cure: "compare the number of parties with the processes that call wait(). Set an Event before the join; " +
				"test the state under the lock before Condition.wait, because a notification that comes first is lost"}
		for _, pid := range joiners {
			f.Evidence = append(f.Evidence, evidence("%s waits for the end of a child, and has no other thread",
				j.label(pid)))
		}
		for _, pid := range w.waiters {
			f.Evidence = j.appendPlace(f.Evidence, pid)
		}
		found = append(found, f)
	}
	return found
}

func article(name string) string {
	if name == "Event" {
		return "an Event"
	}
	return "a " + name
}

// isAlone reports whether nothing but the main thread can act in a process: it has no other Python
// thread but those that send the items of queues, and no handlers of signals that users send.
func (j *job) isAlone(p *procfs.Process) bool {
	for _, s := range j.last.stacks[p.PID] {
		if s.TID != p.PID && indexFunction(s, "_feed", "multiprocessing/queues.py") < 0 {
			return false
		}
	}
	_, known := stackOf(j.last.stacks[p.PID], p.PID)
	return known && j.isWaiting(p.PID) && !handlesSignals(j.System, p.PID)
}

// userSignals is the mask of the signals that programs handle to end or to change their work: HUP
// (1, which is bit 0), USR1, USR2, ALRM and TERM, by their numbers on Linux. Python always handles
// SIGINT.
const userSignals = 1<<0 | 1<<9 | 1<<11 | 1<<13 | 1<<14

func handlesSignals(system procfs.System, pid int) bool {
	caught, ok := system.CaughtSignals(pid)
	return !ok || caught&userSignals != 0
}

// joinsForEver reports whether a process waits, without a timeout, for the end of another one.
func (j *job) joinsForEver(pid int) bool {
	t, ok := j.stuckIn(pid)
	if !ok || !j.waitsForEnd(pid) {
		return false
	}
	if kindOf(t) != waitPoll {
		return kindOf(t) == waitChild
	}
	if t.Call.Number == 7 { // poll(2) of amd64, and the others are ppoll(2)
		return int32(t.Call.Args[2]) < 0
	}
	return t.Call.Args[2] == 0
}
