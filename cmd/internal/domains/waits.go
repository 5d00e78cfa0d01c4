package domains

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// A Wait is a waiting process and the edges that it contributes to the wait-for graph. The wait
// ends when Need of the processes in On act.
type Wait struct {
	PID    int    `json:"pid"`
	For    string `json:"for"`   // lock, readers, permit, message, room, barrier, notification or event
	Block  string `json:"block"` // block of the queue or lock, as in errors
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind"`   // queue, or the kind of lock
	On     []int  `json:"on"`     // processes that can end it, possibly the waiter
	Need   int    `json:"need"`   // number required
	Others bool   `json:"others"` // unknown processes can end it too: a message holds the end
	// Progress changes whenever the wait may have ended and begun again.
	Progress uint64 `json:"progress"`
}

// What returns the object of the wait as text.
func (w Wait) What() string {
	switch w.For {
	case "lock":
		return fmt.Sprintf("the %s %s", w.Kind, w.placeText())
	case "barrier", "event":
		return fmt.Sprintf("the %s %s", w.For, w.placeText())
	}
	return fmt.Sprintf("%s of %s %s", w.For, w.Kind, w.placeText())
}

// String returns the wait as text.
func (w Wait) String() string {
	on := make([]string, len(w.On))
	for i, pid := range w.On {
		on[i] = fmt.Sprint(pid)
	}
	if w.Others {
		on = append(on, "others")
	}
	return fmt.Sprintf("%d waits for %s: %s", w.PID, w.What(), strings.Join(on, ", "))
}

func (w Wait) placeText() string {
	if w.Name != "" {
		return fmt.Sprintf("%q", w.Name)
	}
	return w.Block
}

// key identifies a wait at one state of progress.
func (w Wait) key() string { return fmt.Sprint(w.PID, " ", w.For, " ", w.Block, " ", w.Progress, w.On) }

// A Deadlock is a cycle of at least two processes in the wait-for graph. At least one of them waits
// for an action that its own goroutines cannot perform. A process that waits for a message on a
// queue and holds both of its ends is not a cycle by itself, because another of its goroutines may
// send one.
//
// A Deadlock is only suspected: goroutines that are not waiting are invisible from outside, and a
// waiter stays listed for a while after its deadline.
type Deadlock struct {
	Waits []Wait `json:"waits"` // one for each process, in the order of the cycle
	// Doubt is a reason why the cycle may not be a deadlock. It is empty if there is none.
	Doubt string `json:"doubt,omitempty"`
}

// isOwnWait reports whether another goroutine of the waiting process can end the wait.
func (w Wait) isOwnWait() bool { return slices.Contains(w.On, w.PID) }

// isIdleWait reports whether a process without work waits in this way.
func (w Wait) isIdleWait() bool {
	return w.For == "message" || w.For == "notification" || w.For == "event"
}

// doubtReason returns a reason why a cycle may not be a deadlock, or an empty string.
func doubtReason(circle []Wait) string {
	if !slices.ContainsFunc(circle, func(w Wait) bool { return !w.isIdleWait() }) {
		return "they may be idle"
	}
	if at := slices.IndexFunc(circle, Wait.isOwnWait); at >= 0 {
		return fmt.Sprintf("another goroutine of process %d may continue", circle[at].PID)
	}
	return ""
}

