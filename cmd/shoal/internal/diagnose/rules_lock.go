package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// A lockUse is the SemLock object that a process has for a semaphore that it maps; known is
// false if it was not found. A shared semaphore is identified by its inode, because
// multiprocessing removes the name at once.
type lockUse struct {
	lock  pystack.SemLock
	known bool
}

// lockUsers returns the processes that map the semaphore of a wait. It stops at a process that
// has locked the semaphore, so that others may be missing. A search takes long, so it begins
// with those that do not wait for it.
func (j *job) lockUsers(w lockWait) map[int]lockUse {
	users := make(map[int]lockUse)
	all := j.living()
	slices.SortStableFunc(all, func(a, b *procfs.Process) int {
		return cmp.Compare(slices.Index(w.waiters, a.PID), slices.Index(w.waiters, b.PID))
	})
	for _, p := range all {
		if m, ok := semaphoreMapping(p, w.inode); ok {
			var u lockUse
			u.lock, u.known = j.semLock(p, m.Start)
			users[p.PID] = u
			if u.lock.Count > 0 {
				return users
			}
		}
	}
	return users
}

func semaphoreMapping(p *procfs.Process, inode uint64) (procfs.Mapping, bool) {
	for _, m := range p.Maps.Shared {
		if m.Semaphore() && m.Inode == inode {
			return m, true
		}
	}
	return procfs.Mapping{}, false
}

// semLock returns the SemLock object of a process for the semaphore at an address, or false if
// it has none or its memory may not be read. glibc maps the file of a semaphore from its
// beginning.
func (j *job) semLock(p *procfs.Process, addr uint64) (pystack.SemLock, bool) {
	lock, ok := j.locks[p.PID][addr]
	if ok || j.searched[p.PID] == addr {
		return lock, ok
	}
	j.searched[p.PID] = addr
	found, _ := pystack.FindSemLocks(j.System, p, addr, j.objects[addr]) // empty without permission
	for at, l := range found {
		j.objects[at] = l.Object
	}
	if j.locks[p.PID] == nil {
		j.locks[p.PID] = make(map[uint64]pystack.SemLock)
	}
	maps.Copy(j.locks[p.PID], found)
	lock, ok = j.locks[p.PID][addr]
	return lock, ok
}

// A lockWait is a group of threads that wait for one semaphore.
type lockWait struct {
	inode   uint64
	name    string
	addr    uint64 // in the first waiter
	waiters []int  // processes
}

// lockWaits returns the semaphores that kept threads waiting during the whole observation, each
// once with all of its waiters.
func (j *job) lockWaits() (all []lockWait) {
	index := make(map[uint64]int)
	for _, p := range j.living() {
		for _, t := range j.stuckThreads(p.PID) {
			m, ok := semaphoreOf(p, t)
			if !ok {
				continue
			}
			i, known := index[m.Inode]
			if !known {
				i = len(all)
				index[m.Inode] = i
				all = append(all, lockWait{inode: m.Inode, name: shortName(m.Path), addr: m.Start})
			}
			if !slices.Contains(all[i].waiters, p.PID) { // several of its threads may wait
				all[i].waiters = append(all[i].waiters, p.PID)
			}
		}
	}
	return all
}

// findDeadHolders finds locks that are locked but that no living process has locked. The sum of
// the counts of all processes would be 1 if the holder lived, wherever it is released. A
// semaphore with several permits is treated in the same way. The living holders of other locks
// go to j.held.
func findDeadHolders(j *job) (found []Finding) {
	for _, w := range j.lockWaits() {
		first := w.waiters[0]
		st, err := pystack.ReadSemaphore(j.System, first, w.addr)
		if err != nil || st.Value != 0 || j.isStoppedUser(w.inode) {
			continue
		}
		lock, known := j.semLock(j.last.processes[first], w.addr)
		if !known || lock.Max != 1 && !j.hasPermits(lock, w.waiters) {
			continue // a signal of a condition or an event
		}
		users := j.lockUsers(w)
		sum, unknown := 0, 0
		for _, u := range users {
			if !u.known {
				unknown++
				continue
			}
			sum += u.lock.Count
		}
		if sum > 0 && lock.Max == 1 {
			j.noteHolder(w, users)
		}
		if sum != 0 || unknown > 0 || !users[first].known {
			continue
		}
		found = append(found, j.deadHolder(w, lock, st, len(users)))
	}
	return found
}

// unbounded is SEM_VALUE_MAX, the limit of a Semaphore. The limit of a BoundedSemaphore is its
// number of permits.
const unbounded = 1<<31 - 1

