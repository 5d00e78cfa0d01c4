package diagnose

import (
	"fmt"
	"slices"
	"strings"
)

// A heldLock is a lock that a living process holds and others want.
type heldLock struct {
	lockWait
	holder int
}

// A dependency is a process that cannot continue before another one does.
type dependency struct {
	on   int
	text string // how the first process depends on the other, as evidence
}

// dependencies returns, by process, the holders of the locks that it waits for and the child
// that it joins. It must run after [findDeadHolders], which finds the holders.
func (j *job) dependencies() map[int][]dependency {
	all := make(map[int][]dependency)
	for _, l := range j.held {
		for _, pid := range l.waiters {
			text := evidence("%s waits for the lock %s, which %s has locked", j.label(pid), l.name, j.label(l.holder))
			all[pid] = append(all[pid], dependency{l.holder, text})
		}
	}
	for _, p := range j.living() {
		t, ok := j.mainThread(p.PID)
		if !ok || kindOf(t) != waitChild || !j.isWaiting(p.PID) {
			continue
		}
		child := int(int32(t.Call.Args[0])) // of wait4
		if c := j.last.processes[child]; c != nil && j.parent[child] == p.PID {
			text := evidence("%s waits for the end of %s", j.label(p.PID), j.label(child))
			all[p.PID] = append(all[p.PID], dependency{child, text})
		}
	}
	return all
}

// findLockCycles finds processes that wait for each other: for locks, or for the end of a child
// that waits for a lock. It must run after [findDeadHolders], which finds the holders.
func findLockCycles(j *job) (found []Finding) {
	graph := j.dependencies()
	done := make(map[int]bool)
	for _, pid := range j.tree {
		cycle, texts := findCycle(graph, pid)
		if len(cycle) == 0 || done[pid] || len(cycle) == 1 && !j.onlyWaiters(pid) {
			continue
		}
		f := Finding{Rule: "deadlock-between-processes", PID: pid, weight: weightDeadlock, Evidence: texts,
			Cure: "acquire the locks in the same order in all processes, do not hold one while joining a process, " +
				"or acquire with a timeout"}
		names := make([]string, len(cycle))
		for i, p := range cycle {
			done[p] = true
			names[i] = j.label(p)
			f.Evidence = j.appendPlace(f.Evidence, p)
		}
		f.Cause = fmt.Sprintf("%s are deadlocked: each waits for the next one", strings.Join(names, " and "))
		if len(cycle) == 1 {
			f.Cause = fmt.Sprintf("%s is deadlocked: it waits for a lock that it has locked itself", names[0])
			f.Cure = "do not acquire a Lock twice; an RLock may be acquired again by its holder"
		}
		found = append(found, f)
	}
	for _, l := range j.held {
		s, ok := stackOf(j.last.stacks[l.holder], l.holder)
		inQueue := ok && indexFunction(s, "get", "multiprocessing/queues.py") >= 0 // an idle consumer
		if place := j.placeOf(l.holder); !done[l.holder] && !inQueue && place != "" {
			j.notes = append(j.notes, fmt.Sprintf("%s holds the lock %s, that %s for; it is in %s",
				j.label(l.holder), l.name, waitText(len(l.waiters)), place))
		}
	}
	return found
}

// findCycle returns the shortest cycle through a process, and the dependencies along it, or nil
// if there is none.
func findCycle(graph map[int][]dependency, from int) (cycle []int, texts []string) {
	type path struct {
		pids  []int
		texts []string
	}
	seen := make(map[int]bool)
	for queue := []path{{pids: []int{from}}}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		for _, d := range graph[p.pids[len(p.pids)-1]] {
			along := append(slices.Clone(p.texts), d.text)
			if d.on == from {
				return p.pids, along
			}
			if !seen[d.on] {
				seen[d.on] = true
				queue = append(queue, path{append(slices.Clone(p.pids), d.on), along})
			}
		}
	}
	return nil, nil
}

// onlyWaiters reports whether a process waits for a lock that it holds itself, and all other
// processes that map the lock wait for it, too, so that none is left to release it.
func (j *job) onlyWaiters(holder int) bool {
	for _, l := range j.held {
		if l.holder != holder || !slices.Contains(l.waiters, holder) {
			continue
		}
		for _, p := range j.living() {
			if _, maps := semaphoreMapping(p, l.inode); maps && !slices.Contains(l.waiters, p.PID) {
				return false
			}
		}
		return true
	}
	return false
}
