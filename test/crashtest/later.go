//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// laterScenarios returns, by name, the scenarios for operations that a stopped process blocks.
// The call returns early, and a goroutine of the victim completes the work when the holder
// continues. The victim dies before the call returns or while the goroutine works.
func laterScenarios() map[string]*scenario {
	// meanwhile asks the bench to resume the holder and waits until done returns true.
	meanwhile := func(v *victim, done func() bool) error {
		v.say("S")
		v.hear()
		for end := time.Now().Add(limit()); !done(); time.Sleep(20 * time.Microsecond) {
			if time.Now().After(end) {
				return errors.New("a goroutine does not end what it was left")
			}
		}
		return nil
	}
	goOn := func(w *world) { w.holder.tell() }
	const owed = 8 << 20
	return map[string]*scenario{
		"get ends later": {
			most: 1, drops: 1, stopped: goOn,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), rings(8)(w), w.keep(5000))
				h := w.held[len(w.held)-1]
				w.sent[1] = true
				err = errors.Join(err, fill(w.d, h, 1, 0), w.rings[0].TryPut(body(1, 1, 0), []arena.Handle{h}, false))
				return errors.Join(err, w.hold("contended block", "lane.stampBlockForPut", "CAS", "after"))
			},
			prep: opens(2),
			act: func(v *victim) error {
				ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
				defer cancel()
				var m arena.Message
				if err := v.rings[0].Get(ctx, &m); err != nil {
					return err
				}
				id, err := verifyMessage(v.d, &m)
				if err != nil {
					return err
				}
				v.say("G %d", id)
				if !v.d.Later() {
					return errors.New("the get has ended, and its block was stamped")
				}
				m.Discard()
				return meanwhile(v, func() bool { return !v.d.Later() })
			},
		},
		"ring ends later": {
			most: 1, drops: 1, stopped: goOn,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), rings(8)(w), w.keep(5000))
				h := w.held[len(w.held)-1]
				w.sent[1] = true
				err = errors.Join(err, fill(w.d, h, 1, 0), w.rings[0].TryPut(body(1, 1, 0), []arena.Handle{h}, false))
				return errors.Join(err, w.hold("contended put", "lane.stampBlockForPut", "CAS", "after"))
			},
			prep: opens(1),
			ready: func(w *world) { // the victim has the last reference
				w.rings[0].Close()
				if err := release(w.d, w.held[:3]...); err != nil {
					w.addProblem("release: %v", err)
				}
				w.rings, w.held = w.rings[1:], w.held[3:]
			},
			act: func(v *victim) error {
				h := v.rings[0].Handle()
				v.rings[0].Close()
				if err := v.d.Release(h); err != nil {
					return err
				}
				if v.d.Stale(h) {
					return errors.New("the ring has ended, and a block in it was stamped")
				}
				return meanwhile(v, func() bool { return v.d.Stale(h) })
			},
		},
		"contended put": { // the holder has only the second ring
			setup: func(w *world) error { return errors.Join(rings(8)(w), rings(8)(w), w.keep(5000)) },
			prep: func(v *victim) error {
				err := errors.Join(v.d.Import(arena.Handle(v.Args[1])), v.d.Import(arena.Handle(v.Args[2])))
				if err != nil {
					return err
				}
				r, err := v.d.OpenRing(arena.Handle(v.Args[1]))
				v.rings = append(v.rings, r)
				return err
			},
			act: putShared,
		},
		"one permit": {
			setup: syncs(aSemaphore), prep: opensSyncs(arena.FormSemaphore), after: counted,
			act: func(v *victim) error {
				return errors.Join(v.semaphore(0).Acquire(background), v.semaphore(0).Release())
			},
		},
		"permit comes back later": {
			most: 1, stopped: goOn, setup: syncs(aSemaphore), after: counted,
			prep: func(v *victim) error {
				return errors.Join(opensSyncs(arena.FormSemaphore)(v), v.semaphore(0).Acquire(background))
			},
			ready: func(w *world) {
				if err := w.hold("one permit", "Semaphore.setPermits", "Store", "after"); err != nil {
					w.addProblem("hold: %v", err)
				}
			},
			act: func(v *victim) error {
				m := v.semaphore(0)
				if err := m.Release(); err != nil {
					return err
				}
				if v.d.References(m.Handle()) == 1 {
					return errors.New("the permit is back, and its holder has the lock of the cell")
				}
				return meanwhile(v, func() bool { return v.d.References(m.Handle()) == 1 })
			},
		},
		"debt is paid later": {
			most: 1, stopped: goOn,
			setup: func(w *world) error {
				return errors.Join(warm(owed)(w), w.hold("alloc fresh", "lane.chargeBudget", "CAS", "after"))
			},
			act: func(v *victim) error {
				v.d.PunchIdle()
				if !v.d.Later() {
					return errors.New("nothing is owed, and the budget was stamped")
				}
				return meanwhile(v, func() bool { return !v.d.Later() })
			},
			after: func(w *world) { w.d.ForgiveDebt(owed) },
		},
	}
}
