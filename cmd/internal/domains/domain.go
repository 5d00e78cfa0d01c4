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
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Domain is a Shoal program that runs, of this user. Sizes are in bytes.
//
// A program that is too old to be observed tells no more than its counters, its holders and its
// names: Version is 0 then.
type Domain struct {
	Address         string    `json:"address"`
	Error           string    `json:"error,omitempty"` // why it did not answer; then there are processes at most
	Version         int       `json:"version"`         // of the protocol of its shared memory
	Limit           int64     `json:"limit"`           // budget
	Committed       int64     `json:"committed"`       // of blocks in use, and of free ones that are kept warm
	Bytes           int64     `json:"bytes"`           // of blocks in use
	Blocks          int       `json:"blocks"`          // in use
	InTransit       int       `json:"in_transit"`      // references that messages hold
	Reaped          int       `json:"reaped"`          // processes that died and left something
	Dropped         int       `json:"dropped"`         // messages lost because their reader died
	Restarts        int       `json:"restarts"`        // processes that groups have started again
	Retries         int       `json:"retries"`         // tasks that pools have run again
	AllocsPerSecond float64   `json:"allocs_per_second"`
	CopiedPerSecond float64   `json:"copied_per_second"` // bytes
	Names           []string  `json:"names"`             // that are bound
	Processes       []Process `json:"processes"`         // the one that has the domain first

	Summary    arena.Summary          `json:"summary"`     // of its blocks
	Bound      map[string]arena.Bound `json:"bound"`       // blocks, by name
	Queues     []Queue                `json:"queues"`      // those with waiters first, then by depth
	QueuesLeft int                    `json:"queues_left"` // that are not listed
	Locks      []arena.LockView       `json:"locks"`       // those with waiters first, then those that are held
	LocksLeft  int                    `json:"locks_left"`  // that are not listed
	Loaders    []Loader               `json:"loaders"`     // that run, or have run
	Waits      []Wait                 `json:"waits"`       // the wait-for graph
	Deadlocks  []Deadlock             `json:"deadlocks"`   // that are suspected

	allocs, copied int64
}

// A Queue is a queue, a side of a pipe, or a Latest.
type Queue struct {
	arena.QueueView
	PutsPerSecond float64 `json:"puts_per_second"`
	GetsPerSecond float64 `json:"gets_per_second"`
	// Value is the number in a Latest of one. It is nil for all else, and for what is no finite
	// number, which JSON does not have.
	Value *float64 `json:"value,omitempty"`
}

// number returns what a Latest of a number has.
func number(q arena.QueueView) *float64 {
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

// Workers returns how many were started with a thread budget, and the sum of it.
func (d Domain) Workers() (n, threads int) {
	for _, p := range d.Processes[min(1, len(d.Processes)):] {
		if p.GOMAXPROCS > 0 {
			n++
			threads += p.GOMAXPROCS
		}
	}
	return n, threads
}

// Involuntary is how often its processes were sent away by the kernel, a second.
func (d Domain) Involuntary() (perSecond float64) {
	for _, p := range d.Processes {
		perSecond += p.InvoluntaryPerSecond
	}
	return perSecond
}

// Runnable is how many threads wanted a processor.
func (d Domain) Runnable() (n int) {
	for _, p := range d.Processes {
		n += p.Runnable
	}
	return n
}

// find asks all domains of this user.
func (w *Watcher) find(ctx context.Context, table map[int]sys.ProcessEntry) ([]Domain, error) {
	addresses, err := arena.Domains()
	if err != nil {
		return nil, err
	}
	all := []Domain{}
	type answer struct {
		o   arena.Observation
		err error
	}
	answers := make([]answer, len(addresses))
	var asked sync.WaitGroup // all at once: one that hangs is waited for, for seconds
	for i, addr := range addresses {
		asked.Go(func() { answers[i].o, answers[i].err = observe(ctx, addr, table) })
	}
	asked.Wait()
	for i, addr := range addresses {
		d := w.domain(addr, answers[i].o, answers[i].err, table)
		if errors.Is(answers[i].err, errStopped) {
			d.Processes = w.family(arena.Observation{Report: arena.Report{PID: answerer(addr)}}, table)
		}
		all = append(all, d)
	}
	w.forget(table)
	return all, nil
}

// errStopped is wrapped where the process that answers for a domain is stopped.
var errStopped = errors.New("is stopped")

// observe asks a domain. If the kernel says that its process is stopped, the answer is not waited
// for, as that of another one is for five seconds. It is asked all the same: where containers share
// a network, the number in its address may be that of a process which is not meant.
func observe(ctx context.Context, address string, table map[int]sys.ProcessEntry) (arena.Observation, error) {
	const soon = 50 * time.Millisecond // for one that is there
	pid := answerer(address)
	if s := table[pid].State; s != 'T' && s != 't' {
		return arena.Observe(ctx, address)
	}
	brief, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	o, err := arena.Observe(brief, address)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("process %d %w: kill -CONT %[1]d lets it go on", pid, errStopped)
	}
	return o, err
}

// answerer returns the process that answers at an address, @shoal/UID/PID-RANDOM, or 0 if the
// address names none.
func answerer(address string) int {
	number, _, _ := strings.Cut(address[strings.LastIndex(address, "/")+1:], "-")
	pid, _ := strconv.Atoi(number)
	return pid
}

// domain returns what an observation says, or why there is none.
func (w *Watcher) domain(address string, o arena.Observation, err error, table map[int]sys.ProcessEntry) Domain {
	if err != nil {
		return empty(Domain{Address: address, Error: err.Error()})
	}
	s := o.Stats
	d := empty(Domain{
		Address: address, Version: o.Version, Limit: s.Limit, Committed: s.Committed, Bytes: s.Bytes, Blocks: s.Blocks,
		InTransit: s.InTransit, Reaped: s.Reaped, Dropped: s.Dropped, Restarts: s.Restarts, Retries: s.Retries,
		Summary: o.Summary, Bound: o.Bound, QueuesLeft: o.QueuesLeft, LocksLeft: o.LocksLeft,
		allocs: s.Allocs, copied: s.Copied,
	})
	d.Names = append(d.Names, o.Names...)
	d.Locks = append(d.Locks, o.Locks...)
	for _, q := range o.Queues {
		d.Queues = append(d.Queues, Queue{QueueView: q, Value: number(q)})
	}
	for _, v := range o.Timelines {
		d.Loaders = append(d.Loaders, loader(v))
	}
	d.Processes = w.family(o, table)
	d.Waits = append(d.Waits, waits(o)...)
	return d
}

// empty gives a domain lists, which are none in JSON otherwise.
func empty(d Domain) Domain {
	d.Names, d.Processes, d.Queues, d.Locks = []string{}, []Process{}, []Queue{}, []arena.LockView{}
	d.Waits, d.Deadlocks, d.Loaders = []Wait{}, []Deadlock{}, []Loader{}
	return d
}
