package bench

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/ipc"
)

var syncing = Suite{
	Name: "sync",
	Doc:  "synchronization: locks, events, semaphores, barriers, shared numbers, pools",
	peer: "torch_core.py",
	groups: []func(context.Context, *environment) (group,
		error){lockRows, spinRows, napRows, nearRows, parkRows, poolStartRows, poolRows, managerRows},
}

// tools holds the synchronization objects that the two processes of a pair share.
type tools struct {
	Mutex   *ipc.Mutex
	Value   *ipc.Value[float64]
	Events  [2]*ipc.Event // set by the first process and by the second
	Sems    [2]*ipc.Semaphore
	Barrier *ipc.Barrier
}

func (p *pair) newTools() (t *tools, err error) {
	t = new(tools)
	if t.Mutex, err = ipc.NewMutex(); err != nil {
		return nil, err
	}
	p.addUndo(t.Mutex.Close)
	if t.Value, err = ipc.NewValue(0.0); err != nil {
		return nil, err
	}
	p.addUndo(t.Value.Close)
	for i := range t.Events {
		if t.Events[i], err = ipc.NewEvent(); err != nil {
			return nil, err
		}
		p.addUndo(t.Events[i].Close)
		if t.Sems[i], err = ipc.NewSemaphore(0); err != nil {
			return nil, err
		}
		p.addUndo(t.Sems[i].Close)
	}
	if t.Barrier, err = ipc.NewBarrier(2); err != nil {
		return nil, err
	}
	p.addUndo(t.Barrier.Close)
	return t, nil
}

// divideProbe returns a probe of the value of p divided by n, the number of counted operations in
// one round.
func divideProbe(n float64, p *Probe) *Probe {
	return &Probe{Measure: func(ctx context.Context) (float64, error) {
		ns, err := p.Measure(ctx)
		return ns / n, err
	}, Once: p.Once}
}

func lockRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 21, func(p *pair) []Case {
		cas := p.probe(order{Work: "cas_pair", Rounds: h.scaleRounds(1_000_000)})
		return []Case{
			{
				Name: "mutex_uncontended", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "mutex", Rounds: h.scaleRounds(1_000_000)}),
				Floor:  cas,
				Target: overFloor(5),
				Peer:   h.partnerWork("mutex_uncontended", h.scaleRounds(100_000)),
			},
			{
				Name: "mutex_contended_2", Unit: Nanoseconds,
				Ours:   divideProbe(2, p.probe(order{Work: "mutex_contended", Rounds: h.spinRounds(200_000)})),
				Floor:  p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)}),
				Target: timesPeer(1),
				Peer:   h.partnerWork("mutex_contended_2", h.scaleRounds(100_000)),
			},
			{
				Name: "value_add", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "value_add", Rounds: h.scaleRounds(1_000_000)}),
				Floor:  cas,
				Target: timesPeer(1),
				Peer:   h.partnerWork("value_add", h.scaleRounds(100_000)),
			},
			{
				Name: "value_add_2", Unit: Nanoseconds,
				Ours:   divideProbe(2, p.probe(order{Work: "value_add_2", Rounds: h.spinRounds(200_000)})),
				Floor:  p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)}),
				Target: timesPeer(1),
				Peer:   h.partnerWork("value_add_2", h.scaleRounds(100_000)),
			},
		}
	})
}

func spinRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		line := p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)})
		row := func(name, work string, n float64, peer string) Case {
			return Case{
				Name: name, Unit: Nanoseconds,
				Ours:   divideProbe(n, p.probe(order{Work: work, Rounds: h.spinRounds(20_000)})),
				Floor:  line,
				Target: timesPeer(50),
				Peer:   h.partnerWork(peer, h.scaleRounds(2000)),
			}
		}
		return []Case{
			row("event_rtt_spin", "event_rtt", 1, "event_rtt"),
			row("semaphore_rtt_spin", "semaphore_rtt", 1, "semaphore_rtt"),
			row("barrier_cycle_spin", "barrier_cycles", 2, "barrier_cycle"),
		}
	})
}

// partnerWork returns a request for the operation op between two processes of the peer, on the
// processors of our pair.
func (h *environment) partnerWork(op string, rounds int) *peerWork {
	return &peerWork{op: op, Rounds: rounds, Args: h.cpus[:]}
}

// sleepingPartnerWork is like partnerWork, but each process pauses for pause before it notifies
// the other, as on our side.
func (h *environment) sleepingPartnerWork(op string, rounds int, pause time.Duration) *peerWork {
	return &peerWork{op: op, Rounds: rounds, Args: append(h.cpus[:], int(pause))}
}

func napRows(ctx context.Context, h *environment) (group, error) { return sleeperGroup(ctx, h, "") }

// parkRows returns rows of sides that wait long enough to be parked.
func parkRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		work := func(name string) *Probe {
			return p.probe(order{Work: name, Rounds: h.scaleRounds(60), Pause: untilParked})
		}
		return []Case{{
			Name: "event_rtt_2ms", Unit: Nanoseconds,
			Ours:   work("event_parked"),
			Floor:  work("eventfd_parked"),
			Target: overFloor(1.3),
			Peer:   h.sleepingPartnerWork("event_rtt", h.scaleRounds(60), untilParked),
		}}
	})
}

