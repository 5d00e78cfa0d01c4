package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
)

var many = Suite{
	Name: "many",
	Doc:  "the same work beside few and beside many open objects: queues, connections, blocks, processes",
	peer: "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){
		queueRows("10", 10), queueRows("1k", 1000), queueRows("10k", 10_000), queueRows("30k", 30_000),
		dialRow("10", 10), dialRow("3k", 3000),
		besideRows,
		spawnBlocksRow("1k", 1000, nil),
		spawnBlocksRow("1M", 1_000_000, atMost(10e6, "10 ms")),
		largeQueueRow, idleProcessesRow,
	},
}

// flat is the maximum ratio of a row beside many objects to the same row beside 10.
const flat = 1.3

// beside10 returns the target of the row name beside amount other objects: at most flat times
// the row beside 10. It returns nil, for no target, if amount is "10".
func beside10(name, amount string) Target {
	if amount == "10" {
		return nil
	}
	return atMostTimes(name+"_10", flat)
}

// queueRows returns a constructor of the rows of NewQueue and of Close of a queue while n others
// are open. text is n in the names of the rows.
func queueRows(text string, n int) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		open, err := openQueues(h.scaleRounds(n))
		if err != nil {
			return group{}, errors.Join(err, closeQueues(open))
		}
		rounds := h.scaleRounds(50)
		opened, closed := new(float64), new(float64)
		measure := func(ctx context.Context) error {
			begin := time.Now()
			more, err := openQueues(rounds)
			*opened = float64(time.Since(begin)) / float64(rounds)
			begin = time.Now()
			err = errors.Join(err, closeQueues(more))
			*closed = float64(time.Since(begin)) / float64(rounds)
			return err
		}
		row := func(name string, v *float64) Case {
			return Case{Name: name + "_" + text, Unit: Nanoseconds, Target: beside10(name, text),
				Ours: &Probe{Measure: func(ctx context.Context) (float64, error) {
					err := measure(ctx)
					return *v, err
				}}}
		}
		return group{rounds: 7, close: func() error { return closeQueues(open) },
			cases: []Case{row("queue_new", opened), row("queue_close", closed)}}, nil
	}
}

// openQueues opens n queues. If it fails, it returns those that it has opened with the error.
// The caller must close the queues in both cases.
func openQueues(n int) (open []*ipc.Queue[int], err error) {
	for range n {
		q, err := ipc.NewQueue[int](1)
		if err != nil {
			return open, err
		}
		open = append(open, q)
	}
	return open, nil
}

// closeQueues closes the queues, the last one first.
func closeQueues(open []*ipc.Queue[int]) (err error) {
	for i := len(open) - 1; i >= 0; i-- {
		err = errors.Join(err, open[i].Close())
	}
	return err
}

// host accepts connections until its context ends.
var host = shoal.Register("bench host", func(ctx context.Context, _ int, started *ipc.Sender[string]) error {
	l, err := ipc.Listen[int]("@shoal-bench-host-"+fmt.Sprint(time.Now().UnixNano()), dialKey)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := errors.Join(started.Put(ctx, l.Addr()), started.Close()); err != nil {
		return err
	}
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return nil
		}
		defer c.Close()
	}
})

var dialKey = []byte("shoal bench")

// dialRow returns a constructor of the row of Dial and Close of a connection while n others are
// open. text is n in the name of the row.
func dialRow(text string, n int) func(context.Context, *environment) (group, error) {
	return func(ctx context.Context, h *environment) (_ group, err error) {
		q, err := ipc.NewQueue[string](1)
		if err != nil {
			return group{}, err
		}
		defer q.Close()
		g := shoal.NewGroup(ctx, shoal.Options{Workers: 1})
		var open []*ipc.Conn[int]
		end := func() (err error) {
			for _, c := range open {
				err = errors.Join(err, c.Close())
			}
			if e := g.Close(); e != nil && !errors.Is(e, context.Canceled) {
				err = errors.Join(err, e)
			}
			return err
		}
		host.Go(g, q.Sender())
		addr, err := q.Get(ctx)
		for i := 0; err == nil && i < h.scaleRounds(n); i++ {
			var c *ipc.Conn[int]
			if c, err = ipc.Dial[int](ctx, addr, dialKey); err == nil {
				open = append(open, c)
			}
		}
		if err != nil {
			return group{}, errors.Join(err, end())
		}
		return group{rounds: 7, close: end, cases: []Case{{
			Name: "dial_" + text, Unit: Nanoseconds, Target: beside10("dial", text),
			Ours: &Probe{Measure: perRound(h.scaleRounds(20), func(ctx context.Context) error {
				c, err := ipc.Dial[int](ctx, addr, dialKey)
				if err != nil {
					return err
				}
				return c.Close()
			})},
		}}}, nil
	}
}

