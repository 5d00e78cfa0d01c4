package figures

import (
	"maps"
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/observe"
)

// Read calls tell with the current value of each metric of this process's domain. labels are the
// label values, in the order of the figure's Labels. If the process has no domain yet, the
// metrics without labels are zero, and the others have no values.
func Read(tell func(f *Figure, v int64, labels ...string)) {
	r := reading(tell)
	d := arena.Current()
	if d == nil {
		r.readStats(arena.Stats{})
		return
	}
	o := d.Observe()
	r.readStats(o.Stats)
	states := map[string]int64{"live": 0, "joining": 0, "dead": 0}
	for _, p := range o.Participants {
		states[p.State]++
	}
	for state, n := range states {
		r(processes, n, state)
	}
	for kind, n := range o.Summary.Kinds {
		r(blocks, int64(n.Blocks), kind)
	}
	sums := make(map[int]int64) // a process may have two seats while one of them is being reaped
	for _, h := range o.Holders {
		sums[h.PID] += h.Bytes
	}
	for pid, n := range sums {
		r(held, n, strconv.Itoa(pid))
	}
	r.readNamed(&o)
}

// A reading is a function that receives each value.
type reading func(f *Figure, v int64, labels ...string)

func (r reading) readStats(s arena.Stats) {
	r(limit, s.Limit)
	r(committed, s.Committed)
	r(used, s.Bytes)
	r(idle, s.IdleBytes)
	r(inTransit, int64(s.InTransit))
	r(allocs, int64(s.Allocs))
	r(copied, int64(s.Copied))
	r(reaped, int64(s.Reaped))
	r(dropped, int64(s.Dropped))
	r(restarts, int64(s.Restarts))
	r(retries, int64(s.Retries))
}

// readNamed reports the queues and locks with a name. If a value contains several queues, for
// example a pipe, the second one is reported with the suffix "#2". A queue with several names is
// reported under the first one in sorted order.
func (r reading) readNamed(o *observe.Observation) {
	queues, locks := make(map[string]*observe.QueueView), make(map[string]*observe.LockView)
	for i := range o.Queues {
		queues[o.Queues[i].Block] = &o.Queues[i]
	}
	for i := range o.Locks {
		locks[o.Locks[i].Block] = &o.Locks[i]
	}
	for _, name := range slices.Sorted(maps.Keys(o.Bound)) {
		var rings, syncs int
		for _, block := range o.Bound[name].Blocks {
			if q := queues[block]; q != nil {
				rings++
				r.readQueue(q, numberedName(name, rings))
				delete(queues, block)
			}
			if l := locks[block]; l != nil {
				syncs++
				r.readLock(l, numberedName(name, syncs))
				delete(locks, block)
			}
		}
	}
}

func numberedName(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + "#" + strconv.Itoa(n)
}

func (r reading) readQueue(q *observe.QueueView, name string) {
	r(depth, int64(q.Depth), name)
	r(capacity, int64(q.Capacity), name)
	r(puts, int64(q.Puts), name)
	r(gets, int64(q.Gets), name)
	r(queueing, int64(len(q.Senders.Waiting)), name, "send")
	r(queueing, int64(len(q.Receivers.Waiting)), name, "receive")
}

func (r reading) readLock(l *observe.LockView, name string) {
	r(locking, int64(len(l.Waiting)), name, l.Kind)
	has := int64(0)
	if l.Owner != 0 && !l.Dead {
		has = 1
	}
	r(locked, has, name, l.Kind)
}
