package diagnose

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
	"github.com/shoal-mp/shoal/internal/sys"
)

// One observation cannot tell a function that never returns from one that is merely slow. The
// kernel records when a sleeping thread ran last, which tells how long its work has taken so far.

// A silence is the time since a process sent something, with the average time between its
// earlier writes.
type silence struct {
	lasted time.Duration
	usual  time.Duration // average time between two writes before
}

const (
	minSilence   = 10 * time.Second
	silenceRatio = 20 // to the usual time
	minWrites    = 3  // before the silence
)

// isLong reports whether a silence is so long that the work probably never ends: at least 10 s,
// and 20 times the usual time.
func (s silence) isLong() bool { return s.lasted >= minSilence && s.lasted >= silenceRatio*s.usual }

// String returns the silence in words, as evidence.
func (s silence) String() string {
	return fmt.Sprintf("for %s; before, it wrote every %s on average", s.seconds(), s.usual.Round(time.Millisecond))
}

func (s silence) seconds() string { return fmt.Sprintf("%.0f s", s.lasted.Seconds()) }

// silenceSince returns the silence of a process: the time since its thread tid ran last. That
// thread must sleep whenever there is nothing to send. ok is false if the kernel does not tell
// the time, or if the process has made fewer than 3 writes.
func (j *job) silenceSince(pid, tid int) (s silence, ok bool) {
	p := j.last.processes[pid]
	t, known := threadOf(p, tid)
	up := j.System.Uptime()
	if !known || up == 0 || p.IO.WriteCalls < minWrites {
		return s, false
	}
	s.lasted, ok = j.System.SinceRun(pid, t)
	before := up - time.Duration(p.Start)*tick - s.lasted
	s.usual = max(0, before) / time.Duration(p.IO.WriteCalls)
	return s, ok
}

// silenceOf returns how long ago a worker sent its last batch: when its queue's thread ran last.
// The result is false if that is not known.
func (j *job) silenceOf(pid int) (silence, bool) {
	for _, s := range j.last.stacks[pid] {
		if indexFunction(s, "_feed", "multiprocessing/queues.py") >= 0 {
			return j.silenceSince(pid, s.TID)
		}
	}
	return silence{}, false
}

// findSilentLoaders finds DataLoader workers that have been in one sample for much longer than
// their batches took before, while the parent waits and no other worker is active.
func findSilentLoaders(j *job) (found []Finding) {
	for _, parent := range j.living() {
		if !j.awaitsBatch(parent.PID) {
			continue
		}
		var part []Finding
		for _, c := range j.created(parent.PID) {
			if j.roles[c] != roleLoader || j.getsIn(c, "_worker_loop", "_utils/worker.py") {
				continue
			}
			s, ok := j.silenceOf(c)
			if !ok || !s.isLong() || !j.entersSample(c) || !j.repeats(c) || j.last.processes[c].State == 'T' {
				part = nil // another worker is active
				break
			}
			part = append(part, j.silentLoader(c, parent.PID, s))
		}
		found = append(found, part...)
	}
	return found
}

func (j *job) silentLoader(pid, parent int, s silence) Finding {
	f := Finding{Rule: "busy-worker", PID: pid, weight: weightSlow,
		Cause: fmt.Sprintf("%s has computed for %s in one sample, and %s waits for it", j.label(pid), s.seconds(),
			j.label(parent)),
		Evidence: []string{evidence("it has sent nothing %v", s),
			evidence("it was in the same function in all %d samples, and used %.2f CPUs", len(j.samplesOf(pid)),
				j.cpu(pid))},
		Cure: "look at the function below for a loop that does not end; DataLoader(timeout=…) raises an error " +
			"instead of waiting for ever"}
	if j.demand(pid) < 0.5 {
		f.Rule, f.weight = "stuck-worker", weightStuck
		f.Cause = fmt.Sprintf("%s has waited for %s in one sample, and %s waits for it", j.label(pid), s.seconds(),
			j.label(parent))
		if t, ok := j.mainThread(pid); ok {
			f.Evidence = append(f.Evidence, evidence("its wait: %s", j.describeWait(j.last.processes[pid], t)))
		}
		f.Cure = "look at the function below for what it waits for. Give every wait of a data set a timeout; " +
			"DataLoader(timeout=…) raises an error instead of waiting for ever"
	}
	f.Evidence = j.appendPlace(f.Evidence, pid)
	return f
}

// longSleep is the least rest of a sleep that no worker of a healthy program has.
const longSleep = time.Minute

// forever is the rest of a sleep that only a signal ends.
const forever = 1<<63 - 1

// sleepCalls maps the system calls of sleeps to the argument with the time, by architecture.
var sleepCalls = map[string]map[int]int{
	"amd64": {23: 4, 34: -1, 35: 0, 230: 2, 270: 4}, // select, pause, nanosleep, clock_nanosleep, pselect6
	"arm64": {72: 4, 101: 0, 115: 2},
}

// sleepRest returns the remaining time of the sleep of a thread, its whole duration if the call
// does not have the end, or forever if only a signal ends it. ok is false if the thread does not
// sleep or the time may not be read. The thread must belong to the last sample.
func (j *job) sleepRest(pid int, t procfs.Thread) (time.Duration, bool) {
	at, ok := sleepCalls[runtime.GOARCH][t.Call.Number]
	waitsForFiles := at == 4 && t.Call.Args[0] != 0
	if !ok || waitsForFiles {
		return 0, false
	}
	if at < 0 || t.Call.Args[at] == 0 {
		return forever, true
	}
	b, err := pystack.ReadMemory(j.System, pid, t.Call.Args[at], 16)
	if err != nil {
		return 0, false
	}
	seconds, fraction := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	unit := time.Nanosecond
	if t.Call.Number == 23 && runtime.GOARCH == "amd64" {
		unit = time.Microsecond
	}
	if seconds > uint64(forever/time.Second)/2 {
		return forever, true
	}
	rest := time.Duration(seconds)*time.Second + time.Duration(fraction)*unit
	const monotonic, absolute = 1, 1
	if at == 2 && t.Call.Args[1]&absolute != 0 {
		if t.Call.Args[0] != monotonic {
			return 0, false
		}
		rest -= sys.Monotonic()
	}
	return max(0, rest), true
}

// sleepText returns the wait of a sleeping thread in words.
func (j *job) sleepText(pid int, t procfs.Thread) string {
	switch rest, ok := j.sleepRest(pid, t); {
	case !ok:
		return "sleep"
	case rest == forever:
		return "sleep without end"
	default:
		return fmt.Sprintf("sleep for another %.0f s", rest.Seconds())
	}
}
