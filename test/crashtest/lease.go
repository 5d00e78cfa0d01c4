//go:build shoalcrash

package main

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/arena"
)

// leaseScenarios returns, by name, the scenarios for leased messages. A message must not be lost
// before its lease is acknowledged, so these scenarios drop at most one: the victim may die
// during an acknowledgement.
func leaseScenarios() map[string]*scenario {
	filled := func(w *world) error { return errors.Join(rings(8)(w), fills(4, 2, 0)(w)) }
	spilled := func(w *world) error { return errors.Join(rings(8)(w), fills(3, 6, 1000)(w)) }
	return map[string]*scenario{
		"lease and return":         {setup: filled, prep: opens(1), act: leasesAndReturns},
		"lease and return spilled": {setup: spilled, prep: opens(1), act: leasesAndReturns},
		"lease and acknowledge":    {drops: 1, setup: filled, prep: opens(1), act: leases(3)},
		"lease and acknowledge spilled": {
			drops: 1, setup: spilled, prep: opens(1), act: leases(2),
		},
		"lease past a dead lease": {
			drops: 1,
			setup: func(w *world) error {
				return errors.Join(filled(w), w.kill("lease and return", "Ring.claimOldest", "CAS", "after"))
			},
			prep: opens(1), act: leases(2),
		},
		"get what was returned": {
			drops: 1,
			setup: func(w *world) error { return errors.Join(filled(w), returns(w.d, w.rings[0])) },
			prep:  opens(1), act: gets(3),
		},
		"lease a message that was returned": {
			drops: 1,
			setup: func(w *world) error { return errors.Join(filled(w), returns(w.d, w.rings[0])) },
			prep:  opens(1), act: leases(3),
		},
		"lease behind a dead return": { // it was killed before it counted the return
			drops: 1,
			setup: func(w *world) error {
				return errors.Join(filled(w), w.kill("lease and return", "Ring.Return", "CAS", "after"))
			},
			prep: opens(1), act: leases(4),
		},
		"put past a lease": {
			drops: 1,
			setup: func(w *world) error { return errors.Join(rings(2)(w), fills(2, 1, 0)(w)) },
			prep:  opens(1),
			act: func(v *victim) error {
				err := leases(1)(v)
				var m arena.Message
				c, e := v.rings[0].Lease(background, &m)
				if e == nil {
					m.Discard()
					e = v.put(v.rings[0], 1, 0, 0, 0, true)
				}
				if e == nil {
					e = v.rings[0].TryPut(body(2, 0, 0), nil, true)
					if errors.Is(e, arena.ErrFull) {
						e = v.rings[0].Return(c)
					}
				}
				return errors.Join(err, e)
			},
		},
		"acknowledge the last message": {
			drops: 1,
			setup: func(w *world) error {
				err := errors.Join(rings(2)(w), fills(1, 1, 0)(w))
				w.rings[0].Finish()
				return err
			},
			prep: opens(1),
			act: func(v *victim) error {
				err := leases(1)(v)
				if errors.Is(err, arena.ErrFinished) { // another process got it during a stop
					err = nil
				}
				return err
			},
		},
		"lease a corrupt message": {
			drops: 1, apart: true, corrupt: true,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), fills(2, 0, 0)(w))
				delete(w.sent, 1000)
				w.rings[0].Corrupt()
				return err
			},
			prep: opens(1),
			act: func(v *victim) error {
				var m arena.Message
				if _, err := v.rings[0].Lease(background, &m); !errors.Is(err, arena.ErrCorrupt) {
					return errors.Join(errors.New("a corrupt message was read"), err)
				}
				return leases(1)(v)
			},
		},
		"return for nobody": {
			drops: 4,
			setup: func(w *world) error { err := filled(w); w.passEnds(); return err },
			prep:  opens(1),
			act: func(v *victim) error {
				var m arena.Message
				c, err := v.rings[0].Lease(background, &m)
				if err != nil {
					return err
				}
				m.Discard()
				return v.rings[0].Return(c)
			},
			stop: [2]string{"Ring.Return", "CAS"},
			stopped: func(w *world) {
				release(w.d, w.held[2])
				w.held[2] = 0
			},
			after: func(w *world) {
				if n := w.rings[0].Published(); n > 0 && w.held[2] == 0 {
					w.addProblem("no receiver is left, and %d messages are", n)
				}
			},
		},
	}
}

// leases returns the act of a victim that leases and acknowledges n messages, and reports them.
func leases(n int) func(*victim) error {
	return func(v *victim) error {
		for range n {
			var m arena.Message
			c, err := v.rings[0].Lease(background, &m)
			if err != nil {
				return err
			}
			id, err := verifyMessage(v.d, &m)
			m.Discard()
			if err := errors.Join(err, v.rings[0].Acknowledge(c)); err != nil {
				return err
			}
			v.say("G %d", id)
		}
		return nil
	}
}

func leasesAndReturns(v *victim) error { return returns(v.d, v.rings[0]) }

// returns leases two messages of r and returns them in reverse order, twice. It verifies the
// messages.
func returns(d *arena.Domain, r *arena.Ring) error {
	for range 2 {
		var claims [2]arena.Claim
		for i := range claims {
			var m arena.Message
			c, err := r.Lease(background, &m)
			if err != nil {
				return err
			}
			if _, err := verifyMessage(d, &m); err != nil {
				return err
			}
			m.Discard()
			claims[i] = c
		}
		if err := errors.Join(r.Return(claims[1]), r.Return(claims[0])); err != nil {
			return err
		}
	}
	return nil
}
