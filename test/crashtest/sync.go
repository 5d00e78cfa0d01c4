//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// syncs returns the setup of a scenario that creates synchronization objects. The bench holds
// them until the end of the round.
func syncs(all ...arena.SyncOptions) func(*world) error {
	return func(w *world) error {
		for _, opts := range all {
			s, err := w.d.NewSync(opts)
			if err != nil {
				return err
			}
			w.syncs = append(w.syncs, s)
			w.held = append(w.held, s.Handle())
			w.args = append(w.args, uint64(s.Handle()))
		}
		return nil
	}
}

// opensSyncs returns the preparation of a victim that opens the objects of syncs. forms must
// have their forms in the same order.
func opensSyncs(forms ...arena.Form) func(*victim) error {
	return func(v *victim) error {
		for i, form := range forms {
			if err := v.d.Import(arena.Handle(v.Args[i])); err != nil {
				return err
			}
			s, err := v.d.OpenSync(arena.Handle(v.Args[i]), form)
			if err != nil {
				return err
			}
			v.syncs = append(v.syncs, s)
		}
		return nil
	}
}

var (
	aMutex     = arena.SyncOptions{Form: arena.FormMutex}
	anRWMutex  = arena.SyncOptions{Form: arena.FormRWMutex}
	aSemaphore = arena.SyncOptions{Form: arena.FormSemaphore, Limit: 2, Bounded: true}
	aSignal    = arena.SyncOptions{Form: arena.FormSemaphore}
	aCond      = arena.SyncOptions{Form: arena.FormCond}
	anEvent    = arena.SyncOptions{Form: arena.FormEvent}
	aBarrier   = arena.SyncOptions{Form: arena.FormBarrier, Limit: 2}
)

func (v *victim) mutex(i int) arena.Mutex         { return arena.Mutex{Sync: v.syncs[i]} }
func (v *victim) semaphore(i int) arena.Semaphore { return arena.Semaphore{Sync: v.syncs[i]} }
func (v *victim) rwMutex() arena.RWMutex          { return arena.RWMutex{Sync: v.syncs[0]} }
func (v *victim) cond() arena.Cond                { return arena.Cond{Sync: v.syncs[0]} }
func (v *victim) event() arena.Event              { return arena.Event{Sync: v.syncs[0]} }
func (v *victim) barrier() arena.Barrier          { return arena.Barrier{Sync: v.syncs[0]} }

// wants returns nil if err wraps want, and otherwise an error that wraps err.
func wants(err, want error) error {
	if !errors.Is(err, want) {
		return errors.Join(errors.New("not "+want.Error()), err)
	}
	return nil
}

// briefly returns an error unless f, called with a short deadline, returns
// [context.DeadlineExceeded].
func briefly(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	return wants(f(ctx), context.DeadlineExceeded)
}

// locksAgain returns the end of a scenario that acquires lock i of the dead process, repairs it,
// and uses it once more.
func locksAgain(i int) func(*world) {
	return func(w *world) {
		m := arena.Mutex{Sync: w.syncs[i]}
		ctx, cancel := context.WithTimeout(background, limit())
		defer cancel()
		err := m.Lock(ctx)
		if errors.Is(err, arena.ErrOwnerDied) {
			err = m.MarkConsistent()
		}
		if err := errors.Join(err, m.Unlock(), m.TryLock(), m.Unlock()); err != nil {
			w.addProblem("the lock: %v", err)
		}
	}
}

// writes ends a scenario: it acquires the lock for writing. It records a problem if a dead
// reader blocks it.
func writes(w *world) {
	m := arena.RWMutex{Sync: w.syncs[0]}
	for m.RUnlock() == nil {
	}
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	err := m.Lock(ctx)
	if errors.Is(err, arena.ErrOwnerDied) {
		err = m.MarkConsistent()
	}
	if err := errors.Join(err, m.Unlock(), m.TryRLock(), m.RUnlock()); err != nil {
		w.addProblem("the lock: %v", err)
	}
}

// permits ends a scenario: it records a problem unless all permits are available, and no more.
func permits(w *world) {
	m := arena.Semaphore{Sync: w.syncs[0]}
	for m.Release() == nil {
	}
	for range 2 {
		if err := m.TryAcquire(); err != nil {
			w.addProblem("a permit is lost: %v", err)
		}
	}
	if err := m.TryAcquire(); !errors.Is(err, arena.ErrLocked) {
		w.addProblem("there are more permits than two: %v", err)
	}
}

