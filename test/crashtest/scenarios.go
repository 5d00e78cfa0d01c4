//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A scenario is a use of a domain with two parts: the part of the victim, which may die at any
// write, and the part of the survivor, the bench. A function that is nil is skipped.
type scenario struct {
	early   bool                // the victim may die while it joins
	drops   int                 // messages that may be lost with the victim
	most    int                 // occurrences of one point to test; 0 means 3
	setup   func(*world) error  // survivor, before
	prep    func(*victim) error // victim, before it can die
	ready   func(*world)        // survivor, when the victim begins
	act     func(*victim) error // victim
	only    string              // function to die in; "" means all
	stop    [2]string           // function and method; the victim stops once after this write
	stopped func(*world)        // survivor, in the meantime
	corrupt bool                // a message is invalid
	apart   bool                // the survivor uses other objects while the victim is stopped
	contend func(*world)        // survivor, while the victim is at the point where it will die
	after   func(*world)        // survivor, after the victim is dead and reaped
}

// scenarios is set by init because its functions refer to it.
var scenarios map[string]*scenario

func init() {
	scenarios = map[string]*scenario{
		"join": {early: true},
		"join a full domain": {
			early: true, only: "Domain.announceChange",
			ready: func(w *world) {
				word.HoldReaper(true)
				w.d.FillSeats()
				w.startJob(func() { time.Sleep(2 * time.Millisecond); word.HoldReaper(false) }) // after its request
			},
		},
		"carve what is taken": {
			setup: cold, act: alloc(1000), stop: [2]string{"Domain.newHeaders", "CAS"},
			stopped: func(w *world) {
				w.d.MarkLost()
				for range w.d.IdleHeaders() {
					h, err := w.d.Alloc(0)
					if err != nil {
						w.addProblem("take headers: %v", err)
						return
					}
					w.held = append(w.held, h)
				}
			},
		},
		"put past a read": { // a reader has not advanced the head; nor may a view rung by chance
			apart: true,
			setup: func(w *world) error {
				err := errors.Join(rings(3)(w), fills(3, 1, 0)(w))
				w.rings[0].Close()
				return err
			},
			ready: func(w *world) {
				if err := w.hold("get", "Ring.claimOldest", "CAS", "after"); err != nil {
					w.addProblem("hold: %v", err)
				}
			},
			act: func(v *victim) error {
				if err := v.open(1); err != nil {
					return err
				}
				v.say("B 1")
				err := v.rings[0].TryPut(body(1, 0, 0), nil, true)
				if errors.Is(err, arena.ErrFull) || errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				return err
			},
			after: func(w *world) {
				r, err := w.d.OpenRing(w.held[0])
				if err != nil {
					w.addProblem("open the ring again: %v", err)
					return
				}
				w.rings[0] = r
			},
		},
		"leave": {
			setup: func(w *world) error { _, err := w.ring(arena.RingOptions{Capacity: 4}); return err },
			prep: func(v *victim) error {
				if err := v.open(1); err != nil {
					return err
				}
				_, err := blocks(v.d, 1, 2, 5000)
				return err
			},
			act: func(v *victim) error { return v.d.Close() },
		},
		"leave while another reaps": {
			only:  "Domain.isRecoveryFree",
			ready: func(w *world) { w.startJob(w.d.HoldRecovery(100 * time.Millisecond)) },
			act:   func(v *victim) error { return v.d.Close() },
		},
		"create": {act: func(v *victim) error {
			d, err := arena.New(arena.Options{Budget: 1 << 20})
			if err == nil {
				_, err = d.Alloc(1)
			}
			return err
		}},
		"alloc slab":  {setup: cold, act: alloc(100)},
		"alloc fresh": {setup: cold, act: alloc(20 << 10)},
		"alloc large": {setup: cold, act: alloc(6 << 20)},
		"alloc warm":  {setup: warm(100 << 10), act: alloc(100 << 10)},
		"alloc grows": {setup: warm(600 << 10), act: alloc(620 << 10)},
		"sweep": {
			setup: func(w *world) error { err := warm(100 << 10)(w); w.d.MarkLost(); return err },
			act:   alloc(3000 << 10),
		},
		"commit fails":      {setup: cold, act: failingAlloc(20 << 10)},
		"commit slab fails": {setup: cold, act: failingAlloc(1000)},
		"over budget": {most: 1, setup: warm(100 << 10), act: func(v *victim) error {
			hs, err := blocks(v.d, 1, 2, 40<<20)
			if !errors.Is(err, arena.ErrNoSpace) {
				return errors.Join(errors.New("the budget was not kept"), err)
			}
			return release(v.d, hs...)
		}},
		"punch": {setup: warm(8 << 20), act: func(v *victim) error { v.d.PunchIdle(); return nil }},
		"wait for memory": {
			most:  1,
			setup: func(w *world) error { return w.keep(50 << 20) },
			ready: func(w *world) {
				h := w.held[0]
				w.held = w.held[1:]
				w.startJob(func() { w.until(w.d.WaitsForMemory); w.d.Release(h) })
			},
			act: func(v *victim) error {
				h, err := v.d.AllocWait(background, 40<<20)
				return errors.Join(err, release(v.d, h))
			},
		},
		"relieve": {
			most:  2,
			setup: func(w *world) error { return w.keep(10 << 20) },
			prep: func(v *victim) (err error) {
				hs, err := blocks(v.d, 1, 1, 40<<20)
				v.Args = append(v.Args, uint64(hs[0]))
				return err
			},
			ready: func(w *world) {
				w.startJob(func() {
					h, err := w.d.AllocWait(background, 45<<20)
					if err != nil {
						w.addProblem("wait for memory: %v", err)
					}
					release(w.d, h)
				})
				w.until(w.d.ParkedForMemory)
			},
			act: func(v *victim) error { return v.d.Release(arena.Handle(v.Args[len(v.Args)-1])) },
		},
		"collect for another": {
			most: 1,
			ready: func(w *world) {
				w.startJob(func() {
					if _, err := w.d.Alloc(100 << 20); !errors.Is(err, arena.ErrNoSpace) {
						w.addProblem("the budget was not kept: %v", err)
					}
				})
			},
			act: func(v *victim) error {
				for !v.d.Collected() {
					time.Sleep(time.Millisecond)
				}
				return nil
			},
		},
		"release last": {
			setup: func(w *world) error { return w.keep(5000) },
			prep: func(v *victim) error {
				return errors.Join(v.d.Import(arena.Handle(v.Args[0])), v.d.Retain(arena.Handle(v.Args[0])))
			},
			ready: (*world).letGo,
			act: func(v *victim) error {
				return release(v.d, arena.Handle(v.Args[0]), arena.Handle(v.Args[0]))
			},
		},
		"import": {
			setup: func(w *world) error { return w.keep(5000) },
			act: func(v *victim) error {
				return errors.Join(v.d.Import(arena.Handle(v.Args[0])), v.d.Release(arena.Handle(v.Args[0])))
			},
		},
		"import stale": {
			setup: func(w *world) error { err := w.keep(5000); w.letGo(); return err },
			act: func(v *victim) error {
				if err := v.d.Import(arena.Handle(v.Args[0])); !errors.Is(err, arena.ErrStale) {
					return errors.Join(errors.New("a stale handle was imported"), err)
				}
				return nil
			},
		},
		"count":           {act: func(v *victim) error { v.d.CountCopied(10); return nil }},
		"count a restart": {act: func(v *victim) error { v.d.CountRestart(); return nil }},

		"put 0 copy":  {setup: rings(8), prep: opens(1), act: puts(3, 0, 0, false)},
		"put 1 move":  {setup: rings(8), prep: opens(1), act: puts(3, 1, 0, true)},
		"put 2 copy":  {setup: rings(8), prep: opens(1), act: puts(2, 2, 0, false)},
		"put 4 move":  {setup: rings(8), prep: opens(1), act: puts(2, 4, 0, true)},
		"put spilled": {setup: rings(8), prep: opens(1), act: puts(2, 6, 1000, true)},
		"put long":    {setup: rings(8), prep: opens(1), act: puts(2, 1, 3000, false)},
		"put full": {
			setup: func(w *world) error { return errors.Join(rings(2)(w), fills(2, 1, 0)(w)) },
			prep:  opens(1),
			act: func(v *victim) error {
				hs, err := blocks(v.d, 1, 3, 5000)
				for range 2 {
					if e := v.rings[0].TryPut(body(1, 3, 0), hs, true); !errors.Is(e, arena.ErrFull) {
						err = errors.Join(err, errors.New("a full ring took a message"), e)
					}
				}
				return errors.Join(err, release(v.d, hs...))
			},
		},
		"put grows": {
			setup: func(w *world) error {
				r, err := w.ring(arena.RingOptions{Capacity: 4096, Grow: true})
				for i := 0; err == nil && i < 253; i++ {
					err = w.put(r, uint64(1000+i), 0, 0, 0)
				}
				return err
			},
			prep: opens(1), act: puts(4, 2, 0, true),
		},
		"grow fails": {
			setup: func(w *world) error {
				r, err := w.ring(arena.RingOptions{Capacity: 4096, Grow: true})
				for i := 0; err == nil && i < 254; i++ {
					err = w.put(r, uint64(1000+i), 0, 0, 0)
				}
				return err
			},
			prep: opens(1), act: func(v *victim) error {
				word.FailCommits(true)
				defer word.FailCommits(false)
				v.say("B 1")
				err := v.rings[0].TryPut(body(1, 0, 0), nil, true)
				if errors.Is(err, errors.ErrUnsupported) {
					return nil
				}
				if err == nil { // another process has freed a slot
					v.say("P 1")
				}
				return err
			},
		},
		"put past a dead claim": {
			setup: func(w *world) error {
				return errors.Join(rings(4)(w), w.kill("put 1 move", "Ring.claimSlots", "CAS", "after"))
			},
			prep: opens(1), act: puts(2, 1, 0, true),
		},
		"get": {
			drops: 1, setup: func(w *world) error { return errors.Join(rings(8)(w), fills(4, 2, 0)(w)) },
			prep: opens(1), act: gets(3),
		},
		"get spilled": {
			drops: 1, setup: func(w *world) error { return errors.Join(rings(8)(w), fills(3, 6, 1000)(w)) },
			prep: opens(1), act: gets(2),
		},
		"get past a hole": {
			drops: 1,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), w.kill("put 1 move", "Ring.claimSlots", "CAS", "after"))
				return errors.Join(err, fills(3, 1, 0)(w))
			},
			prep: opens(1), act: gets(2),
		},
		"get past a dead read": {
			drops: 2,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), fills(5, 1, 0)(w))
				return errors.Join(err, w.kill("get", "Ring.claimOldest", "CAS", "after"))
			},
			prep: opens(1), act: gets(2),
		},
		"forward": {
			drops: 1,
			setup: func(w *world) error {
				r, err := w.ring(arena.RingOptions{Capacity: 8})
				for i := 0; err == nil && i < 3; i++ {
					err = w.put(r, uint64(1000+i), 2, 5000, 0)
				}
				_, e := w.ring(arena.RingOptions{Capacity: 8})
				return errors.Join(err, e)
			},
			prep: opens(2),
			act: func(v *victim) error {
				var m arena.Message
				for i := range 2 {
					if _, err := v.get(v.rings[0], &m); err != nil {
						return err
					}
					v.say("B %d", 1+i)
					for k, h := range m.Blocks {
						if err := fill(v.d, h, uint64(1+i), k); err != nil {
							return err
						}
					}
					if err := v.rings[1].Put(background, body(uint64(1+i), 2, 0), m.Blocks, true); err != nil {
						return err
					}
					v.say("P %d", 1+i)
					m.Done()
				}
				return nil
			},
		},
		"new ring": {drops: 9, act: func(v *victim) error {
			r, s, e, err := v.d.NewRing(arena.RingOptions{Capacity: 4})
			if err != nil {
				return err
			}
			v.rings = append(v.rings, r)
			err = errors.Join(puts(2, 1, 0, true)(v), gets(1)(v))
			r.Close()
			return errors.Join(err, release(v.d, s, r.Handle(), e))
		}},
		"ring drains": {
			drops: 20,
			setup: func(w *world) error {
				r, err := w.ring(arena.RingOptions{Capacity: 8})
				if err != nil {
					return err
				}
				inner, s, e, err := w.d.NewRing(arena.RingOptions{Capacity: 4})
				if err != nil {
					return err
				}
				err = errors.Join(w.put(r, 1000, 2, 5000, 0), w.put(r, 1001, 6, 5000, 1000),
					w.put(inner, 1002, 1, 5000, 0), w.put(inner, 1003, 0, 0, 0))
				err = errors.Join(err, inner.TryPut(nil, []arena.Handle{w.held[1]}, false)) // an end of the outer ring
				err = errors.Join(err, r.TryPut(nil, []arena.Handle{inner.Handle(), s, w.held[2]}, false))
				inner.Close()
				return errors.Join(err, release(w.d, inner.Handle(), s, e))
			},
			prep:  opens(1),
			ready: (*world).letGo,
			act:   func(v *victim) error { v.rings[0].Close(); return v.d.Release(v.rings[0].Handle()) },
		},
		"last sender": {
			setup: func(w *world) error { err := rings(4)(w); w.passEnds(); return err },
			prep: func(v *victim) error {
				return errors.Join(opens(1)(v), v.d.Import(arena.Handle(v.Args[1])))
			},
			ready: func(w *world) {
				release(w.d, w.held[1])
				w.held[1] = 0
				w.startJob(func() {
					var m arena.Message
					if err := w.rings[0].Get(background, &m); !errors.Is(err, arena.ErrFinished) {
						w.addProblem("no sender is left and a get returns %v", err)
					}
				})
			},
			act: func(v *victim) error { return v.d.Release(arena.Handle(v.Args[1])) },
		},
		"dead sender": { // it holds the last sending end; a receiver must be told of the death
			setup: func(w *world) error { err := rings(4)(w); w.passEnds(); return err },
			prep: func(v *victim) error {
				return errors.Join(opens(1)(v), v.d.Import(arena.Handle(v.Args[1])))
			},
			ready: func(w *world) {
				release(w.d, w.held[1])
				w.held[1] = 0
				w.startJob(func() {
					var m arena.Message
					err := w.rings[0].Get(background, &m)
					for ; err == nil; err = w.rings[0].Get(background, &m) {
						w.take(&m)
					}
					if p := new(arena.PeerError); !errors.As(err, &p) || !errors.Is(err, arena.ErrFinished) {
						w.addProblem("the last sender died and a get returns %v", err)
					}
				})
			},
			act: puts(2, 1, 0, true),
		},
		"dead newborn": { // the victim is its starter and held the last sending end for it
			setup: func(w *world) error { err := rings(4)(w); w.passEnds(); return err },
			prep: func(v *victim) error {
				return errors.Join(opens(1)(v), v.d.Import(arena.Handle(v.Args[1])))
			},
			ready: func(w *world) {
				release(w.d, w.held[1])
				w.held[1] = 0
				w.startJob(func() {
					var m arena.Message
					err := w.rings[0].Get(background, &m)
					if p := new(arena.PeerError); !errors.As(err, &p) || !errors.Is(err, arena.ErrFinished) {
						w.addProblem("the last sender died and a get returns %v", err)
					}
				})
			},
			act: func(v *victim) error {
				arg, err := v.d.Deliver([]arena.Handle{arena.Handle(v.Args[1])})
				if err != nil {
					return err
				}
				err = v.d.Release(arena.Handle(v.Args[1]))
				arg.Lost(newborn)
				return errors.Join(err, arg.Close())
			},
		},
		"last receiver": { // unread messages are dropped with it
			drops: 2,
			setup: func(w *world) error {
				err := errors.Join(rings(2)(w), fills(2, 1, 0)(w))
				w.passEnds()
				return err
			},
			prep: func(v *victim) error {
				return errors.Join(opens(1)(v), v.d.Import(arena.Handle(v.Args[2])))
			},
			ready: func(w *world) {
				release(w.d, w.held[2])
				w.held[2] = 0
				w.startJob(func() {
					err := w.rings[0].Put(background, body(1, 0, 0), nil, true)
					if err == nil { // it had checked before, and the removed message freed a slot
						err = w.rings[0].Put(background, body(2, 0, 0), nil, true)
					}
					if !errors.Is(err, arena.ErrFinished) {
						w.addProblem("no receiver is left and a put returns %v", err)
					}
				})
			},
			act: func(v *victim) error { return v.d.Release(arena.Handle(v.Args[2])) },
			after: func(w *world) {
				if n := w.rings[0].Published(); n > 0 {
					w.addProblem("no receiver is left, and %d messages are", n)
				}
			},
		},
		"put for nobody":          putForNobody(puts(2, 1, 0, true), "Ring.claimSlots", "CAS"),
		"put that nobody can get": putForNobody(puts(2, 1, 0, true), "lane.setHeader", "Set"),
		"finish": {
			setup: rings(4), prep: opens(1),
			act: func(v *victim) error { v.rings[0].Finish(); return nil },
		},
		"parked get": {
			drops: 1,
			setup: rings(4), prep: opens(1),
			ready: func(w *world) {
				w.startJob(func() {
					for i := range 3 {
						w.until(w.rings[0].Parked)
						if err := w.put(w.rings[0], uint64(1000+i), 1, 5000, 0); err != nil {
							w.addProblem("put: %v", err)
						}
					}
				})
			},
			act: gets(3),
		},
		"parked for nothing": {
			most: 2, setup: rings(4), prep: opens(1),
			act: func(v *victim) error {
				ctx, cancel := context.WithTimeout(background, time.Millisecond)
				defer cancel()
				var m arena.Message
				if err := v.rings[0].Get(ctx, &m); !errors.Is(err, context.DeadlineExceeded) {
					return errors.Join(errors.New("a get came back from an empty ring"), err)
				}
				return nil
			},
		},
		"parked put": {
			setup: func(w *world) error { return errors.Join(rings(2)(w), fills(2, 1, 0)(w)) },
			prep:  opens(1),
			ready: func(w *world) {
				w.startJob(func() {
					for range 3 {
						w.until(w.rings[0].Parked)
						var m arena.Message
						w.until(func() bool { return w.rings[0].TryGet(&m) == nil })
						if m.Body != nil {
							w.take(&m)
						}
					}
				})
			},
			act: puts(3, 2, 0, true),
		},
		"ring a full doorbell": {
			only: "Lot.RingBell", setup: rings(4), prep: opens(1),
			act: func(v *victim) error {
				word.FillBells(true)
				return puts(2, 1, 0, true)(v)
			},
			ready: parksInGet,
			after: wakesAfterDeath,
		},
		"hear of a missed topic": {
			drops: 1, only: "Lot.HandleBell", setup: rings(4), prep: opens(1),
			ready: func(w *world) {
				w.startJob(func() {
					word.FillBells(true)
					defer word.FillBells(false)
					for i := range 3 {
						w.until(w.rings[0].Parked)
						time.Sleep(time.Millisecond) // then it does not nap any more
						if err := w.put(w.rings[0], uint64(1000+i), 1, 5000, 0); err != nil {
							w.addProblem("put: %v", err)
						}
					}
				})
			},
			act: gets(3),
		},
		"wake a getter": {
			setup: rings(4), prep: opens(1), act: puts(2, 1, 0, true),
			ready: parksInGet,
			after: wakesAfterDeath,
		},
		"wake a putter": {
			drops: 1,
			setup: func(w *world) error { return errors.Join(rings(2)(w), fills(2, 1, 0)(w)) },
			prep:  opens(1), act: gets(1),
			ready: func(w *world) {
				w.maybe[1] = true
				w.startJob(func() {
					w.rings[0].Put(background, body(1, 0, 0), nil, true)
				})
				time.Sleep(time.Millisecond)
			},
			after: func(w *world) {
				if w.rings[0].Published() == 2 && w.rings[0].Len() == 2 {
					w.unstick()
				}
			},
		},
		"contended block": {
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), rings(8)(w), w.keep(5000))
				fill(w.d, w.held[len(w.held)-1], 1, 0)
				return err
			},
			prep: func(v *victim) error { return errors.Join(opens(2)(v), v.d.Import(arena.Handle(v.Args[2]))) },
			act:  putShared,
			contend: func(w *world) {
				h := w.held[len(w.held)-1]
				w.maybe[2] = true
				w.startJob(func() {
					if err := w.rings[1].TryPut(body(2, 0, 0), nil, false); err != nil {
						w.addProblem("put: %v", err)
					}
					if err := w.rings[1].TryPut(nil, []arena.Handle{h}, false); err != nil {
						w.addProblem("put: %v", err)
					}
				})
				w.briefly(func() bool { return w.d.Waiting(h) || w.rings[1].Published() == 2 })
			},
		},
		"waits for a block": {
			most: 2,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), rings(8)(w), w.keep(5000))
				return errors.Join(err, w.hold("contended block", "lane.stampBlockForPut", "CAS", "after"))
			},
			prep: func(v *victim) error { return errors.Join(opens(2)(v), v.d.Import(arena.Handle(v.Args[2]))) },
			ready: func(w *world) {
				h := w.held[len(w.held)-1]
				c := w.holder
				w.startJob(func() { w.until(func() bool { return w.d.Waiting(h) }); c.tell() })
			},
			act: putShared,
		},
		"get a contended block": {
			most: 2, drops: 1,
			setup: func(w *world) error {
				err := errors.Join(rings(8)(w), rings(8)(w), w.keep(5000))
				h := w.held[len(w.held)-1]
				w.sent[1] = true
				err = errors.Join(err, fill(w.d, h, 1, 0), w.rings[0].TryPut(body(1, 1, 0), []arena.Handle{h}, false))
				return errors.Join(err, w.hold("contended block", "lane.stampBlockForPut", "CAS", "after"))
			},
			prep: opens(2),
			ready: func(w *world) {
				h, c := w.held[len(w.held)-1], w.holder
				w.startJob(func() {
					w.until(func() bool { return w.d.Waiting(h) })
					if !w.over.Load() { // otherwise the reaper must find it where it is
						c.tell()
					}
				})
			},
			act: gets(1),
		},
		"get a corrupt message": {
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
				if err := v.rings[0].TryGet(&m); !errors.Is(err, arena.ErrCorrupt) {
					return errors.Join(errors.New("a corrupt message was read"), err)
				}
				return gets(1)(v)
			},
		},
		"no addresses": {most: 1, act: func(v *victim) error {
			d, err := arena.New(arena.Options{Budget: 2 << 20, Reserve: 2 << 20})
			if err != nil {
				return err
			}
			h, err := d.Alloc(2 << 20)
			err = errors.Join(err, release(d, h))
			d.PunchIdle() // the budget is free again, but not the address space
			if _, e := d.Alloc(2000); !errors.Is(e, arena.ErrNoSpace) {
				err = errors.Join(err, errors.New("there were addresses"), e)
			}
			return err
		}},
		"waits for the budget": {
			most: 2,
			setup: func(w *world) error {
				return errors.Join(cold(w), w.hold("alloc fresh", "lane.chargeBudget", "CAS", "after"))
			},
			ready: func(w *world) {
				c := w.holder
				w.startJob(func() { w.until(func() bool { return w.d.Waiting(arena.Handle(1)) }); c.tell() })
			},
			act: alloc(30 << 10),
		},
	}
	maps.Copy(scenarios, syncScenarios)
	maps.Copy(scenarios, batchScenarios())
	maps.Copy(scenarios, nameScenarios())
	maps.Copy(scenarios, ipcScenarios())
	maps.Copy(scenarios, leaseScenarios())
	maps.Copy(scenarios, laterScenarios())
}