// hasPermits reports whether a semaphore that keeps processes waiting has permits, which each
// process returns: it is a BoundedSemaphore, or used in a with statement. Other semaphores may be
// signals of another process. The semaphore of a queue with a limit must not be reported.
func (j *job) hasPermits(lock pystack.SemLock, waiters []int) bool {
	used := lock.Max < unbounded
	for _, pid := range waiters {
		stacks := j.last.stacks[pid]
		if putsIn(stacks, pid) {
			return false
		}
		used = used || hasFunction(stacks, "__enter__", "multiprocessing/synchronize.py")
	}
	return used
}

// deadHolder returns the finding about a lock, or a semaphore, that only dead processes can have
// acquired. lock is the SemLock object of the first waiter, st the state of the semaphore, and
// users the number of living processes that map it.
func (j *job) deadHolder(w lockWait, lock pystack.SemLock, st pystack.Semaphore, users int) Finding {
	pid, holder := w.waiters[0], "a process that no longer exists"
	if z := j.lastKilled(); z != nil {
		pid, holder = z.PID, fmt.Sprintf("process %d, which was killed by %s", z.PID, signalText(z.ExitSignal()))
		if z.ExitSignal() == 0 {
			holder = fmt.Sprintf("process %d, which has ended with status %d", z.PID, z.ExitStatus())
		}
	}
	f := Finding{Rule: "lock-held-by-dead", PID: pid, weight: weightHolder,
		Cause: fmt.Sprintf("%s waits for a lock that is held by %s", j.label(w.waiters[0]), holder),
		Evidence: []string{
			evidence("semaphore %s has the value 0 and %s", w.name, words.Count(st.Waiters, "waiter")),
			evidence("of the %s that live and map it, none has locked it (the counts of their SemLock objects "+
				"add up to 0)", countProcesses(users)),
			evidence("%s waited for it during the whole observation: %v", countProcesses(len(w.waiters)), w.waiters)},
		Cure: "restart the job: a lock of multiprocessing is not released when its holder dies. Never kill or " +
			"terminate() a process that may hold a lock or use a queue",
	}
	if lock.Max != 1 {
		f.Cause = fmt.Sprintf("%s waits for a semaphore, and dead processes hold all of its permits: %s",
			j.label(w.waiters[0]), j.deadText())
		f.Cure = "restart the job: a semaphore of multiprocessing is not released when its holder dies. Never kill " +
			"or terminate() a process that may hold a permit; a pool of workers needs no semaphore"
		if lock.Max < unbounded {
			f.Evidence = append(f.Evidence, evidence("it is a BoundedSemaphore with %d permits", lock.Max))
		}
	}
	for _, pid := range w.waiters {
		f.Evidence = j.appendPlace(f.Evidence, pid)
	}
	return f
}

// deadText lists up to 8 workers of the job that have ended and were not reaped, and how they
// ended. Without such workers it returns a phrase for dead processes in general.
func (j *job) deadText() string {
	var list []string
	for _, z := range j.zombies() {
		how := fmt.Sprintf("exit with status %d", z.ExitStatus())
		if z.ExitSignal() != 0 {
			how = signalText(z.ExitSignal())
		}
		list = append(list, fmt.Sprintf("process %d ended by %s", z.PID, how))
	}
	if len(list) == 0 {
		return "processes that no longer exist"
	}
	return strings.Join(list[:min(len(list), 8)], ", ")
}

// isStoppedUser reports whether a stopped process maps a semaphore. It is then the likely holder.
func (j *job) isStoppedUser(inode uint64) bool {
	return slices.ContainsFunc(j.living(), func(p *procfs.Process) bool {
		_, ok := semaphoreMapping(p, inode)
		return ok && (p.State == 'T' || p.State == 't')
	})
}

// noteHolder adds the living holder of a lock, if it is among users, to j.held for
// [findLockCycles].
func (j *job) noteHolder(w lockWait, users map[int]lockUse) {
	for pid, u := range users {
		if u.lock.Count > 0 {
			j.held = append(j.held, heldLock{w, pid})
		}
	}
}

// lastKilled returns the ended worker of the job that started last, or nil. It prefers those that a
// signal killed.
func (j *job) lastKilled() (last *procfs.Process) {
	for _, z := range j.zombies() {
		better := last == nil || z.ExitSignal() != 0 && last.ExitSignal() == 0 ||
			(z.ExitSignal() != 0) == (last.ExitSignal() != 0) && z.Start >= last.Start
		if better {
			last = z
		}
	}
	return last
}