// counted is like permits, and also requires that the count was right before any release.
func counted(w *world) {
	if n, err := (arena.Semaphore{Sync: w.syncs[0]}).Permits(); n != 2 || err != nil {
		w.addProblem("%d permits, %v", n, err)
	}
	permits(w)
}

// meets ends a scenario: it resets the barrier and passes it with another goroutine.
func meets(w *world) {
	b := arena.Barrier{Sync: w.syncs[0]}
	b.Reset()
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	other := make(chan error)
	go func() { _, err := b.Wait(ctx, nil); other <- err }()
	_, err := b.Wait(ctx, nil)
	if err := errors.Join(err, <-other); err != nil {
		w.addProblem("the barrier: %v", err)
	}
}

// newborn is a process ID that no process has.
const newborn = 1<<22 - 1

// wakesAll ends the waits of the bench in the Cond.
func wakesAll(w *world) { arena.Cond{Sync: w.syncs[0]}.Notify(1 << 20) }

// waits makes the bench wait in the Cond, on a goroutine.
func waits(w *world) {
	c, m := arena.Cond{Sync: w.syncs[0]}, arena.Mutex{Sync: w.syncs[1]}
	begun := make(chan struct{})
	w.startJob(func() {
		err := m.Lock(background)
		close(begun)
		if err == nil || errors.Is(err, arena.ErrOwnerDied) {
			_, err = c.Wait(background, m)
		}
		if errors.Is(err, arena.ErrOwnerDied) {
			err = m.MarkConsistent()
		}
		if err := errors.Join(err, m.Unlock()); err != nil {
			w.addProblem("wait: %v", err)
		}
	})
	<-begun
	time.Sleep(time.Millisecond) // then it is usually parked
}

// napsFor is less than the duration of a nap.
const napsFor = 400 * time.Microsecond

// naps waits for the event until the victim is dead, with a new view each time, because a view
// that is used for the first time has not learned yet that naps are futile.
func naps(w *world) {
	for !w.over.Load() {
		s, err := w.d.OpenSync(w.syncs[0].Handle(), arena.FormEvent)
		if err != nil {
			w.addProblem("open an event: %v", err)
			return
		}
		ctx, cancel := context.WithTimeout(background, napsFor)
		if err := (arena.Event{Sync: s}).Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.addProblem("wait: %v", err)
		}
		cancel()
		s.Close()
	}
}

