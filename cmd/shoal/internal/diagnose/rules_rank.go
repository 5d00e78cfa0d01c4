package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// collectives are the functions of torch.distributed that all ranks of a group must call.
var collectives = map[string]bool{"all_reduce": true, "all_gather": true, "all_gather_into_tensor": true,
	"all_gather_object": true, "broadcast": true, "broadcast_object_list": true, "barrier": true, "reduce": true,
	"reduce_scatter": true, "reduce_scatter_tensor": true, "all_to_all": true, "all_to_all_single": true,
	"gather": true, "gather_object": true, "scatter": true, "scatter_object_list": true, "monitored_barrier": true,
	"init_process_group": true, "new_group": true}

// messages are the functions of torch.distributed that one other rank must answer.
var messages = map[string]bool{"recv": true, "send": true, "recv_object_list": true, "send_object_list": true,
	"batch_isend_irecv": true}

// A meeting is a collective, or a message to another rank, that blocks a rank.
type meeting struct {
	function string
	caller   pystack.Frame // innermost frame outside of PyTorch
}

// meetingOf returns the collective, message or backward pass that the main thread of a process
// is executing: the outermost call. ok is false if there is none.
func meetingOf(stacks []pystack.Stack, pid int) (m meeting, ok bool) {
	s, found := stackOf(stacks, pid)
	if !found {
		return m, false
	}
	for i, f := range s.Frames {
		backward := f.Function == "_engine_run_backward" && strings.HasSuffix(f.File, "torch/autograd/graph.py") ||
			i == 0 && f.Function == "backward" && strings.HasSuffix(f.File, "torch/autograd/__init__.py") // before 2.3
		named := collectives[f.Function] || messages[f.Function]
		if named && strings.HasSuffix(f.File, "torch/distributed/distributed_c10d.py") || backward {
			m.function, ok = f.Function, true // the outermost one is the call of the user
			if backward {
				m.function = "backward"
			}
			m.caller, _ = userFrame(pystack.Stack{Frames: s.Frames[i+1:]})
		}
	}
	return m, ok
}

// samplesOf returns the stacks of a process in all samples, in the order of time. Quick samples
// without stacks are left out.
func (j *job) samplesOf(pid int) [][]pystack.Stack {
	all := [][]pystack.Stack{j.first.stacks[pid]}
	for _, q := range j.quick {
		if len(q.stacks[pid]) > 0 {
			all = append(all, q.stacks[pid])
		}
	}
	return append(all, j.last.stacks[pid])
}

// maxMeetingRun is the CPU time of a main thread that only checks timeouts in a collective. At the
// start ranks poll the store.
const (
	maxMeetingRun = 200 * time.Microsecond
	maxStartRun   = 200 * time.Millisecond
)

// meets returns the collective in which a rank waited during the whole observation, or false if
// it did not wait in one.
func (j *job) meets(pid int) (meeting, bool) {
	first, ok := meetingOf(j.first.stacks[pid], pid)
	t, known := j.mainThread(pid)
	old, knew := threadOf(j.first.processes[pid], pid)
	limit := maxMeetingRun
	if first.function == "init_process_group" {
		limit = maxStartRun
	}
	if !ok {
		return j.meetsLater(pid)
	}
	if !known || !knew || t.RunNS-old.RunNS > uint64(limit) {
		return first, false
	}
	for _, s := range j.samplesOf(pid) {
		if m, ok := meetingOf(s, pid); !ok || m != first {
			return first, false
		}
	}
	return first, true
}

// isElsewhere reports whether the main thread of a rank was at one line of the user's code,
// outside of all collectives, in all samples. It returns false if a stack is missing.
func (j *job) isElsewhere(pid int) bool {
	first, ok := stackOf(j.first.stacks[pid], pid)
	if !ok {
		return false
	}
	place, _ := userFrame(first)
	for _, s := range j.samplesOf(pid) {
		st, ok := stackOf(s, pid)
		f, _ := userFrame(st)
		if _, in := meetingOf(s, pid); in || !ok || f != place {
			return false
		}
	}
	return true
}

