package metrics

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shoal-mp/shoal/internal/shm"
)

// A Collector collects the metrics of the domain of this process, at each scrape. It is safe for
// several goroutines.
type Collector struct{}

// NewCollector returns a Collector, for a prometheus.Registerer. A registry takes one.
func NewCollector() *Collector { return &Collector{} }

// Handler returns a handler that answers a scrape with the metrics of this package alone.
func Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector())
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// A metric is a description with its type.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var all []metric

func define(kind prometheus.ValueType, name, help string, labels ...string) metric {
	m := metric{prometheus.NewDesc("shoal_"+name, help, labels, nil), kind}
	all = append(all, m)
	return m
}

func gauge(name, help string, labels ...string) metric {
	return define(prometheus.GaugeValue, name, help, labels...)
}

func counter(name, help string, labels ...string) metric {
	return define(prometheus.CounterValue, name, help, labels...)
}

var (
	limit     = gauge("memory_limit_bytes", "Budget of shared memory.")
	committed = gauge("memory_committed_bytes", "Bytes charged to the budget: blocks in use, and idle blocks.")
	used      = gauge("memory_used_bytes", "Bytes of blocks in use.")
	idle      = gauge("memory_idle_bytes", "Bytes of free blocks that keep their pages for the next allocation.")
	held      = gauge("memory_held_bytes", "Bytes of the blocks that a process holds; several may hold a block.", "pid")
	blocks    = gauge("blocks", "Blocks in use.", "kind")
	inTransit = gauge("blocks_in_transit", "References to blocks that unread messages hold.")
	allocs    = counter("allocations_total", "Blocks allocated, by all processes.")
	copied    = counter("copied_bytes_total", "Bytes copied into or out of blocks.")
	processes = gauge("processes", "Processes in the domain.", "state")
	reaped    = counter("processes_reaped_total", "Processes that died, and left something that was cleared away.")
	dropped   = counter("messages_dropped_total", "Messages lost because the process that read them died.")
	depth     = gauge("queue_depth", "Messages that wait in a named queue.", "queue")
	capacity  = gauge("queue_capacity", "Messages that a named queue can hold.", "queue")
	puts      = counter("queue_puts_total", "Messages put into a named queue.", "queue")
	gets      = counter("queue_gets_total", "Messages got from a named queue.", "queue")
	queueing  = gauge("queue_waiting", "Processes that wait at an end of a named queue.", "queue", "end")
	locking   = gauge("lock_waiting", "Processes that wait for a named lock.", "lock", "kind")
	locked    = gauge("lock_held", "1 if a living process has a named lock, else 0.", "lock", "kind")
)

// Describe sends the descriptions of all metrics.
func (*Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range all {
		out <- m.desc
	}
}

// Collect sends what the shared memory says now.
func (*Collector) Collect(out chan<- prometheus.Metric) {
	s := scrape{out}
	d := shm.Current()
	if d == nil {
		s.figures(shm.Stats{})
		return
	}
	o := d.Observe()
	s.figures(o.Stats)
	states := map[string]int{"live": 0, "joining": 0, "dead": 0}
	for _, p := range o.Participants {
		states[p.State]++
	}
	for state, n := range states {
		s.send(processes, float64(n), state)
	}
	for kind, n := range o.Summary.Kinds {
		s.send(blocks, float64(n.Blocks), kind)
	}
	sums := make(map[int]int64) // a process may have had two seats, of which one is being reaped
	for _, h := range o.Holders {
		sums[h.PID] += h.Bytes
	}
	for pid, n := range sums {
		s.send(held, float64(n), strconv.Itoa(pid))
	}
	s.named(&o)
}

// A scrape is one collection.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) send(m metric, v float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
}

func (s scrape) figures(f shm.Stats) {
	s.send(limit, float64(f.Limit))
	s.send(committed, float64(f.Committed))
	s.send(used, float64(f.Bytes))
	s.send(idle, float64(f.IdleBytes))
	s.send(inTransit, float64(f.InTransit))
	s.send(allocs, float64(f.Allocs))
	s.send(copied, float64(f.Copied))
	s.send(reaped, float64(f.Reaped))
	s.send(dropped, float64(f.Dropped))
}

// named sends what has a name. A value with two queues, such as a pipe, has its name twice: then
// the second one has "#2" behind it. What has several names is sent under the first.
func (s scrape) named(o *shm.Observation) {
	queues, locks := make(map[string]*shm.QueueView), make(map[string]*shm.LockView)
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
				s.queue(q, numbered(name, rings))
				delete(queues, block)
			}
			if l := locks[block]; l != nil {
				syncs++
				s.lock(l, numbered(name, syncs))
				delete(locks, block)
			}
		}
	}
}

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + "#" + strconv.Itoa(n)
}

func (s scrape) queue(q *shm.QueueView, name string) {
	s.send(depth, float64(q.Depth), name)
	s.send(capacity, float64(q.Capacity), name)
	s.send(puts, float64(q.Puts), name)
	s.send(gets, float64(q.Gets), name)
	s.send(queueing, float64(len(q.Senders.Waiting)), name, "send")
	s.send(queueing, float64(len(q.Receivers.Waiting)), name, "receive")
}

func (s scrape) lock(l *shm.LockView, name string) {
	s.send(locking, float64(len(l.Waiting)), name, l.Kind)
	has := 0.
	if l.Owner != 0 && !l.Dead {
		has = 1
	}
	s.send(locked, has, name, l.Kind)
}
