package domains

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A Wait is a process that waits for others: some edges of the wait-for graph. It ends when Need of
// the processes On act.
type Wait struct {
	PID    int    `json:"pid"`
	For    string `json:"for"`   // lock, readers, permit, message, room, barrier, notification or event
	Block  string `json:"block"` // of the queue or the lock, as in errors
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind"`   // queue, or the kind of lock
	On     []int  `json:"on"`     // processes that can end it; the waiter may be one of them
	Need   int    `json:"need"`   // of them
	Others bool   `json:"others"` // so can others, who cannot be known: a message holds the end
	// Progress is a number that changes whenever the wait may have ended in between.
	Progress uint64 `json:"progress"`
}

// What says what the process waits for.
func (w Wait) What() string {
	switch w.For {
	case "lock":
		return fmt.Sprintf("the %s %s", w.Kind, w.where())
	case "barrier", "event":
		return fmt.Sprintf("the %s %s", w.For, w.where())
	}
	return fmt.Sprintf("%s of %s %s", w.For, w.Kind, w.where())
}

// String says it for people.
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

func (w Wait) where() string {
	if w.Name != "" {
		return fmt.Sprintf("%q", w.Name)
	}
	return w.Block
}

// key tells waits of different moments apart.
func (w Wait) key() string { return fmt.Sprint(w.PID, " ", w.For, " ", w.Block, " ", w.Progress, w.On) }

// A Deadlock is a circle of two processes or more, each of which waits for the next one, and the
// last for the first. At least one of them waits for what its own goroutines cannot give. A process
// that waits for a message of a queue of which it has both ends is in no circle by itself: another
// of its goroutines may put one.
//
// A Deadlock is suspected and not proven: goroutines that do not wait cannot be seen from outside,
// and a waiter whose deadline has come stays on the list for a while.
type Deadlock struct {
	Waits []Wait `json:"waits"` // one of each process of the circle, in its order
	// Doubt says why it may be none, and is empty where nothing speaks against it.
	Doubt string `json:"doubt,omitempty"`
}

// own reports whether the waiter's own process can end the wait, by another goroutine.
func (w Wait) own() bool { return slices.Contains(w.On, w.PID) }

// idle reports whether a process that has nothing to do waits so.
func (w Wait) idle() bool { return w.For == "message" || w.For == "notification" || w.For == "event" }

// doubt returns what speaks against a deadlock.
func doubt(circle []Wait) string {
	if !slices.ContainsFunc(circle, func(w Wait) bool { return !w.idle() }) {
		return "they may have nothing to do"
	}
	if at := slices.IndexFunc(circle, Wait.own); at >= 0 {
		return fmt.Sprintf("another goroutine of process %d may go on", circle[at].PID)
	}
	return ""
}

// waits reads the graph in an observation. A process of the list that need not wait is left out.
func waits(o arena.Observation) (all []Wait) {
	for _, q := range o.Queues {
		w := Wait{Block: q.Block, Name: first(q.Names), Kind: "queue", Need: 1, Progress: q.Puts + q.Gets}
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
		all = append(all, waitsForLock(l)...)
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

func waitsForLock(l arena.LockView) (all []Wait) {
	w := Wait{Block: l.Block, Name: first(l.Names), Kind: l.Kind, Need: 1}
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
			if len(shares) == 0 { // it is a signal: each process that has it may give it
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
		w.Others = len(w.On) < w.Need // a member that has not come yet, or a second goroutine of one
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

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Deadlocks returns the circles among the waits that two looks have seen without progress between
// them.
//
// A process counts as stuck while all its waits are the same in both looks, and each needs a
// process that is stuck. So a process that can be let go on by one that does not wait is not stuck.
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
			if slices.ContainsFunc(waits, func(w Wait) bool { return !seen[w.key()] || ends(w, stuck) }) {
				delete(stuck, pid)
				changed = true
			}
		}
	}
	return circles(stuck)
}

// ends reports whether processes that are not stuck can end the wait.
func ends(w Wait, stuck map[int][]Wait) bool {
	free := 0
	for _, pid := range w.On {
		if stuck[pid] == nil {
			free++
		}
	}
	return w.Others || free >= w.Need || len(w.On) == 0
}

// circles returns disjoint circles in the graph of stuck processes: as a rule the shortest one of
// each knot.
func circles(stuck map[int][]Wait) []Deadlock {
	all := []Deadlock{}
	var pids []int
	for pid := range stuck {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	done := make(map[int]bool)
	for _, pid := range pids {
		c := circle(stuck, pid)
		if !slices.ContainsFunc(c, func(w Wait) bool { return !w.own() }) || // or there is none
			slices.ContainsFunc(c, func(w Wait) bool { return done[w.PID] }) {
			continue
		}
		for _, w := range c {
			done[w.PID] = true
		}
		all = append(all, Deadlock{Waits: c, Doubt: doubt(c)})
	}
	return all
}

// circle returns the shortest way from a process by others back to itself, or nil.
func circle(stuck map[int][]Wait, from int) []Wait {
	came := make(map[int][]Wait) // by which way first
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