// A crowd is the other open queues of a process, each with a parked receiver if parked is set.
// The zero crowd has none. Only one goroutine may use a crowd.
type crowd struct {
	open   []*ipc.Queue[int]
	parked bool
	wait   sync.WaitGroup
}

// resize makes the crowd have n queues, each with a goroutine parked in Get if parked is set. It
// closes all earlier queues and opens new ones, unless the crowd is like that already.
func (c *crowd) resize(ctx context.Context, n int, parked bool) error {
	if len(c.open) == n && c.parked == parked {
		return nil
	}
	err := closeQueues(c.open)
	c.wait.Wait()
	c.open, c.parked = nil, parked
	if err != nil {
		return err
	}
	if c.open, err = openQueues(n); err != nil || !parked {
		return err
	}
	for _, q := range c.open {
		c.wait.Go(func() { q.Get(ctx) }) // ends when the queue is closed
	}
	return sleepFor(ctx, 100*time.Millisecond)
}

// besideWork returns a round trip between parked processes that each have o.Size other queues.
// If parked is set, a goroutine waits in Get on each of these queues.
func besideWork(parked bool) work {
	beside := func(do func(*side, order) (time.Duration, error)) func(*side, order) (time.Duration, error) {
		return func(s *side, o order) (time.Duration, error) {
			if err := s.others.resize(s.ctx, o.Size, parked); err != nil {
				return 0, err
			}
			return do(s, o)
		}
	}
	return work{beside(leadHandleParked), beside(followHandleParked)}
}

// besideRows returns rows of a parked round trip while both processes have other queues.
func besideRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 5, func(p *pair) (cases []Case) {
		for _, kind := range []string{"parked_rtt", "parked_rtt_waiters"} {
			for _, a := range []amount{{"10", 10}, {"1k", 1000}, {"5k", 5000}} {
				o := order{Work: kind, Size: h.scaleRounds(a.n), Rounds: h.scaleRounds(100), Pause: untilParked}
				cases = append(cases, Case{Name: kind + "_" + a.name, Unit: Nanoseconds,
					Target: beside10(kind, a.name), Ours: p.probe(o)})
			}
		}
		return cases
	})
}

var nothing = shoal.Register("bench nothing", func(context.Context, int, struct{}) error { return nil })

// spawnBlocksRow returns a constructor of the row of Spawn of a process that returns at once, in
// a domain with n blocks. text is n in the name of the row.
func spawnBlocksRow(text string, n int, target Target) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		var blocks []arena.Handle
		end := func() (err error) {
			for _, b := range blocks {
				err = errors.Join(err, h.domain.Release(b))
			}
			return err
		}
		for range h.scaleRounds(n) {
			b, err := h.domain.Alloc(small)
			if err != nil {
				return group{}, errors.Join(err, end())
			}
			blocks = append(blocks, b)
		}
		return group{rounds: 11, close: end, cases: []Case{{
			Name: "spawn_blocks_" + text, Unit: Nanoseconds, Target: target,
			Ours: &Probe{Measure: perRound(1, func(ctx context.Context) error {
				return nothing.Spawn(ctx, 1, struct{}{})
			})},
		}}}, nil
	}
}

// largeQueueRow returns a row of NewQueue of a queue with a million slots.
func largeQueueRow(_ context.Context, h *environment) (group, error) {
	return group{rounds: 7, cases: []Case{{
		Name: "queue_new_1M_slots", Unit: Nanoseconds, Target: atMost(5e6, "5 ms"),
		Ours: &Probe{Measure: func(context.Context) (float64, error) {
			begin := time.Now()
			q, err := ipc.NewQueue[int](1 << 20)
			took := time.Since(begin)
			if err != nil {
				return 0, err
			}
			return float64(took), q.Close()
		}},
	}}}, nil
}

// idleProcessesRow returns a row of the start and the end of 200 processes that wait meanwhile,
// divided by their number.
func idleProcessesRow(_ context.Context, h *environment) (group, error) {
	n := 200
	if h.quick {
		n = 2
	}
	return group{rounds: 3, cases: []Case{{
		Name: "idle_process_200", Unit: Nanoseconds, Target: atMost(3e6, "3 ms"),
		Ours: divideProbe(float64(n), &Probe{Measure: perRound(1, func(ctx context.Context) error {
			return startBrood(ctx, shoal.SpawnStart, n, func(time.Duration, []*shoal.Process) error { return nil })
		})}),
	}}}, nil
}