// until waits until f returns true or the victim is dead. It calls f repeatedly.
func (w *world) until(f func() bool) {
	for !f() && !w.over.Load() {
		time.Sleep(20 * time.Microsecond)
	}
}

// briefly is like until for a victim that is stopped, with a time limit, because the condition may
// be impossible at its point.
func (w *world) briefly(f func() bool) {
	for end := time.Now().Add(5 * time.Millisecond); !f() && time.Now().Before(end); {
		time.Sleep(20 * time.Microsecond)
	}
}

// keep allocates a block of size bytes that the bench holds until letGo or the end of the round,
// and passes its handle to the victim.
func (w *world) keep(size int) error {
	h, err := w.d.Alloc(size)
	if err == nil {
		w.held = append(w.held, h)
		w.args = append(w.args, uint64(h))
	}
	return err
}

// passEnds passes the handles of the first ring's two ends to the victim. The ring must be the
// first object of the world.
func (w *world) passEnds() { w.args = append(w.args, uint64(w.held[1]), uint64(w.held[2])) }

// letGo releases everything, so that the victim holds the last references to its imports.
func (w *world) letGo() {
	for _, r := range w.rings {
		r.Close()
	}
	if err := release(w.d, w.held...); err != nil {
		w.addProblem("release: %v", err)
	}
	w.held, w.rings = nil, nil
}

