package bench

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal/manager"
)

// managerRows starts a manager in another process and returns rows of calls to it.
func managerRows(ctx context.Context, h *environment) (group, error) {
	m, err := newManaged(ctx)
	if err != nil {
		return group{}, err
	}
	g, err := pairedGroup(ctx, h, 15, func(p *pair) []Case {
		peer := &peerWork{op: "manager_call", Rounds: h.scaleRounds(500)}
		return []Case{
			{
				Name: "manager_call", Unit: Nanoseconds,
				Ours:   &Probe{Measure: m.measureCalls(h.spinRounds(10_000), m.callServer)},
				Floor:  p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)}),
				Target: timesPeer(5, atMost(5.8e3, "5.8 µs")),
				Peer:   peer,
			},
			{
				Name: "manager_call_parked", Unit: Nanoseconds,
				Ours:   &Probe{Measure: m.measureParkedCalls(h.scaleRounds(200))},
				Floor:  p.probe(order{Work: "eventfd_parked", Rounds: h.scaleRounds(300)}),
				Target: overFloor(1.5),
			},
			{
				Name: "manager_read", Unit: Nanoseconds,
				Ours:   &Probe{Measure: m.measureCalls(h.scaleRounds(1_000_000), m.read)},
				Target: timesPeer(20, atMost(1.45e3, "1.45 µs")),
				Peer:   &peerWork{op: "manager_read", Rounds: h.scaleRounds(500)},
			},
		}
	})
	if err != nil {
		return g, errors.Join(err, m.close())
	}
	closePair := g.close
	g.close = func() error { return errors.Join(closePair(), m.close()) }
	return g, nil
}

// managed is a manager and the objects that are called. [newManaged] starts it, and the caller
// must call its close method.
type managed struct {
	m     *manager.Manager
	list  *manager.List[int]
	value *manager.Value[int]
}

func newManaged(ctx context.Context) (_ *managed, err error) {
	m := new(managed)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.m, err = manager.Start(ctx); err != nil {
		return m, err
	}
	if m.list, err = manager.NewList(ctx, m.m, 1); err != nil {
		return m, err
	}
	m.value, err = manager.NewValue(ctx, m.m, 1)
	return m, err
}

func (m *managed) callServer(ctx context.Context) error {
	_, err := m.list.Get(ctx, 0)
	return err
}

func (m *managed) read(ctx context.Context) error {
	_, err := m.value.Get(ctx)
	return err
}

// measureCalls returns a function that makes rounds consecutive calls and returns their mean
// duration in nanoseconds.
func (m *managed) measureCalls(rounds int, call func(ctx context.Context) error) func(context.Context) (float64,
	error) {
	return func(ctx context.Context) (float64, error) {
		d, err := timeRounds(rounds, func() error { return call(ctx) })
		return float64(d) / float64(rounds), err
	}
}

// measureParkedCalls returns a function that measures the nanoseconds per call to a server that is
// asleep before each of the calls.
func (m *managed) measureParkedCalls(rounds int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		var waited time.Duration
		d, err := timeRounds(rounds, func() error {
			waited += spinFor(untilAsleep)
			return m.callServer(ctx)
		})
		return float64(d-waited) / float64(rounds), err
	}
}

func (m *managed) close() (err error) {
	if m.value != nil {
		err = errors.Join(err, m.value.Close())
	}
	if m.list != nil {
		err = errors.Join(err, m.list.Close())
	}
	if m.m != nil {
		err = errors.Join(err, m.m.Close())
	}
	return err
}