var syncScenarios = map[string]*scenario{
	"sync new": {act: func(v *victim) error {
		for _, opts := range []arena.SyncOptions{aMutex, aSemaphore, aBarrier} {
			s, err := v.d.NewSync(opts)
			if err != nil {
				return err
			}
			if opts == aMutex {
				s.SetFlag(1)
			}
			s.Close()
			if err := v.d.Release(s.Handle()); err != nil {
				return err
			}
		}
		return nil
	}},
	"sync mutex": {
		setup: syncs(aMutex), prep: opensSyncs(arena.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(m.Lock(background), m.Unlock(), m.TryLock(), m.Unlock(),
				wants(m.Unlock(), arena.ErrNotOwner))
		},
		after: locksAgain(0),
	},
	"sync mutex of the dead": {
		apart: true,
		setup: func(w *world) error {
			return errors.Join(syncs(aMutex)(w), w.kill("sync mutex", "Mutex.Lock", "CAS", "after"))
		},
		prep: opensSyncs(arena.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(wants(m.Lock(background), arena.ErrOwnerDied), m.MarkConsistent(), m.Unlock())
		},
		after: locksAgain(0),
	},
	"sync mutex lost": {
		apart: true,
		setup: func(w *world) error {
			return errors.Join(syncs(aMutex)(w), w.kill("sync mutex", "Mutex.Lock", "CAS", "after"))
		},
		prep: opensSyncs(arena.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(wants(m.Lock(background), arena.ErrOwnerDied), m.Unlock(),
				wants(m.TryLock(), arena.ErrNotRecoverable))
		},
		after: func(w *world) { // already lost, or lost by this call
			m := arena.Mutex{Sync: w.syncs[0]}
			err := m.TryLock()
			if errors.Is(err, arena.ErrOwnerDied) {
				err = errors.Join(m.Unlock(), m.TryLock())
			}
			if !errors.Is(err, arena.ErrNotRecoverable) {
				w.addProblem("the lock: %v", err)
			}
		},
	},
	"sync mutex parked": {
		setup: syncs(aMutex), prep: opensSyncs(arena.FormMutex),
		ready: func(w *world) {
			m := arena.Mutex{Sync: w.syncs[0]}
			m.TryLock()
			w.startJob(func() { w.until(m.Parked); m.Unlock() })
		},
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(m.Lock(background), m.Unlock())
		},
		after: func(w *world) { w.wait(); locksAgain(0)(w) },
	},
	"sync mutex wakes": {
		setup: syncs(aMutex),
		prep: func(v *victim) error {
			return errors.Join(opensSyncs(arena.FormMutex)(v), v.mutex(0).TryLock())
		},
		ready: func(w *world) { w.startJob(func() { locksAgain(0)(w) }); time.Sleep(time.Millisecond) },
		act:   func(v *victim) error { return v.mutex(0).Unlock() },
	},
	"sync recursive": {
		setup: syncs(aMutex), prep: opensSyncs(arena.FormMutex),
		act: func(v *victim) error {
			m := arena.RecursiveMutex{Sync: v.syncs[0]}
			return errors.Join(m.Lock(background, 7), m.TryLock(7), m.Unlock(7), m.Unlock(7))
		},
		after: locksAgain(0),
	},
	"sync readers": {
		setup: syncs(anRWMutex), prep: opensSyncs(arena.FormRWMutex),
		act: func(v *victim) error {
			m := v.rwMutex()
			return errors.Join(m.RLock(background), m.TryRLock(), m.RUnlock(), wants(m.TryLock(), arena.ErrLocked),
				briefly(m.Lock), m.RUnlock(), m.Lock(background), m.Unlock())
		},
		after: writes,
	},
	"sync readers of a dead writer": {
		setup: func(w *world) error {
			return errors.Join(syncs(anRWMutex)(w), arena.RWMutex{Sync: w.syncs[0]}.TryRLock(),
				w.kill("sync writer", "Mutex.TryLock", "CAS", "after"))
		},
		prep: opensSyncs(arena.FormRWMutex),
		act: func(v *victim) error { // finds the death and a reader
			m := v.rwMutex()
			return errors.Join(wants(m.TryRLock(), arena.ErrOwnerDied), wants(m.TryLock(), arena.ErrLocked))
		},
		after: writes,
	},
	"sync writer": {
		setup: syncs(anRWMutex), prep: opensSyncs(arena.FormRWMutex),
		act: func(v *victim) error {
			if err := v.rwMutex().TryLock(); err != nil {
				return wants(err, arena.ErrLocked)
			}
			return v.rwMutex().Unlock()
		},
		after: writes,
	},
	"sync semaphore": {
		setup: syncs(aSemaphore), prep: opensSyncs(arena.FormSemaphore),
		act: func(v *victim) error {
			m := v.semaphore(0)
			return errors.Join(m.Acquire(background), m.TryAcquire(), wants(m.TryAcquire(), arena.ErrLocked),
				m.Release(), m.Release(),
				wants(m.Release(), arena.ErrReleased))
		},
		after: counted,
	},
	"sync semaphore of the dead": {
		setup: func(w *world) error {
			return errors.Join(syncs(aSemaphore)(w), w.kill("sync semaphore", "Semaphore.setPermits", "Store", "after"))
		},
		prep: opensSyncs(arena.FormSemaphore),
		act: func(v *victim) error {
			m := v.semaphore(0)
			return errors.Join(m.Acquire(background), m.Acquire(background), m.Release(), m.Release())
		},
		after: counted,
	},
	"sync semaphore parked": { // two wait for one permit
		setup: syncs(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1, Bounded: true}),
		prep:  opensSyncs(arena.FormSemaphore),
		ready: func(w *world) {
			m := arena.Semaphore{Sync: w.syncs[0]}
			m.TryAcquire()
			w.startJob(func() {
				if err := errors.Join(m.Acquire(background), m.Release()); err != nil {
					w.addProblem("acquire: %v", err)
				}
			})
			w.startJob(func() { w.until(m.Parked); m.Release() })
		},
		act: func(v *victim) error {
			return errors.Join(v.semaphore(0).Acquire(background), v.semaphore(0).Release())
		},
		after: func(w *world) {
			w.wait()
			if n, err := (arena.Semaphore{Sync: w.syncs[0]}).Permits(); n != 1 || err != nil {
				w.addProblem("%d permits of one, %v", n, err)
			}
		},
	},
	"sync semaphore mourned": {
		setup: func(w *world) error {
			return errors.Join(syncs(aSemaphore)(w), w.kill("sync semaphore", "Semaphore.unlockCell", "CAS", "after"))
		},
		prep: opensSyncs(arena.FormSemaphore),
		act: func(v *victim) error {
			_, err := v.semaphore(0).Permits()
			return errors.Join(err, wants(v.semaphore(0).TakeDeath(), arena.ErrOwnerDied), v.semaphore(0).TakeDeath())
		},
		after: counted,
	},
	"sync signal": {
		setup: syncs(aSignal), prep: opensSyncs(arena.FormSemaphore),
		ready: func(w *world) {
			w.startJob(func() {
				if err := (arena.Semaphore{Sync: w.syncs[0]}).Acquire(background); err != nil {
					w.addProblem("acquire: %v", err)
				}
			})
			time.Sleep(time.Millisecond)
		},
		act:   func(v *victim) error { return errors.Join(v.semaphore(0).Release(), v.semaphore(0).Release()) },
		after: func(w *world) { (arena.Semaphore{Sync: w.syncs[0]}).Release() },
	},
	"sync event": {
		setup: syncs(anEvent), prep: opensSyncs(arena.FormEvent),
		ready: func(w *world) {
			w.startJob(func() {
				if err := (arena.Event{Sync: w.syncs[0]}).Wait(background); err != nil {
					w.addProblem("wait: %v", err)
				}
			})
		},
		act: func(v *victim) error {
			e := v.event()
			e.Set()
			e.Clear()
			return briefly(e.Wait)
		},
		after: func(w *world) { arena.Event{Sync: w.syncs[0]}.Set() },
	},
	"sync event rouses": { // the bench naps repeatedly
		setup: syncs(anEvent), prep: opensSyncs(arena.FormEvent),
		ready: func(w *world) { w.startJob(func() { naps(w) }) },
		act: func(v *victim) error {
			e := v.event()
			for range 3 {
				time.Sleep(napsFor / 2) // then the bench usually naps
				e.Set()
				e.Clear()
			}
			return nil
		},
	},
	"sync event naps": {
		setup: syncs(anEvent), prep: opensSyncs(arena.FormEvent),
		ready: func(w *world) {
			w.startJob(func() { w.until(w.syncs[0].Parked); arena.Event{Sync: w.syncs[0]}.Set() })
		},
		act:   func(v *victim) error { return v.event().Wait(background) },
		after: func(w *world) { arena.Event{Sync: w.syncs[0]}.Set() },
	},
	"sync cond waits": {
		setup: syncs(aCond, aMutex), prep: opensSyncs(arena.FormCond, arena.FormMutex),
		ready: func(w *world) {
			c := arena.Cond{Sync: w.syncs[0]}
			w.startJob(func() { w.until(func() bool { return c.Parked() && c.Notify(1) == 1 }) })
		},
		act: func(v *victim) error {
			m := v.mutex(1)
			err := m.Lock(background)
			_, waited := v.cond().Wait(background, m)
			ended := briefly(func(ctx context.Context) error { _, err := v.cond().Wait(ctx, m); return err })
			return errors.Join(err, waited, ended, m.Unlock())
		},
		after: locksAgain(1),
	},
	"sync cond notifies": {
		setup: syncs(aCond, aMutex), prep: opensSyncs(arena.FormCond, arena.FormMutex),
		ready: waits,
		act:   func(v *victim) error { v.cond().Notify(1); return nil },
		after: func(w *world) { wakesAll(w); w.wait(); locksAgain(1)(w) },
	},
	"sync cond of the dead": { // a waiter is dead; the others must get its notification
		setup: func(w *world) error {
			return errors.Join(syncs(aCond, aMutex)(w), w.kill("sync cond waits", "Cond.takeTicket", "Add", "after"))
		},
		prep: opensSyncs(arena.FormCond, arena.FormMutex),
		act:  func(v *victim) error { v.cond().Notify(1); return nil },
		after: func(w *world) {
			if n := (arena.Cond{Sync: w.syncs[0]}).Notify(1); n != 0 {
				w.addProblem("%d dead were notified", n)
			}
			locksAgain(1)(w)
		},
	},
	"sync barrier": {
		setup: syncs(aBarrier), prep: opensSyncs(arena.FormBarrier),
		ready: func(w *world) {
			w.startJob(func() {
				b := arena.Barrier{Sync: w.syncs[0]}
				for err := error(nil); err == nil; {
					_, err = b.Wait(background, nil)
				}
			})
		},
		act: func(v *victim) error {
			b := v.barrier()
			var errs []error
			for range 3 {
				_, err := b.Wait(background, func() error { return nil })
				errs = append(errs, err)
			}
			b.Abort()
			return errors.Join(errs...)
		},
		after: func(w *world) {
			w.until(arena.Barrier{Sync: w.syncs[0]}.Broken)
			w.wait()
			meets(w)
		},
	},
	"sync barrier of the dead": {
		setup: func(w *world) error {
			return errors.Join(syncs(aBarrier)(w), w.kill("sync barrier alone", "Barrier.Wait", "CAS", "after"))
		},
		prep: opensSyncs(arena.FormBarrier),
		act: func(v *victim) error {
			b := v.barrier()
			_, err := b.Wait(background, nil)
			b.Reset()
			return wants(err, arena.ErrBroken)
		},
		after: meets,
	},
	"sync barrier is watched": { // the watcher must learn the victim's message or its death
		setup: syncs(aBarrier, anEvent),
		prep:  opensSyncs(arena.FormBarrier, arena.FormEvent),
		ready: func(w *world) {
			b, said := arena.Barrier{Sync: w.syncs[0]}, arena.Event{Sync: w.syncs[1]}
			w.startJob(func() {
				err := b.Watch(background, func() bool { return b.Broken() })
				if err := errors.Join(err, b.Watch(background,
					func() bool { return said.IsSet() || b.Lost() > 0 })); err != nil {
					w.addProblem("watch: %v", err)
				}
			})
		},
		act: func(v *victim) error {
			v.barrier().Abort()
			arena.Event{Sync: v.syncs[1]}.Set()
			v.barrier().Abort() // breaks nothing more, but must be noticed
			return nil
		},
		after: func(w *world) { w.wait(); meets(w) },
	},
	"sync barrier watches": { // the victim watches, and the bench rings it
		setup: syncs(aBarrier),
		prep:  opensSyncs(arena.FormBarrier),
		ready: func(w *world) {
			w.startJob(func() {
				for !w.over.Load() {
					arena.Barrier{Sync: w.syncs[0]}.Abort()
					time.Sleep(time.Millisecond)
				}
			})
		},
		act: func(v *victim) error {
			var looks atomic.Int32
			// the first rings have no reason
			return v.barrier().Watch(background, func() bool { return looks.Add(1) > 4 })
		},
		after: meets,
	},
	"sync barrier alone": {
		setup: syncs(aBarrier),
		prep:  opensSyncs(arena.FormBarrier),
		act: func(v *victim) error {
			err := briefly(func(ctx context.Context) error { _, err := v.barrier().Wait(ctx, nil); return err })
			v.barrier().Reset()
			return err
		},
		after: meets,
	},
	"sync barrier is reset": { // after the death of a member
		setup: syncs(aBarrier),
		prep:  opensSyncs(arena.FormBarrier),
		ready: func(w *world) {
			before := w.d.Stats().Reaped
			if err := w.leaveDead("sync barrier alone", "Barrier.Wait", "CAS", "after"); err != nil {
				w.addProblem("ready: %v", err)
			}
			w.briefly(func() bool { w.d.Reap(); return w.d.Stats().Reaped > before })
		},
		act:   func(v *victim) error { v.barrier().Reset(); return nil },
		after: meets,
	},
	"sync barrier of the dead is joined": {
		setup: func(w *world) error {
			return errors.Join(syncs(aBarrier)(w), w.kill("sync barrier alone", "Barrier.Wait", "CAS", "after"))
		},
		act: func(v *victim) error { return opensSyncs(arena.FormBarrier)(v) },
		after: func(w *world) {
			if !(arena.Barrier{Sync: w.syncs[0]}).Broken() {
				w.addProblem("a death was forgotten")
			}
			meets(w)
		},
	},
	"sync barrier loses a newborn": { // the victim is its starter
		setup: syncs(aBarrier),
		prep:  opensSyncs(arena.FormBarrier),
		ready: func(w *world) {
			b := arena.Barrier{Sync: w.syncs[0]}
			w.startJob(func() {
				if _, err := b.Wait(background, nil); !errors.Is(err, arena.ErrBroken) {
					w.addProblem("a newborn died and a wait returns %v", err)
				}
			})
		},
		act: func(v *victim) error {
			arg, err := v.d.Deliver([]arena.Handle{v.syncs[0].Handle()})
			if err != nil {
				return err
			}
			arg.Lost(newborn)
			return arg.Close()
		},
		after: func(w *world) { w.wait(); meets(w) },
	},
	"sync leave": { // an orderly exit must not break anything
		setup: syncs(aBarrier, aMutex), prep: opensSyncs(arena.FormBarrier, arena.FormMutex),
		act:   func(v *victim) error { return v.d.Close() },
		after: meets,
	},
}