// cold is the setup of a scenario that hides all idle blocks, so that the next allocation
// creates a new one.
func cold(w *world) error { w.d.HideIdle(); return nil }

// warm returns the setup of a scenario that leaves an idle block of size bytes.
func warm(size int) func(*world) error {
	return func(w *world) error {
		h, err := w.d.Alloc(size)
		return errors.Join(err, release(w.d, h))
	}
}

func alloc(size int) func(*victim) error {
	return func(v *victim) error {
		hs, err := blocks(v.d, 1, 2, size)
		return errors.Join(err, release(v.d, hs...))
	}
}

func failingAlloc(size int) func(*victim) error {
	return func(v *victim) error {
		word.FailCommits(true)
		_, err := v.d.Alloc(size)
		word.FailCommits(false)
		if !errors.Is(err, errors.ErrUnsupported) {
			return errors.Join(errors.New("a commit did not fail"), err)
		}
		return alloc(size)(v)
	}
}

func rings(capacity int) func(*world) error {
	return func(w *world) error {
		_, err := w.ring(arena.RingOptions{Capacity: capacity})
		return err
	}
}

func fills(n, carry, long int) func(*world) error {
	return func(w *world) (err error) {
		for i := 0; err == nil && i < n; i++ {
			err = w.put(w.rings[0], uint64(1000+i), carry, 5000, long)
		}
		return err
	}
}