// nearRows returns rows of both processes on one processor, where the kernel tends to place two
// processes that alternate.
func nearRows(ctx context.Context, h *environment) (group, error) {
	near := *h
	near.cpus[1] = near.cpus[0]
	return sleeperGroup(ctx, &near, "_near")
}

func sleeperGroup(ctx context.Context, h *environment, where string) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		bell := p.probe(order{Work: "eventfd_parked", Rounds: h.scaleRounds(300)})
		row := func(name, work string, n, limit float64) Case {
			return Case{
				Name: name + where, Unit: Nanoseconds,
				Ours:   divideProbe(n, p.probe(order{Work: work, Rounds: h.scaleRounds(300)})),
				Floor:  divideProbe(n, bell),
				Target: bothTargets(overFloor(limit), timesPeer(2)),
				Peer:   h.sleepingPartnerWork(name, h.scaleRounds(600), untilAsleep),
			}
		}
		return []Case{
			row("event_rtt", "event_parked", 1, 1.3),
			row("semaphore_rtt", "semaphore_parked", 1, 1.3),
			row("barrier_cycle", "barrier_parked", 2, 1.5), // two cycles with one wake-up each
		}
	})
}

// symmetricWork returns a work: both sides call f at the same time. Its duration ends
// when both calls have returned.
func symmetricWork(f func(s *side, o order) error) work {
	return work{
		lead: func(s *side, o order) (time.Duration, error) {
			if err := s.syncSides(); err != nil {
				return 0, err
			}
			begin := time.Now()
			err := f(s, o)
			if err == nil {
				err = s.syncSides() // wait for the other side
			}
			return time.Since(begin), err
		},
		follow: func(s *side, o order) (time.Duration, error) {
			if err := s.syncSides(); err != nil {
				return 0, err
			}
			if err := f(s, o); err != nil {
				return 0, err
			}
			return 0, s.syncSides()
		},
	}
}

func lockRounds(s *side, o order) error {
	for range o.Rounds {
		if err := s.tools.Mutex.Lock(s.ctx); err != nil {
			return err
		}
		if err := s.tools.Mutex.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func addRounds(s *side, o order) error {
	for range o.Rounds {
		if _, err := s.tools.Value.Add(1); err != nil {
			return err
		}
	}
	return nil
}

// soloWork returns a work: only the first side calls f. Its duration is the duration of
// that call.
func soloWork(f func(s *side, o order) error) work {
	return work{lead: func(s *side, o order) (time.Duration, error) {
		begin := time.Now()
		err := f(s, o)
		return time.Since(begin), err
	}}
}

// casPair performs o.Rounds pairs of compare-and-swap operations on an uncontended word, which
// is the lower bound for locking and unlocking.
func casPair(s *side, o order) error {
	w := s.ownWord(signals)
	w.Store(0)
	for range o.Rounds {
		w.CompareAndSwap(0, 1)
		w.CompareAndSwap(1, 0)
	}
	return nil
}

// A turn is a way for one side to notify the other and to wait for its notification.
type turn struct {
	tell, await func(s *side) error
}

var (
	byEvent = turn{
		tell: func(s *side) error { return s.tools.Events[s.rank].Set() },
		await: func(s *side) error {
			e := s.tools.Events[1-s.rank]
			if err := e.Wait(s.ctx); err != nil {
				return err
			}
			return e.Clear()
		},
	}
	bySemaphore = turn{
		tell:  func(s *side) error { return s.tools.Sems[s.rank].Release() },
		await: func(s *side) error { return s.tools.Sems[1-s.rank].Acquire(s.ctx) },
	}
	byBarrier = turn{tell: crossBarrier, await: crossBarrier}
)

func crossBarrier(s *side) error {
	_, err := s.tools.Barrier.Wait(s.ctx)
	return err
}

// spinningWork returns a work of o.Rounds round trips between sides that wait for each other
// without a pause, so they spin.
func (t turn) spinningWork() work {
	return work{
		lead: func(s *side, o order) (time.Duration, error) {
			if err := s.syncSides(); err != nil {
				return 0, err
			}
			return timeRounds(o.Rounds, func() error {
				if err := t.tell(s); err != nil {
					return err
				}
				return t.await(s)
			})
		},
		follow: func(s *side, o order) (time.Duration, error) {
			if err := s.syncSides(); err != nil {
				return 0, err
			}
			return repeatRounds(o.Rounds, func() error {
				if err := t.await(s); err != nil {
					return err
				}
				return t.tell(s)
			})
		},
	}
}

// parkedWork returns a work of o.Rounds round trips between sides that are asleep, in a nap or
// parked according to o.Pause; see [side.leadAsleep].
func (t turn) parkedWork() work {
	return work{
		lead: func(s *side, o order) (time.Duration, error) {
			return s.leadAsleep(o, func() error { return t.tell(s) }, func() error { return t.await(s) })
		},
		follow: func(s *side, o order) (time.Duration, error) {
			return s.followAsleep(o, func() error { return t.tell(s) }, func() error { return t.await(s) })
		},
	}
}