// rankGroups returns the groups of processes that may be ranks of one job: siblings that run the
// user's code.
func (j *job) rankGroups() (groups [][]int) {
	byParent := make(map[int][]int)
	for _, p := range j.living() {
		if r := j.roles[p.PID]; r == roleRank || r == roleSpawned || r == roleForked {
			byParent[j.parent[p.PID]] = append(byParent[j.parent[p.PID]], p.PID)
		}
	}
	for _, parent := range append([]int{j.parent[j.root]}, j.tree...) {
		if g := byParent[parent]; len(g) > 0 {
			if _, in := meetingOf(j.last.stacks[parent], parent); in {
				g = append([]int{parent}, g...) // rank 0 has started the others
			}
			groups = append(groups, g)
		}
	}
	return groups
}

func findRanks(j *job) (found []Finding) {
	for _, group := range j.rankGroups() {
		waiting, elsewhere, busy := make(map[int]meeting), []int(nil), []int(nil)
		for _, pid := range group {
			m, meets := j.meets(pid)
			switch {
			case meets:
				waiting[pid] = m
			case j.hasStarted(pid):
				if j.isWaiting(pid) {
					waiting[pid] = meeting{function: asyncStart, caller: j.frameOf(pid)}
				}
			case j.computes(pid):
				busy = append(busy, pid)
			case j.isElsewhere(pid) || j.last.processes[pid].State == 'T':
				elsewhere = append(elsewhere, pid)
			}
		}
		collective := false
		for _, m := range waiting {
			collective = collective || !messages[m.function]
		}
		others := len(elsewhere) + len(busy)
		if len(waiting) == 0 || len(waiting)+others < 2 || !collective && len(waiting) < len(group) {
			continue // a rank that waits for messages may be a server
		}
		if others == 0 && len(waiting) == len(group) {
			found = append(found, j.compareMeetings(group, waiting)...)
		}
		for _, pid := range busy {
			found = append(found, j.busyRank(pid, group, waiting)...)
		}
		for _, pid := range elsewhere {
			if j.awaitsBatch(pid) || j.hasBusyChild(pid) { // another rule looks at its workers
				j.notes = append(j.notes, fmt.Sprintf("%s waits for its workers in %s, and %s for it in a collective",
					j.rankLabel(pid), j.placeOf(pid), rankCount(len(waiting))))
				continue
			}
			found = append(found, j.missingRank(pid, group, waiting))
		}
	}
	return found
}

// Functions of meetings that were started with async_op=True.
const (
	asyncWait  = "wait()"
	asyncStart = "async_op=True" // and the rank does something else
)

// collectiveText returns a collective in words. function is the function of a [meeting].
func collectiveText(function string) string {
	if function == asyncWait || function == asyncStart {
		return "a collective with async_op=True"
	}
	return "the collective " + function
}

// meetingText describes the operation that a rank waits for, as evidence.
func meetingText(pid int, m meeting) string {
	if m.function == asyncStart {
		return evidence("process %d has started a collective with async_op=True, and is in %s", pid, m.caller)
	}
	return evidence("process %d waits in %s, called by %s", pid, m.function, m.caller)
}

// meetsLater is like [job.meets] for a collective that the rank had started with async_op=True
// and now waits for. The wait is a function in C++, so the innermost Python function is the
// caller.
func (j *job) meetsLater(pid int) (meeting, bool) {
	t, stuck := j.stuckIn(pid)
	place := j.frameOf(pid)
	if !stuck || kindOf(t) != waitFutex || place == (pystack.Frame{}) || !j.hasStarted(pid) {
		return meeting{}, false
	}
	for _, s := range j.samplesOf(pid) {
		st, ok := stackOf(s, pid)
		if !ok || len(st.Frames) == 0 || strings.HasSuffix(st.Frames[0].File, "/threading.py") ||
			strings.Contains(st.Frames[0].File, "/multiprocessing/") {
			return meeting{}, false
		}
		if f, _ := userFrame(st); f != place {
			return meeting{}, false
		}
	}
	return meeting{function: asyncWait, caller: place}, true
}

// frameOf returns the position of the main thread in the user's code, or the zero Frame if it is
// not known.
func (j *job) frameOf(pid int) pystack.Frame {
	s, _ := stackOf(j.last.stacks[pid], pid)
	f, _ := userFrame(s)
	return f
}

