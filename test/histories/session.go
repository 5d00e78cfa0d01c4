//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
)

const (
	objects  = 32                   // that a session's processes work on, one after the other
	interval = 2 * time.Millisecond // from the first operation on an object to the first one on the next
	opsEach  = 40                   // operations of a process on an object, at most
	capacity = 3                    // of a queue
	permits  = 2                    // of a semaphore
	keys     = 2                    // of a dict
)

// A job is the argument of a session's processes. Only the objects of one kind are in it.
type job struct {
	Kind       string
	Seed       uint64
	Kills      int    // the first processes of the group, which are killed
	Log        string // each process adds its rank
	Start      int64  // when the work on the first object begins, by the clock of now
	Queues     []*ipc.Queue[uint64]
	Latests    []*ipc.Latest[uint64]
	Dicts      []*manager.Dict[uint8, uint64]
	Mutexes    []*ipc.Mutex
	Semaphores []*ipc.Semaphore
}

// A kind is a kind of object, with its model and the operations on it. The variable kinds has
// all of them.
type kind struct {
	name  string
	model porcupine.Model
	// fill makes the objects of a session. m is a manager for those that need one.
	fill func(ctx context.Context, j *job, m *manager.Manager) error
	// work has one operation on object i, chosen at random.
	work func(c *client, ctx context.Context, i int) error
	// drain has the operations that show the object's last state.
	drain func(c *client, ctx context.Context, i int) error
}

var kinds = []kind{
	{"queue", queueModel(capacity), func(_ context.Context, j *job, _ *manager.Manager) error {
		return fill(&j.Queues, func() (*ipc.Queue[uint64], error) { return ipc.NewQueue[uint64](capacity) })
	}, (*client).queue, (*client).drainQueue},
	{"latest", latestModel(), func(_ context.Context, j *job, _ *manager.Manager) error {
		return fill(&j.Latests, func() (*ipc.Latest[uint64], error) { return ipc.NewLatest[uint64](0) })
	}, (*client).latest, (*client).load},
	{"dict", dictModel(), func(ctx context.Context, j *job, m *manager.Manager) error {
		return fill(&j.Dicts, func() (*manager.Dict[uint8, uint64], error) {
			return manager.NewDict[uint8, uint64](ctx, m)
		})
	}, (*client).dict, (*client).drainDict},
	{"mutex", mutexModel(), func(_ context.Context, j *job, _ *manager.Manager) error {
		return fill(&j.Mutexes, ipc.NewMutex)
	}, (*client).mutex, (*client).drainMutex},
	{"semaphore", semaphoreModel(permits), func(_ context.Context, j *job, _ *manager.Manager) error {
		return fill(&j.Semaphores, func() (*ipc.Semaphore, error) { return ipc.NewSemaphore(permits) })
	}, (*client).semaphore, (*client).drainSemaphore},
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// kindNamed returns the kind with a name of kindNames. It panics if there is none.
func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic("histories: no kind " + name)
}

func fill[T any](all *[]T, newObject func() (T, error)) error {
	for range objects {
		o, err := newObject()
		if err != nil {
			return err
		}
		*all = append(*all, o)
	}
	return nil
}

// closeObjects closes the objects of the session in this process.
func (j *job) closeObjects() (err error) {
	err = errors.Join(closeAll(j.Queues), closeAll(j.Latests), closeAll(j.Dicts))
	return errors.Join(err, closeAll(j.Mutexes), closeAll(j.Semaphores))
}

func closeAll[T interface{ Close() error }](all []T) (err error) {
	for _, o := range all {
		err = errors.Join(err, o.Close())
	}
	return err
}

// A session is a group of processes that work on the objects of one kind.
type session struct {
	kind      kind
	processes int
	kills     int
	seed      uint64
	out       string
	limit     time.Duration
}

// errNoOrder is the error for a history that the model does not explain.
var errNoOrder = errors.New("no order of the operations explains a history")