// findLocalDeadlocks finds workers that cannot continue: all of their threads wait, without a
// timeout, for futexes that only threads of the same process can wake.
func findLocalDeadlocks(j *job) (found []Finding) {
	for _, p := range j.living() {
		r, parent := j.roles[p.PID], j.last.processes[j.parent[p.PID]]
		if !r.works() || p.PID == j.root || parent == nil {
			continue // a main process may wait for a signal
		}
		stuck := j.stuckThreads(p.PID)
		if len(stuck) == 0 || len(stuck) != len(p.Threads) || !allPrivate(stuck) {
			continue
		}
		f := Finding{Rule: "deadlock-in-process", PID: p.PID, weight: weightDeadlock, Evidence: []string{
			evidence("all %s of process %d wait for private futexes without a timeout, so no thread is left to "+
				"wake them",
				words.Count(len(stuck), "thread"), p.PID),
			evidence("it has used %.2f s of CPU time since it started", float64(p.Ticks())*tick.Seconds())}}
		f.Cause = fmt.Sprintf("%s is deadlocked: all of its threads wait for each other", j.label(p.PID))
		f.Cure = "look at the stacks below for the locks and their order"
		switch {
		case !j.acquiresLock(p.PID) && len(stuck) == 1:
			if !j.isWaiting(parent.PID) {
				continue
			}
			f.Cause = fmt.Sprintf("%s is deadlocked: its only thread waits for an event or an item of its own process, "+
				"and no thread is left to send it", j.label(p.PID))
			f.Cure = "look at the stack below: fork does not copy threads, and objects of threading and queue are not " +
				"shared between processes; use those of multiprocessing"
		case r != roleSpawned && len(parent.Threads) > 1 && slices.Equal(p.Command, parent.Command):
			f.Rule = "fork-with-threads"
			f.Cause = fmt.Sprintf("%s is deadlocked after fork: it waits for a lock that a thread of its parent "+
				"%d held, which fork does not copy",
				j.label(p.PID), parent.PID)
			f.Evidence = append(f.Evidence, evidence("parent %d has %s, and the child was created by fork", parent.PID,
				words.Count(len(parent.Threads), "thread")))
			f.Cure = "start workers with the start method forkserver or spawn " +
				"(multiprocessing_context=\"forkserver\" for DataLoader), or before the parent starts threads"
		case !j.isWaiting(parent.PID):
			continue
		case r != roleSpawned && len(stuck) == 1 && !p.Executed() && j.acquiresLock(p.PID):
			f.Rule = "fork-with-threads"
			f.Cause = fmt.Sprintf("%s is deadlocked: its only thread waits for a lock that a thread of its parent %d "+
				"held at the fork, or that it holds itself", j.label(p.PID), parent.PID)
			f.Evidence = append(f.Evidence, "the process was created by fork, which copies locks but not the threads "+
				"that hold them")
			f.Cure = "start workers with the start method forkserver or spawn " +
				"(multiprocessing_context=\"forkserver\" for DataLoader); do not acquire a Lock twice, but use an RLock"
		}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// acquiresLock reports whether a main thread waits for a lock and not for a condition: an event or
// an item of a queue.Queue. It is true if the stack is not known.
func (j *job) acquiresLock(pid int) bool {
	s, ok := stackOf(j.last.stacks[pid], pid)
	return !ok || indexFunction(s, "wait", "/threading.py") < 0
}

func allPrivate(threads []procfs.Thread) bool {
	for _, t := range threads {
		if !isPrivateWait(t) {
			return false
		}
	}
	return true
}

// findDeadPinThread finds loops that wait for the queue of a pin-memory thread that has ended.
func findDeadPinThread(j *job) (found []Finding) {
	for _, p := range j.living() {
		if !waitsForPinThread(j.first.stacks[p.PID], p.PID) || !waitsForPinThread(j.last.stacks[p.PID], p.PID) {
			continue
		}
		f := Finding{Rule: "pin-thread-dead", PID: p.PID, weight: weightPin,
			Cause: fmt.Sprintf("the pin-memory thread of process %d is dead, and the process waits for "+
				"its queue", p.PID),
			Evidence: []string{"the main thread is in _try_get_data, and waits for a queue.Queue, which only the " +
				"pin-memory thread fills",
				evidence("none of %s is in _pin_memory_loop", words.Count(len(j.last.stacks[p.PID]), "Python thread"))},
			Cure: "look for the thread's traceback on standard error (often CUDA out of memory or too many open " +
				"files); pin_memory=False avoids the thread",
		}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

func waitsForPinThread(stacks []pystack.Stack, tid int) bool {
	s, ok := stackOf(stacks, tid)
	if !ok || hasFunction(stacks, "_pin_memory_loop", "_utils/pin_memory.py") {
		return false
	}
	loop := indexFunction(s, "_try_get_data", "utils/data/dataloader.py")
	queue := -1
	for i, f := range s.Frames {
		if f.Function == "get" && strings.HasSuffix(f.File, "/queue.py") {
			queue = i
		}
	}
	return loop >= 0 && queue >= 0 && queue < loop
}