// hasStarted reports whether a thread of Gloo executed one collective during the whole observation.
// Such a thread waits for the other ranks with a timeout, and for work without one.
//
// https://github.com/pytorch/pytorch/blob/v2.4.0/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp#L892-L921
func (j *job) hasStarted(pid int) bool {
	p := j.last.processes[pid]
	return slices.ContainsFunc(j.stuckThreads(pid), func(t procfs.Thread) bool { return j.executes(p, t) })
}

// inCollective reports whether a thread of Gloo executed a collective in the last sample.
func (j *job) inCollective(pid int) bool {
	p := j.last.processes[pid]
	return slices.ContainsFunc(p.Threads, func(t procfs.Thread) bool { return j.executes(p, t) })
}

// executes reports whether t, a thread of p, belongs to Gloo and waits for other ranks in a
// collective.
func (j *job) executes(p *procfs.Process, t procfs.Thread) bool {
	_, python := stackOf(j.last.stacks[p.PID], t.PID)
	return !python && t.PID != p.PID && isGloo(p, t) && isTimedWait(t)
}

// computes reports whether a rank used more than 30 % of a CPU, and was outside of all
// collectives during the whole observation.
func (j *job) computes(pid int) bool {
	if j.demand(pid) <= 0.3 {
		return false
	}
	return !slices.ContainsFunc(j.samplesOf(pid), func(s []pystack.Stack) bool {
		_, in := meetingOf(s, pid)
		return in
	})
}

// hasBusyChild reports whether a process that pid has created, and that runs the user's code,
// ran or waited for a device.
func (j *job) hasBusyChild(pid int) bool {
	return slices.ContainsFunc(j.created(pid), func(c int) bool {
		return j.roles[c].works() && (!j.idle(c) || j.demand(c) > 0.2 || j.inDisk(c))
	})
}

// busyRank returns the finding about the rank pid if it has computed for much longer than the
// time between two collectives, while the ranks in waiting wait. After a shorter time it adds a
// note and returns nil, because the rank may merely be slow. waiting holds meetings by process.
func (j *job) busyRank(pid int, group []int, waiting map[int]meeting) []Finding {
	var shortest silence
	known := false
	for other := range waiting {
		if s, ok := j.silenceSince(other, other); ok && (!known || s.lasted < shortest.lasted) {
			shortest, known = s, true
		}
	}
	if !known || !shortest.isLong() || !j.repeats(pid) {
		text := fmt.Sprintf("%s computes in %s, and %s for it in a collective", j.rankLabel(pid), j.placeOf(pid),
			rankCount(len(waiting)))
		if known {
			text += " for at least " + shortest.seconds()
		}
		j.notes = append(j.notes, text)
		return nil
	}
	f := j.missingRank(pid, group, waiting)
	f.Cause = fmt.Sprintf("%s has computed for %s without entering %s, but %s in it", j.rankLabel(pid),
		shortest.seconds(), firstCollective(group, waiting), rankCount(len(waiting)))
	f.Evidence = append(f.Evidence, evidence("the ranks that wait have written nothing %v", shortest),
		evidence("process %d was in the same function in all %d samples", pid, len(j.samplesOf(pid))))
	f.Cure = "look at the line above for a loop that does not end, or for work that only this rank does, such as " +
		"a validation: the other ranks wait until it ends or their timeout"
	return []Finding{f}
}

// firstCollective returns the collective of the first rank of group that waits, in words, or "".
func firstCollective(group []int, waiting map[int]meeting) string {
	for _, pid := range group {
		if m, ok := waiting[pid]; ok {
			return collectiveText(m.function)
		}
	}
	return ""
}

// rankLabel returns the number of a rank, if the environment has it, and the process.
func (j *job) rankLabel(pid int) string {
	if r := j.last.processes[pid].Env["RANK"]; r != "" {
		return fmt.Sprintf("rank %s (process %d)", r, pid)
	}
	return fmt.Sprintf("the rank in process %d", pid)
}

