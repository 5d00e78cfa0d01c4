package bench

import (
	"context"
	"fmt"
	"time"
)

// A session measures the rows of groups and emits them.
type session struct {
	peer   *peer // nil without one
	quick  bool
	step   func(name string)
	emit   func(Result) error
	lull   time.Duration // pause before a noisy group is repeated
	before []Result
}

// A row is measured up to attempts times until it is not noisy, if it has a target. Between
// attempts, lull gives the machine time to become idle.
const (
	attempts = 3
	lull     = 5 * time.Second
)

// measure measures the rows of a group one after another, and emits each one as soon as it has
// been measured.
func (s *session) measure(ctx context.Context, suite string, g group) error {
	for i := range g.cases {
		r, err := s.measureRow(ctx, g.rounds, g.cases[i:i+1])
		if err != nil {
			return err
		}
		r.Suite = suite
		if c := g.cases[i]; c.Target != nil {
			r.Target, r.Met = c.Target(r, s.before)
		}
		s.before = append(s.before, r)
		if err := s.emit(r); err != nil {
			return err
		}
	}
	return nil
}

// measureRow measures a row, up to three times while its spread or the peer's exceeds [noisy],
// and returns the result of the least noisy attempt. A row without a target, or in a quick run,
// is measured once. row has one element.
func (s *session) measureRow(ctx context.Context, rounds int, row []Case) (Result, error) {
	quietest, err := s.measureRounds(ctx, rounds, row)
	for n := 1; err == nil && n < attempts && !s.quick && quietest.targetSpread() > noisy; n++ {
		s.step("waiting for a quiet minute")
		var m *measurement
		if err = sleepFor(ctx, s.lull); err != nil {
			break
		}
		if m, err = s.measureRounds(ctx, rounds, row); err == nil && m.targetSpread() < quietest.targetSpread() {
			quietest = m
		}
	}
	if err != nil {
		return Result{}, err
	}
	return quietest.result(), nil
}

// measureRounds warms up each measurement of a row once and then measures all of them
// alternately, in rounds rounds. It measures those marked once only in the first round and does
// not warm them up. row has one element.
func (s *session) measureRounds(ctx context.Context, rounds int, row []Case) (*measurement, error) {
	if s.quick {
		rounds = 1
	}
	m := newMeasurement(&row[0], s.peer)
	for round := range rounds + 1 {
		for _, t := range m.takes {
			warmUp := round == 0
			if t.once && round != 1 || warmUp && s.quick {
				continue
			}
			s.step(t.name)
			v, err := t.probe(ctx)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", t.name, err)
			}
			if !warmUp {
				t.samples = append(t.samples, v)
			}
		}
	}
	return m, nil
}

// A quantity is one measured quantity of a row, which is our work, the floor or an implementation
// of the peer, with its samples.
type quantity struct {
	name    string
	probe   func(ctx context.Context) (float64, error)
	once    bool
	samples []float64
}

// A measurement is the takes of one row.
type measurement struct {
	row   *Case
	takes []*quantity // all of the following
	ours  *quantity
	floor *quantity // nil for none
	peers []peerTake
}

type peerTake struct {
	name string // of the variant
	*quantity
}

func newMeasurement(c *Case, p *peer) *measurement {
	if c.Ours == nil && p != nil {
		c.Ours = &Probe{Measure: p.probe(c.Peer, ourVariant)}
	}
	if c.floorWork != nil && p != nil {
		c.Floor = &Probe{Measure: p.probe(c.floorWork, floorVariant)}
	}
	m := &measurement{row: c}
	m.ours = m.add(c.Name, c.Ours)
	if c.Floor != nil {
		m.floor = m.add(c.Name+", floor", c.Floor)
	}
	if c.Rival != nil {
		m.peers = append(m.peers, peerTake{c.Rival.Name, m.add(c.Name+", "+c.Rival.Name, c.Rival.Probe)})
	}
	if p == nil || c.Peer == nil {
		return m
	}
	for _, v := range p.variants(c.Peer.op) {
		t := m.add(c.Name+", "+v, &Probe{Measure: p.probe(c.Peer, v), Once: c.Peer.once})
		m.peers = append(m.peers, peerTake{p.name(v), t})
	}
	return m
}

func (m *measurement) add(name string, p *Probe) *quantity {
	t := &quantity{name: name, probe: p.Measure, once: p.Once}
	m.takes = append(m.takes, t)
	return t
}

func (m *measurement) result() Result {
	var floor []float64
	if m.floor != nil {
		floor = m.floor.samples
	}
	r := newResult(*m.row, m.ours.samples, floor)
	var variants []variant
	for _, t := range m.peers {
		variants = append(variants, variant{t.name, t.samples})
	}
	r.setPeer(variants)
	r.Noisy = r.largerSpread() > noisy
	return r
}

// targetSpread returns the larger spread of the row and its peer, or 0 for a row without a target.
func (m *measurement) targetSpread() float64 {
	if m.row.Target == nil {
		return 0
	}
	r := m.result()
	return r.largerSpread()
}
