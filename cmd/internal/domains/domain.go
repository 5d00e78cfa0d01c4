package domains

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Domain is a running Shoal program of the current user. Sizes are in bytes.
//
// A program of an old version reports only its counters, holders and names. Version is 0 then, and
// callers must not expect other fields to be set. If Error is set, only Address and Processes may
// be set as well.
type Domain struct {
	Address         string    `json:"address"`
	Error           string    `json:"error,omitempty"` // why it did not answer
	Version         int       `json:"version"`         // protocol version of the shared memory
	Limit           int64     `json:"limit"`           // memory budget
	Committed       int64     `json:"committed"`       // blocks in use and cached free blocks
	Bytes           int64     `json:"bytes"`           // blocks in use
	Blocks          int       `json:"blocks"`          // in use
	InTransit       int       `json:"in_transit"`      // references held by messages
	Reaped          int       `json:"reaped"`          // dead processes that had held references
	Dropped         int       `json:"dropped"`         // messages lost with their dead reader
	Restarts        int       `json:"restarts"`        // processes restarted by groups
	Retries         int       `json:"retries"`         // tasks retried by pools
	AllocsPerSecond float64   `json:"allocs_per_second"`
	CopiedPerSecond float64   `json:"copied_per_second"` // bytes
	Names           []string  `json:"names"`             // bound names
	Processes       []Process `json:"processes"`         // the root process first

	Summary    observe.Summary          `json:"summary"`     // of the blocks
	Bound      map[string]observe.Bound `json:"bound"`       // blocks by name
	Queues     []Queue                  `json:"queues"`      // those with waiters first, then by depth
	QueuesLeft int                      `json:"queues_left"` // number of unlisted queues
	Locks      []observe.LockView       `json:"locks"`       // those with waiters first, then held ones
	LocksLeft  int                      `json:"locks_left"`  // number of unlisted locks
	Loaders    []Loader                 `json:"loaders"`     // running and finished ones
	Waits      []Wait                   `json:"waits"`       // wait-for graph
	Deadlocks  []Deadlock               `json:"deadlocks"`   // suspected deadlocks

	allocs, copied int64
}

// A Queue is a queue, one direction of a pipe, or a Latest.
type Queue struct {
	observe.QueueView
	PutsPerSecond float64 `json:"puts_per_second"`
	GetsPerSecond float64 `json:"gets_per_second"`
	// Value is the number stored in a Latest of a number. It is nil for all other queues and for
	// NaN and infinities, which JSON cannot encode.
	Value *float64 `json:"value,omitempty"`
}

// latestNumber returns the number stored in a Latest[float64]. It returns nil for any other queue,
// and for NaN and infinities, which JSON cannot encode.
func latestNumber(q observe.QueueView) *float64 {
	if q.Label != "Latest[float64]" || len(q.News) == 0 {
		return nil
	}
	var d codec.Decoder
	d.Reset(codec.Message{Body: q.News}, nil)
	v, err := d.Float()
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Workers returns the number of workers that have a thread budget, and the sum of the budgets.
func (d Domain) Workers() (n, threads int) {
	for _, p := range d.Processes[min(1, len(d.Processes)):] {
		if p.GOMAXPROCS > 0 {
			n++
			threads += p.GOMAXPROCS
		}
	}
	return n, threads
}

// Involuntary returns the involuntary context switches per second of all processes.
func (d Domain) Involuntary() (perSecond float64) {
	for _, p := range d.Processes {
		perSecond += p.InvoluntaryPerSecond
	}
	return perSecond
}

// Runnable returns the number of threads that were running or ready to run.
func (d Domain) Runnable() (n int) {
	for _, p := range d.Processes {
		n += p.Runnable
	}
	return n
}

// find queries all domains of the current user in parallel. A domain that does not answer is in
// the result with its Error set.
func (w *Watcher) find(ctx context.Context, table map[int]sys.ProcessEntry) ([]Domain, error) {
	addresses, err := arena.Domains()
	if err != nil {
		return nil, err
	}
	all := []Domain{}
	type answer struct {
		o   observe.Observation
		err error
	}
	answers := make([]answer, len(addresses))
	var asked sync.WaitGroup // in parallel, because a hanging process takes seconds to time out
	for i, addr := range addresses {
		asked.Go(func() { answers[i].o, answers[i].err = observeDomain(ctx, addr, table) })
	}
	asked.Wait()
	for i, addr := range addresses {
		d := w.newDomain(addr, answers[i].o, answers[i].err, table)
		if errors.Is(answers[i].err, errStopped) {
			d.Processes = w.participants(observe.Observation{Report: arena.Report{PID: pidOfAddress(addr)}}, table)
		}
		all = append(all, d)
	}
	w.removeEnded(table)
	return all, nil
}

// errStopped is wrapped if the process that answers for a domain is stopped.
var errStopped = errors.New("is stopped")

// observeDomain queries a domain. If the kernel reports that its process is stopped, the timeout is
// 50 ms instead of five seconds, and an error wraps [errStopped]. The query is sent nevertheless:
// if containers share a network namespace, the process ID in the address may belong to another PID
// namespace.
func observeDomain(ctx context.Context, address string, table map[int]sys.ProcessEntry) (observe.Observation, error) {
	const soon = 50 * time.Millisecond // enough for a running process
	pid := pidOfAddress(address)
	if s := table[pid].State; s != 'T' && s != 't' {
		return arena.Observe(ctx, address)
	}
	brief, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	o, err := arena.Observe(brief, address)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("process %d %w: resume it with kill -CONT %[1]d", pid, errStopped)
	}
	return o, err
}

// pidOfAddress returns the process ID in an address of the form @shoal/UID/PID-RANDOM, or 0.
func pidOfAddress(address string) int {
	number, _, _ := strings.Cut(address[strings.LastIndex(address, "/")+1:], "-")
	pid, _ := strconv.Atoi(number)
	return pid
}

// newDomain converts an observation, or err if that is not nil. Rates are not set.
func (w *Watcher) newDomain(address string, o observe.Observation, err error, table map[int]sys.ProcessEntry) Domain {
	if err != nil {
		return withEmptyLists(Domain{Address: address, Error: err.Error()})
	}
	s := o.Stats
	d := withEmptyLists(Domain{
		Address: address, Version: o.Version, Limit: s.Limit, Committed: s.Committed, Bytes: s.Bytes, Blocks: s.Blocks,
		InTransit: s.InTransit, Reaped: s.Reaped, Dropped: s.Dropped, Restarts: s.Restarts, Retries: s.Retries,
		Summary: o.Summary, Bound: o.Bound, QueuesLeft: o.QueuesLeft, LocksLeft: o.LocksLeft,
		allocs: s.Allocs, copied: s.Copied,
	})
	d.Names = append(d.Names, o.Names...)
	d.Locks = append(d.Locks, o.Locks...)
	for _, q := range o.Queues {
		d.Queues = append(d.Queues, Queue{QueueView: q, Value: latestNumber(q)})
	}
	for _, v := range o.Timelines {
		d.Loaders = append(d.Loaders, newLoader(v))
	}
	d.Processes = w.participants(o, table)
	d.Waits = append(d.Waits, waitGraph(o)...)
	return d
}

// withEmptyLists returns d with all of its lists replaced by empty ones, so that JSON has [] and
// not null. It must be called before the lists are filled.
func withEmptyLists(d Domain) Domain {
	d.Names, d.Processes, d.Queues, d.Locks = []string{}, []Process{}, []Queue{}, []observe.LockView{}
	d.Waits, d.Deadlocks, d.Loaders = []Wait{}, []Deadlock{}, []Loader{}
	return d
}