func opens(n int) func(*victim) error { return func(v *victim) error { return v.open(n) } }

// putForNobody returns a scenario with a victim that puts up to four messages by put. The last
// receiver is closed while the victim is stopped after its first call of operation in function.
func putForNobody(put func(*victim) error, function, operation string) *scenario {
	return &scenario{
		drops: 4,
		setup: func(w *world) error { err := rings(4)(w); w.passEnds(); return err },
		prep:  opens(1),
		stop:  [2]string{function, operation},
		stopped: func(w *world) {
			release(w.d, w.held[2])
			w.held[2] = 0
		},
		act: func(v *victim) error {
			err := put(v)
			if errors.Is(err, arena.ErrFinished) {
				err = nil
			}
			return err
		},
		after: func(w *world) {
			if n := w.rings[0].Published(); n > 0 && w.held[2] == 0 { // it stopped before it died
				w.addProblem("no receiver is left, and %d messages are", n)
			}
		},
	}
}

func puts(n, carry, long int, move bool) func(*victim) error {
	return func(v *victim) (err error) {
		for i := 0; err == nil && i < n; i++ {
			err = v.put(v.rings[0], uint64(1+i), carry, 5000, long, move)
		}
		return err
	}
}

func gets(n int) func(*victim) error {
	return func(v *victim) error {
		var m arena.Message
		for range n {
			if _, err := v.get(v.rings[0], &m); err != nil {
				return err
			}
			m.Discard()
		}
		return nil
	}
}

func putShared(v *victim) error {
	hs := []arena.Handle{arena.Handle(v.Args[2])}
	return errors.Join(v.rings[0].TryPut(nil, hs, false), v.rings[0].TryPut(nil, hs, true))
}

// parksInGet makes the survivor wait for one message of the first ring, on a goroutine.
func parksInGet(w *world) {
	w.startJob(func() {
		var m arena.Message
		if err := w.rings[0].Get(background, &m); err == nil {
			w.take(&m)
		}
	})
	time.Sleep(time.Millisecond) // then it is usually parked
}

// wakesAfterDeath ends the survivor's wait for a message if the victim has put none.
func wakesAfterDeath(w *world) {
	if w.rings[0].Published() == 0 {
		w.d.Reap()
		w.unstick()
	}
}
