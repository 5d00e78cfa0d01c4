package figures

import "strings"

// A Figure describes a metric.
type Figure struct {
	Name    string // words separated by dots, as in OpenTelemetry
	Unit    string // UCUM unit, as in OpenTelemetry
	Help    string
	Counter bool     // monotonically increasing
	Labels  []string // names of the labels
}

// Prometheus returns the name of the metric in Prometheus, with suffixes for the unit and for a
// counter. It equals the name that the Prometheus exporter of OpenTelemetry generates.
func (f *Figure) Prometheus() string {
	name := "shoal_" + strings.ReplaceAll(f.Name, ".", "_")
	if f.Unit == bytes {
		name += "_bytes"
	}
	if f.Counter {
		name += "_total"
	}
	return name
}

const bytes = "By"

var all []*Figure

// All returns all metrics. The caller must not modify the slice.
func All() []*Figure { return all }

func define(f Figure) *Figure {
	all = append(all, &f)
	return &f
}

func gauge(name, unit, help string, labels ...string) *Figure {
	return define(Figure{Name: name, Unit: unit, Help: help, Labels: labels})
}

func counter(name, unit, help string, labels ...string) *Figure {
	return define(Figure{Name: name, Unit: unit, Help: help, Counter: true, Labels: labels})
}

var (
	limit     = gauge("memory.limit", bytes, "Budget of shared memory.")
	committed = gauge("memory.committed", bytes, "Bytes charged to the budget: blocks in use, and idle blocks.")
	used      = gauge("memory.used", bytes, "Bytes of blocks in use.")
	idle      = gauge("memory.idle", bytes, "Bytes of free blocks that keep their pages for the next allocation.")
	held      = gauge("memory.held", bytes, "Bytes of the blocks that a process holds; several may hold a block.", "pid")
	blocks    = gauge("blocks", "{block}", "Blocks in use.", "kind")
	inTransit = gauge("blocks_in_transit", "{reference}", "References to blocks that unread messages hold.")
	allocs    = counter("allocations", "{block}", "Blocks allocated, by all processes.")
	copied    = counter("copied", bytes, "Bytes copied into or out of blocks.")
	processes = gauge("processes", "{process}", "Processes in the domain.", "state")
	reaped    = counter("processes_reaped", "{process}", "Processes that died, and left something that was cleared away.")
	dropped   = counter("messages_dropped", "{message}", "Messages lost because the process that read them died.")
	restarts  = counter("process_restarts", "{restart}", "Processes that groups have started again after a failure.")
	retries   = counter("task_retries", "{retry}", "Tasks that pools have run again after the death of a worker.")
	depth     = gauge("queue.depth", "{message}", "Messages that wait in a named queue.", "queue")
	capacity  = gauge("queue.capacity", "{message}", "Messages that a named queue can hold.", "queue")
	puts      = counter("queue.puts", "{message}", "Messages put into a named queue.", "queue")
	gets      = counter("queue.gets", "{message}", "Messages got from a named queue.", "queue")
	queueing  = gauge("queue.waiting", "{process}", "Processes that wait at an end of a named queue.", "queue", "end")
	locking   = gauge("lock.waiting", "{process}", "Processes that wait for a named lock.", "lock", "kind")
	locked    = gauge("lock.held", "{process}", "1 if a living process has a named lock, else 0.", "lock", "kind")
)
