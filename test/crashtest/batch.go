//go:build shoalcrash

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// batchScenarios returns, by name, the scenarios that put and get messages in batches.
func batchScenarios() map[string]*scenario {
	around := func(w *world) error { // so that the batch wraps around the ring
		err := rings(8)(w)
		for range 5 {
			var m arena.Message
			err = errors.Join(err, w.put(w.rings[0], 900, 0, 0, 0), w.rings[0].TryGet(&m))
			delete(w.sent, 900)
		}
		return err
	}
	filled := func(w *world) error { return errors.Join(around(w), fills(7, 0, 0)(w)) }
	return map[string]*scenario{
		"batch put": {setup: around, prep: opens(1), act: putsBatch(7)},
		"batch put grows": {
			setup: func(w *world) error {
				r, err := w.ring(arena.RingOptions{Capacity: 4096, Grow: true})
				for i := 0; err == nil && i < 252; i++ {
					err = w.put(r, uint64(1000+i), 0, 0, 0)
				}
				return err
			},
			prep: opens(1), act: putsBatch(6),
		},
		"batch put past a dead batch": {
			setup: func(w *world) error {
				return errors.Join(around(w), w.kill("batch put", "Ring.claimSlots", "CAS", "after"))
			},
			prep: opens(1), act: putsBatch(3),
		},
		"batch put past holes": {
			setup: func(w *world) error {
				return errors.Join(around(w), w.kill("batch put", "Ring.putSpan", "Set", "after"))
			},
			prep: opens(1), act: putsBatch(3),
		},
		"batch put to a dead reader": {
			drops: 4,
			setup: func(w *world) error {
				return errors.Join(filled(w), w.kill("batch get", "Ring.getSpan", "Set", "after"))
			},
			prep: opens(1), act: putsBatch(4),
		},
		"batch put before a reaper": { // a dead reader's slots block it like a live one's
			drops: 4,
			setup: func(w *world) error {
				return errors.Join(filled(w), w.leaveDead("batch get", "Ring.getSpan", "Set", "after"))
			},
			prep: opens(1), act: func(v *victim) error {
				var b arena.Batch
				fillBatch(v, &b, 4)
				_, err := v.rings[0].TryPutBatch(&b)
				if errors.Is(err, arena.ErrFull) {
					err = nil
				}
				return err
			},
		},
		"batch put for nobody":          putForNobody(putsBatch(4), "Ring.claimSlots", "CAS"),
		"batch put that nobody can get": putForNobody(putsBatch(4), "lane.setHeader", "Set"),
		"batch get":                     {drops: 7, setup: filled, prep: opens(1), act: getsBatch(7)},
		"batch get past a dead batch": {
			drops: 7,
			setup: func(w *world) error {
				return errors.Join(filled(w), w.kill("batch get", "Ring.getSpan", "CAS", "after"))
			},
			prep: opens(1), act: func(v *victim) error { return errors.Join(gets(1)(v), getsBatch(2)(v)) },
		},
		"batch get past holes": {
			drops: 3,
			setup: func(w *world) error {
				err := errors.Join(around(w), w.kill("batch put", "Ring.putSpan", "Set", "after"))
				return errors.Join(err, fills(3, 0, 0)(w))
			},
			prep: opens(1), act: func(v *victim) error { return errors.Join(gets(1)(v), getsBatch(2)(v)) },
		},
		"batch wakes a getter": {
			setup: rings(8), prep: opens(1),
			ready: func(w *world) {
				w.startJob(func() {
					var m arena.Message
					if err := w.rings[0].Get(background, &m); err == nil {
						w.take(&m)
					}
				})
				time.Sleep(time.Millisecond)
			},
			act: putsBatch(4),
			after: func(w *world) {
				if w.rings[0].Len() == 0 || w.rings[0].Published() == 0 {
					w.unstick()
				}
			},
		},
	}
}

// fillBatch reports that the puts of messages 1 to n have begun, and adds these messages to b.
func fillBatch(v *victim, b *arena.Batch, n int) {
	for id := uint64(1); id <= uint64(n); id++ {
		v.say("B %d", id)
		b.Body = append(b.Body, body(id, 0, 0)...)
		b.Ends = append(b.Ends, len(b.Body))
	}
}

// putsBatch returns the act of a victim that puts messages 1 to n into its first ring as one
// batch, and reports those that were put. Fewer than n are an error.
func putsBatch(n int) func(*victim) error {
	return func(v *victim) error {
		var b arena.Batch
		fillBatch(v, &b, n)
		k, err := v.rings[0].TryPutBatch(&b)
		for id := 1; id <= k; id++ {
			v.say("P %d", id)
		}
		if err == nil && k < n {
			err = fmt.Errorf("%d of %d were put", k, n)
		}
		return err
	}
}

// getsBatch returns the act of a victim that gets n messages of its first ring as one batch,
// verifies them and reports them. Fewer than n are an error.
func getsBatch(n int) func(*victim) error {
	return func(v *victim) error {
		var b arena.Batch
		k, err := v.rings[0].TryGetBatch(&b, n)
		for i := range k {
			id, e := verifyMessage(v.d, &arena.Message{Body: b.At(i)})
			err = errors.Join(err, e)
			v.say("G %d", id)
		}
		if err == nil && k < n {
			err = fmt.Errorf("%d of %d were taken", k, n)
		}
		return err
	}
}