func (j *job) missingRank(pid int, group []int, waiting map[int]meeting) Finding {
	f := Finding{Cause: fmt.Sprintf("%s has not entered %s, but %s in it", j.rankLabel(pid),
		firstCollective(group, waiting), rankCount(len(waiting)))}
	for _, other := range group {
		if m, ok := waiting[other]; ok {
			f.Evidence = append(f.Evidence, meetingText(other, m))
		}
	}
	f.Rule, f.PID, f.weight = "rank-missing", pid, weightRank
	f.Evidence = j.appendPlace(f.Evidence, pid)
	f.Evidence = append(f.Evidence, evidence("process %d uses %.2f CPUs", pid, j.cpu(pid)))
	f.Cure = "all ranks must call the same collectives in the same order: look at the line above for a condition, " +
		"an exception or a wait that only this rank has"
	return f
}

func rankCount(n int) string {
	if n == 1 {
		return "the other rank waits"
	}
	return fmt.Sprintf("%d other ranks wait", n)
}

// compareMeetings finds ranks that wait in a different collective than most ranks. All ranks of
// group must be in waiting, which holds meetings by process. It returns nil if they wait in the
// same one, or if one of them may wait for anything.
func (j *job) compareMeetings(group []int, waiting map[int]meeting) []Finding {
	counts := make(map[meeting]int)
	for _, m := range waiting {
		counts[m]++
	}
	if f, ok := j.compareMessages(group, waiting); ok {
		return []Finding{f}
	}
	for m := range counts {
		if m.function == asyncStart { // the ranks may wait for anything
			return nil
		}
	}
	if len(counts) < 2 {
		return nil
	}
	most := waiting[group[0]]
	for _, pid := range group {
		if counts[waiting[pid]] > counts[most] {
			most = waiting[pid]
		}
	}
	culprit := slices.IndexFunc(group, func(pid int) bool { return waiting[pid] != most })
	pid := group[culprit]
	f := Finding{Rule: "rank-order", PID: pid, weight: weightRank,
		Cause: fmt.Sprintf("%s waits in another collective (%s at line %d) than %s (%s at line %d)", j.rankLabel(pid),
			waiting[pid].function, waiting[pid].caller.Line, words.Count(counts[most], "other rank"), most.function,
			most.caller.Line),
		Cure: "give all ranks the same number of batches in the same order: use DistributedSampler with the same " +
			"seed and set_epoch on all ranks, drop_last=True, or torch.distributed.algorithms.join.Join",
	}
	for _, p := range group {
		f.Evidence = append(f.Evidence, meetingText(p, waiting[p]))
	}
	return []Finding{f}
}

// compareMessages returns the finding about ranks that all wait, some of them for messages, or
// that all wait for one that has not started. The result is false in other cases.
func (j *job) compareMessages(group []int, waiting map[int]meeting) (Finding, bool) {
	message, start := 0, 0
	var list []string
	for _, pid := range group {
		m := waiting[pid]
		if messages[m.function] {
			message++
		}
		if m.function == "init_process_group" {
			start++
		}
		list = append(list, meetingText(pid, m))
	}
	f := Finding{Rule: "rank-order", PID: group[0], weight: weightRank, Evidence: list,
		Cause: fmt.Sprintf("all %d ranks wait for each other: %s", len(group), meetingsText(group, waiting)),
		Cure: "each recv needs a send of the rank that it names, in the same order on both sides: one side must send " +
			"first, or use isend and irecv"}
	if start == len(group) {
		f.Rule = "rank-missing"
		f.Cause = fmt.Sprintf("%s in init_process_group for a rank that has not started or cannot connect",
			waitText(start))
		f.Cure = "compare world_size with the number of ranks that were started, and look for one that failed at its " +
			"start; on several machines check MASTER_ADDR, MASTER_PORT and the firewall"
	}
	return f, message > 0 || start == len(group)
}

func meetingsText(group []int, waiting map[int]meeting) string {
	var parts []string
	for _, pid := range group[:min(len(group), 4)] {
		parts = append(parts, fmt.Sprintf("process %d in %s at line %d", pid, waiting[pid].function,
			waiting[pid].caller.Line))
	}
	return strings.Join(parts, ", ")
}
