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

func defineFigure(f Figure) *Figure {
	all = append(all, &f)
	return &f
}

func defineGauge(name, unit, help string, labels ...string) *Figure {
	return defineFigure(Figure{Name: name, Unit: unit, Help: help, Labels: labels})
}

func defineCounter(name, unit, help string, labels ...string) *Figure {
	return defineFigure(Figure{Name: name, Unit: unit, Help: help, Counter: true, Labels: labels})
}

var (
	limit     = defineGauge("memory.limit", bytes, "Budget of shared memory.")
	committed = defineGauge("memory.committed", bytes, "Bytes charged to the budget: blocks in use, and idle blocks.")
	used      = defineGauge("memory.used", bytes, "Bytes of blocks in use.")
	idle      = defineGauge("memory.idle", bytes, "Bytes of free blocks that keep their pages for the next allocation.")
	held      = defineGauge("memory.held", bytes,
		"Bytes of the blocks that a process holds; several may hold a block.", "pid")
	blocks    = defineGauge("blocks", "{block}", "Blocks in use.", "kind")
	inTransit = defineGauge("blocks_in_transit", "{reference}", "References to blocks that unread messages hold.")
	allocs    = defineCounter("allocations", "{block}", "Blocks allocated, by all processes.")
	copied    = defineCounter("copied", bytes, "Bytes copied into or out of blocks.")
	processes = defineGauge("processes", "{process}", "Processes in the domain.", "state")
	reaped    = defineCounter("processes_reaped", "{process}",
		"Processes that died, and left something that was cleared away.")
	dropped  = defineCounter("messages_dropped", "{message}", "Messages lost because the process that read them died.")
	restarts = defineCounter("process_restarts", "{restart}",
		"Processes that groups have started again after a failure.")
	retries  = defineCounter("task_retries", "{retry}", "Tasks that pools have run again after the death of a worker.")
	depth    = defineGauge("queue.depth", "{message}", "Messages that wait in a named queue.", "queue")
	capacity = defineGauge("queue.capacity", "{message}", "Messages that a named queue can hold.", "queue")
	puts     = defineCounter("queue.puts", "{message}", "Messages put into a named queue.", "queue")
	gets     = defineCounter("queue.gets", "{message}", "Messages got from a named queue.", "queue")
	queueing = defineGauge("queue.waiting", "{process}", "Processes that wait at an end of a named queue.",
		"queue", "end")
	locking = defineGauge("lock.waiting", "{process}", "Processes that wait for a named lock.", "lock", "kind")
	locked  = defineGauge("lock.held", "{process}", "1 if a living process has a named lock, else 0.", "lock", "kind")
)