// waitGraph returns the wait-for graph of an observation. Listed waiters that could proceed are
// omitted.
func waitGraph(o observe.Observation) (all []Wait) {
	for _, q := range o.Queues {
		w := Wait{Block: q.Block, Name: firstName(q.Names), Kind: "queue", Need: 1, Progress: q.Puts + q.Gets}
		if q.Latest {
			w.Kind = "latest"
		}
		if q.Depth == 0 && !q.Finished && !q.Senders.Gone {
			w.For, w.On, w.Others = "message", q.Senders.PIDs, q.Senders.InTransit > 0
			all = appendWaits(all, w, q.Receivers.Waiting)
		}
		if q.Depth >= q.Capacity && !q.Finished && !q.Receivers.Gone {
			w.For, w.On, w.Others = "room", q.Receivers.PIDs, q.Receivers.InTransit > 0
			all = appendWaits(all, w, q.Senders.Waiting)
		}
	}
	for _, l := range o.Locks {
		all = append(all, lockWaits(l)...)
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

func lockWaits(l observe.LockView) (all []Wait) {
	w := Wait{Block: l.Block, Name: firstName(l.Names), Kind: l.Kind, Need: 1}
	var shares []int
	for _, s := range l.Shares {
		if !s.Dead {
			shares = append(shares, s.PID)
		}
	}
	switch l.Kind {
	case "semaphore":
		if l.Permits == 0 && len(l.Waiting) > 0 {
			w.For, w.On = "permit", shares
			if len(shares) == 0 { // used as a signal: any process may release it
				w.On = l.PIDs
			}
			all = appendWaits(all, w, l.Waiting)
		}
	case "cond":
		w.For, w.On = "notification", l.PIDs
		all = appendWaits(all, w, l.Waiting)
	case "event":
		if !l.Set {
			w.For, w.On, w.Progress = "event", l.PIDs, l.Turn
			all = appendWaits(all, w, l.Waiting)
		}
	case "barrier":
		if l.Broken {
			return nil
		}
		w.For, w.Need, w.Progress = "barrier", max(1, l.Limit-l.Arrived), l.Turn
		for _, pid := range shares {
			if !slices.Contains(l.Waiting, pid) {
				w.On = append(w.On, pid)
			}
		}
		w.Others = len(w.On) < w.Need // a missing party, or another goroutine of one
		all = appendWaits(all, w, l.Waiting)
	default:
		if l.Owner == 0 || l.Dead || l.Lost {
			return nil
		}
		w.For, w.On = "lock", []int{l.Owner}
		all = appendWaits(all, w, l.Waiting)
		if slices.Contains(l.Drained, l.Owner) && len(shares) > 0 {
			w.For, w.On, w.Need = "readers", shares, len(shares)
			all = appendWaits(all, w, []int{l.Owner})
		}
	}
	return all
}

func appendWaits(all []Wait, w Wait, waiters []int) []Wait {
	w.On = slices.Clone(w.On)
	if w.On == nil {
		w.On = []int{}
	}
	for _, pid := range waiters {
		w.PID = pid
		all = append(all, w)
	}
	return all
}

func firstName(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Deadlocks returns the cycles among the waits that occur in two observations without progress
// between them. Both observations must be of the same domain.
//
// A process is stuck if all of its waits are the same in both observations and each of them depends
// on stuck processes. A process that can be released by one that is not waiting is therefore not
// stuck.
func Deadlocks(before, after []Wait) []Deadlock {
	seen := make(map[string]bool)
	for _, w := range before {
		seen[w.key()] = true
	}
	stuck := make(map[int][]Wait)
	for _, w := range after {
		stuck[w.PID] = append(stuck[w.PID], w)
	}
	for changed := true; changed; {
		changed = false
		for pid, waits := range stuck {
			if slices.ContainsFunc(waits, func(w Wait) bool { return !seen[w.key()] || canEnd(w, stuck) }) {
				delete(stuck, pid)
				changed = true
			}
		}
	}
	return findCycles(stuck)
}

// canEnd reports whether processes that are not stuck can end the wait. This is also assumed if
// the processes that can end it are not known.
func canEnd(w Wait, stuck map[int][]Wait) bool {
	free := 0
	for _, pid := range w.On {
		if stuck[pid] == nil {
			free++
		}
	}
	return w.Others || free >= w.Need || len(w.On) == 0
}

// findCycles returns disjoint cycles of the graph of stuck processes, usually the shortest one
// of each strongly connected component. It omits cycles in which the own goroutines of every
// process may end its wait. stuck holds the waits by process.
func findCycles(stuck map[int][]Wait) []Deadlock {
	all := []Deadlock{}
	var pids []int
	for pid := range stuck {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	done := make(map[int]bool)
	for _, pid := range pids {
		c := shortestCycle(stuck, pid)
		if !slices.ContainsFunc(c, func(w Wait) bool { return !w.isOwnWait() }) || // also if c is nil
			slices.ContainsFunc(c, func(w Wait) bool { return done[w.PID] }) {
			continue
		}
		for _, w := range c {
			done[w.PID] = true
		}
		all = append(all, Deadlock{Waits: c, Doubt: doubtReason(c)})
	}
	return all
}

// shortestCycle returns the waits along the shortest cycle through a process, or nil if there is
// none.
func shortestCycle(stuck map[int][]Wait, from int) []Wait {
	came := make(map[int][]Wait) // first path to each process
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, w := range stuck[at] {
			for _, to := range w.On {
				way := append(slices.Clone(came[at]), w)
				switch {
				case to == at:
				case to == from:
					return way
				case stuck[to] != nil && came[to] == nil:
					came[to] = way
					queue = append(queue, to)
				}
			}
		}
	}
	return nil
}
