//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Fates of a victim that is stopped at a point, after the other processes have tried all
// operations.
const (
	goesOn = "goes on"
	dies   = "dies"
)

// Extents of the tests with stops.
const (
	noPoints  = "none"
	eachPoint = "each" // each point once, in the first scenario that reaches it
	allPoints = "all"  // each point of each scenario
)

// stops returns trials that stop the whole process where it died in first, at its first death at
// each point. extent says how many: noPoints, eachPoint or allPoints. It excludes scenarios that
// use stops themselves, and scenarios with a victim that has no seat yet.
func (p *plan) stops(first []trial, extent string) (trials []trial) {
	had := make(map[string]bool)
	for _, t := range first {
		sc, at := scenarios[t.Scenario], t.Site+" "+t.Phase
		if extent == noPoints || t.Nth > 1 || sc.contend != nil || sc.stopped != nil || sc.early ||
			extent == eachPoint && had[at] {
			continue
		}
		had[at] = true
		t.Stop = goesOn
		if len(trials)%2 == 0 {
			t.Stop = dies
		}
		trials = append(trials, t)
	}
	return trials
}

// beside runs the survivor's operations while the victim c is stopped in the middle of an
// operation. Each call must make progress or end with its context; otherwise beside records a
// problem. Then the victim continues or dies.
func (w *world) beside(c *child) {
	for end := time.Now().Add(limit()); !w.stopped; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
			w.addProblem("the victim does not stop: %s", stat)
			break
		}
		w.stopped = sys.Stopped(c.cmd.Process.Pid)
	}
	w.try("new blocks and rings", func(ctx context.Context) error {
		r, s, e, err := w.d.NewRing(arena.RingOptions{Capacity: 2})
		if err != nil {
			return err
		}
		defer r.Close()
		h, err := w.d.AllocWait(ctx, 5000)
		if err == nil {
			err = r.Put(ctx, nil, []arena.Handle{h}, true)
		}
		if err != nil {
			return errors.Join(err, release(w.d, h, r.Handle(), s, e))
		}
		var m arena.Message
		err = r.Get(ctx, &m)
		m.Discard()
		return errors.Join(err, release(w.d, r.Handle(), s, e))
	})
	w.try("a name", func(ctx context.Context) error {
		if err := w.d.Bind(ctx, "beside a stop", nil, nil); err != nil {
			return err
		}
		return w.d.Unlink("beside a stop")
	})
	if !w.sc.apart {
		w.useAll()
	}
	if w.halt == dies {
		c.cmd.Process.Kill()
	}
	c.cmd.Process.Signal(syscall.SIGCONT)
}

// useAll uses each object of the scenario once, with [world.try].
func (w *world) useAll() {
	for i, r := range w.rings {
		w.try(fmt.Sprintf("ring %d", i), func(ctx context.Context) error { return w.turn(ctx, r) })
	}
	for i, s := range w.syncs {
		w.try(fmt.Sprintf("lock %d", i), func(ctx context.Context) error { return visit(ctx, s) })
	}
}

// try calls f with a context that ends soon. It records a problem if f returns an unexpected
// error or does not return.
func (w *world) try(what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		for _, known := range []error{context.DeadlineExceeded, arena.ErrFull, arena.ErrEmpty, arena.ErrFinished,
			arena.ErrNoSpace, arena.ErrNotExist} {
			if errors.Is(err, known) {
				return
			}
		}
		if err != nil {
			w.addProblem("beside a stopped process, %s: %v", what, err)
		}
	case <-time.After(limit()):
		w.addProblem("beside a stopped process, %s is stuck", what)
		<-done
	}
}

// turn gets a message of r and puts it back. If the put fails, it counts the message as arrived.
func (w *world) turn(ctx context.Context, r *arena.Ring) error {
	var m arena.Message
	if err := r.Get(ctx, &m); err != nil {
		return err
	}
	if err := r.Put(ctx, m.Body, m.Blocks, true); err != nil {
		w.take(&m)
		return err
	}
	m.Done()
	return nil
}

// visit acquires and releases s if it is a mutex or a semaphore. It repairs a mutex with a dead
// holder.
func visit(ctx context.Context, s *arena.Sync) error {
	switch s.Form() {
	case arena.FormMutex:
		m := arena.Mutex{Sync: s}
		err := m.Lock(ctx)
		if errors.Is(err, arena.ErrOwnerDied) {
			err = m.MarkConsistent()
		}
		if err != nil {
			return err
		}
		return m.Unlock()
	case arena.FormSemaphore:
		m := arena.Semaphore{Sync: s}
		if err := m.Acquire(ctx); err != nil {
			return err
		}
		return m.Release()
	}
	return nil
}