// run starts the processes, kills some, and checks the history of each object. It returns the
// counts of the session, and an error that wraps errNoOrder if no order explains a history.
func (s session) run(ctx context.Context) (c counts, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "histories")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	m, err := manager.New(ctx)
	if err != nil {
		return c, err
	}
	defer m.Close()
	j := job{
		Kind: s.kind.name, Seed: s.seed, Kills: min(s.kills, s.processes), Log: filepath.Join(dir, "log"),
		Start: now() + int64(200*time.Millisecond),
	}
	if err := s.kind.fill(ctx, &j, m); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, j.closeObjects()) }()

	g := shoal.NewGroup(ctx, shoal.Options{})
	random := rand.New(rand.NewPCG(s.seed, 1))
	deaths := map[int]int64{} // client to the time of its kill
	var processes []*shoal.Process
	for range s.processes {
		processes = append(processes, work.Go(g, j))
	}
	for n := range j.Kills {
		at := j.Start + random.Int64N(objects*int64(interval))
		time.Sleep(time.Duration(at - now()))
		deaths[n] = now()
		if err := processes[n].Kill(); err == nil {
			c.Kills++
		}
	}
	for n, p := range processes {
		if err := p.Wait(ctx); err != nil && deaths[n] == 0 {
			g.Close()
			return c, err
		}
	}
	g.Close()

	last, err := newClient(j, s.processes)
	if err != nil {
		return c, err
	}
	for i := range objects {
		last.recorder.object = i
		if err := s.kind.drain(last, ctx, i); err != nil {
			return c, fmt.Errorf("object %d: %w", i, err)
		}
	}
	err = s.check(j, deaths, &c)
	return c, err
}

// check reads the records of the processes, adds to c, and searches an order for each history.
// deaths has the times of the kills by process. For a history without an order it writes a page
// and returns an error that wraps errNoOrder.
func (s session) check(j job, deaths map[int]int64, c *counts) error {
	histories := make([][]porcupine.Operation, objects)
	for n := range s.processes + 1 {
		before := lengths(histories)
		pending, err := readHistories(logOf(j, n), histories)
		if errors.Is(err, os.ErrNotExist) && deaths[n] != 0 {
			continue // it was killed before it opened the file
		} else if err != nil {
			return err
		}
		c.Pending += pending
		if deaths[n] == 0 {
			continue
		}
		for i, h := range histories {
			own := h[before[i]:]
			if len(own) == 0 {
				continue
			}
			died := deaths[n]
			for _, o := range own {
				died = max(died, o.Call)
				if o.Return != math.MaxInt64 {
					died = max(died, o.Return)
				}
			}
			histories[i] = append(h, porcupine.Operation{ClientId: n, Call: died, Return: math.MaxInt64,
				Input: op{Client: uint8(n), Name: opDie}, Output: result{}})
		}
	}
	var failed error
	for i, h := range histories {
		c.Histories++
		c.Operations += len(h)
		c.Overlaps += overlaps(h)
		verdict, info := porcupine.CheckOperationsVerbose(s.kind.model, h, s.limit)
		switch verdict {
		case porcupine.Unknown:
			c.Undecided++
		case porcupine.Illegal:
			c.Lost++
			page := filepath.Join(s.out, fmt.Sprintf("%s-%d-%d.html", s.kind.name, s.seed, i))
			failed = errors.Join(failed,
				fmt.Errorf("%w: object %d, %d operations, see %s", errNoOrder, i, len(h), page),
				porcupine.VisualizePath(s.kind.model, info, page))
		}
	}
	return failed
}

func lengths(histories [][]porcupine.Operation) (ns []int) {
	for _, h := range histories {
		ns = append(ns, len(h))
	}
	return ns
}

// overlaps returns the number of operations that began before one of another client had returned.
func overlaps(h []porcupine.Operation) (n int) {
	h = slices.Clone(h)
	slices.SortFunc(h, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for i, o := range h {
		if slices.ContainsFunc(h[:i], func(p porcupine.Operation) bool {
			return p.ClientId != o.ClientId && p.Return >= o.Call && p.Return != math.MaxInt64
		}) {
			n++
		}
	}
	return n
}
