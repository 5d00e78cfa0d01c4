//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
)

// syncs makes things to synchronise by, which the bench holds until the round is over.
func syncs(all ...shm.SyncOptions) func(*world) error {
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

// opensSyncs opens what syncs made, in the victim.
func opensSyncs(forms ...shm.Form) func(*victim) error {
	return func(v *victim) error {
		for i, form := range forms {
			if err := v.d.Import(shm.Handle(v.Args[i])); err != nil {
				return err
			}
			s, err := v.d.OpenSync(shm.Handle(v.Args[i]), form)
			if err != nil {
				return err
			}
			v.syncs = append(v.syncs, s)
		}
		return nil
	}
}

var (
	aMutex     = shm.SyncOptions{Form: shm.FormMutex}
	anRWMutex  = shm.SyncOptions{Form: shm.FormRWMutex}
	aSemaphore = shm.SyncOptions{Form: shm.FormSemaphore, Limit: 2, Bounded: true}
	aSignal    = shm.SyncOptions{Form: shm.FormSemaphore}
	aCond      = shm.SyncOptions{Form: shm.FormCond}
	anEvent    = shm.SyncOptions{Form: shm.FormEvent}
	aBarrier   = shm.SyncOptions{Form: shm.FormBarrier, Limit: 2}
)

func (v *victim) mutex(i int) shm.Mutex         { return shm.Mutex{Sync: v.syncs[i]} }
func (v *victim) semaphore(i int) shm.Semaphore { return shm.Semaphore{Sync: v.syncs[i]} }
func (v *victim) rwMutex() shm.RWMutex          { return shm.RWMutex{Sync: v.syncs[0]} }
func (v *victim) cond() shm.Cond                { return shm.Cond{Sync: v.syncs[0]} }
func (v *victim) event() shm.Event              { return shm.Event{Sync: v.syncs[0]} }
func (v *victim) barrier() shm.Barrier          { return shm.Barrier{Sync: v.syncs[0]} }

// wants returns nil if err is what it should be.
func wants(err, want error) error {
	if !errors.Is(err, want) {
		return errors.Join(errors.New("not "+want.Error()), err)
	}
	return nil
}

// briefly returns what f returns when its context ends, which is soon.
func briefly(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	return wants(f(ctx), context.DeadlineExceeded)
}

// locksAgain takes the lock of the dead one, and gives it back in order.
func locksAgain(i int) func(*world) {
	return func(w *world) {
		m := shm.Mutex{Sync: w.syncs[i]}
		ctx, cancel := context.WithTimeout(background, limit())
		defer cancel()
		err := m.Lock(ctx)
		if errors.Is(err, shm.ErrOwnerDied) {
			err = m.MarkConsistent()
		}
		if err := errors.Join(err, m.Unlock(), m.TryLock(), m.Unlock()); err != nil {
			w.say("the lock: %v", err)
		}
	}
}

// writes takes the lock for writing: no dead reader is in the way.
func writes(w *world) {
	m := shm.RWMutex{Sync: w.syncs[0]}
	for m.RUnlock() == nil {
	}
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	err := m.Lock(ctx)
	if errors.Is(err, shm.ErrOwnerDied) {
		err = m.MarkConsistent()
	}
	if err := errors.Join(err, m.Unlock(), m.TryRLock(), m.RUnlock()); err != nil {
		w.say("the lock: %v", err)
	}
}

// permits wants all permits to be there, and no more.
func permits(w *world) {
	m := shm.Semaphore{Sync: w.syncs[0]}
	for m.Release() == nil {
	}
	for range 2 {
		if err := m.TryAcquire(); err != nil {
			w.say("a permit is lost: %v", err)
		}
	}
	if err := m.TryAcquire(); !errors.Is(err, shm.ErrLocked) {
		w.say("there are more permits than two: %v", err)
	}
}

// counted wants all permits to be there without a release.
func counted(w *world) {
	if n, err := (shm.Semaphore{Sync: w.syncs[0]}).Permits(); n != 2 || err != nil {
		w.say("%d permits, %v", n, err)
	}
	permits(w)
}

// meets resets a barrier and goes through it with somebody else.
func meets(w *world) {
	b := shm.Barrier{Sync: w.syncs[0]}
	b.Reset()
	ctx, cancel := context.WithTimeout(background, limit())
	defer cancel()
	other := make(chan error)
	go func() { _, err := b.Wait(ctx, nil); other <- err }()
	_, err := b.Wait(ctx, nil)
	if err := errors.Join(err, <-other); err != nil {
		w.say("the barrier: %v", err)
	}
}

// newborn is the process number of nobody.
const newborn = 1<<22 - 1

// wakesAll ends the waits of the bench itself.
func wakesAll(w *world) { shm.Cond{Sync: w.syncs[0]}.Notify(1 << 20) }

// waits has the bench wait in the Cond.
func waits(w *world) {
	c, m := shm.Cond{Sync: w.syncs[0]}, shm.Mutex{Sync: w.syncs[1]}
	begun := make(chan struct{})
	w.do(func() {
		err := m.Lock(background)
		close(begun)
		if err == nil || errors.Is(err, shm.ErrOwnerDied) {
			_, err = c.Wait(background, m)
		}
		if errors.Is(err, shm.ErrOwnerDied) {
			err = m.MarkConsistent()
		}
		if err := errors.Join(err, m.Unlock()); err != nil {
			w.say("wait: %v", err)
		}
	})
	<-begun
	time.Sleep(time.Millisecond) // mostly it is parked then
}

// napsFor is less than a nap is long.
const napsFor = 400 * time.Microsecond

// naps waits for an event by one view after the other: a goroutine that has just begun to use a
// view has not yet learned that a nap is in vain.
func naps(w *world) {
	for !w.over.Load() {
		s, err := w.d.OpenSync(w.syncs[0].Handle(), shm.FormEvent)
		if err != nil {
			w.say("open an event: %v", err)
			return
		}
		ctx, cancel := context.WithTimeout(background, napsFor)
		if err := (shm.Event{Sync: s}).Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.say("wait: %v", err)
		}
		cancel()
		s.Close()
	}
}

var syncScenarios = map[string]*scenario{
	"sync new": {act: func(v *victim) error {
		for _, opts := range []shm.SyncOptions{aMutex, aSemaphore, aBarrier} {
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
		setup: syncs(aMutex), prep: opensSyncs(shm.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(m.Lock(background), m.Unlock(), m.TryLock(), m.Unlock(),
				wants(m.Unlock(), shm.ErrNotOwner))
		},
		after: locksAgain(0),
	},
	"sync mutex of the dead": {
		apart: true,
		setup: func(w *world) error {
			return errors.Join(syncs(aMutex)(w), w.kill("sync mutex", "Mutex.Lock", "CAS", "after"))
		},
		prep: opensSyncs(shm.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(wants(m.Lock(background), shm.ErrOwnerDied), m.MarkConsistent(), m.Unlock())
		},
		after: locksAgain(0),
	},
	"sync mutex lost": {
		apart: true,
		setup: func(w *world) error {
			return errors.Join(syncs(aMutex)(w), w.kill("sync mutex", "Mutex.Lock", "CAS", "after"))
		},
		prep: opensSyncs(shm.FormMutex),
		act: func(v *victim) error {
			m := v.mutex(0)
			return errors.Join(wants(m.Lock(background), shm.ErrOwnerDied), m.Unlock(),
				wants(m.TryLock(), shm.ErrNotRecoverable))
		},
		after: func(w *world) { // lost by now, or to be lost here
			m := shm.Mutex{Sync: w.syncs[0]}
			err := m.TryLock()
			if errors.Is(err, shm.ErrOwnerDied) {
				err = errors.Join(m.Unlock(), m.TryLock())
			}
			if !errors.Is(err, shm.ErrNotRecoverable) {
				w.say("the lock: %v", err)
			}
		},
	},
	"sync mutex parked": {
		setup: syncs(aMutex), prep: opensSyncs(shm.FormMutex),
		ready: func(w *world) {
			m := shm.Mutex{Sync: w.syncs[0]}
			m.TryLock()
			w.do(func() { w.until(m.Parked); m.Unlock() })
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
			return errors.Join(opensSyncs(shm.FormMutex)(v), v.mutex(0).TryLock())
		},
		ready: func(w *world) { w.do(func() { locksAgain(0)(w) }); time.Sleep(time.Millisecond) },
		act:   func(v *victim) error { return v.mutex(0).Unlock() },
	},
	"sync recursive": {
		setup: syncs(aMutex), prep: opensSyncs(shm.FormMutex),
		act: func(v *victim) error {
			m := shm.RecursiveMutex{Sync: v.syncs[0]}
			return errors.Join(m.Lock(background, 7), m.TryLock(7), m.Unlock(7), m.Unlock(7))
		},
		after: locksAgain(0),
	},
	"sync readers": {
		setup: syncs(anRWMutex), prep: opensSyncs(shm.FormRWMutex),
		act: func(v *victim) error {
			m := v.rwMutex()
			return errors.Join(m.RLock(background), m.TryRLock(), m.RUnlock(), wants(m.TryLock(), shm.ErrLocked),
				briefly(m.Lock), m.RUnlock(), m.Lock(background), m.Unlock())
		},
		after: writes,
	},
	"sync readers of a dead writer": {
		setup: func(w *world) error {
			return errors.Join(syncs(anRWMutex)(w), shm.RWMutex{Sync: w.syncs[0]}.TryRLock(),
				w.kill("sync writer", "Mutex.TryLock", "CAS", "after"))
		},
		prep: opensSyncs(shm.FormRWMutex),
		act: func(v *victim) error { // it finds the death, and a reader
			m := v.rwMutex()
			return errors.Join(wants(m.TryRLock(), shm.ErrOwnerDied), wants(m.TryLock(), shm.ErrLocked))
		},
		after: writes,
	},
	"sync writer": {
		setup: syncs(anRWMutex), prep: opensSyncs(shm.FormRWMutex),
		act: func(v *victim) error {
			if err := v.rwMutex().TryLock(); err != nil {
				return wants(err, shm.ErrLocked)
			}
			return v.rwMutex().Unlock()
		},
		after: writes,
	},
	"sync semaphore": {
		setup: syncs(aSemaphore), prep: opensSyncs(shm.FormSemaphore),
		act: func(v *victim) error {
			m := v.semaphore(0)
			return errors.Join(m.Acquire(background), m.TryAcquire(), wants(m.TryAcquire(), shm.ErrLocked),
				m.Release(), m.Release(),
				wants(m.Release(), shm.ErrReleased))
		},
		after: counted,
	},
	"sync semaphore of the dead": {
		setup: func(w *world) error {
			return errors.Join(syncs(aSemaphore)(w), w.kill("sync semaphore", "Semaphore.grant", "Store", "after"))
		},
		prep: opensSyncs(shm.FormSemaphore),
		act: func(v *victim) error {
			m := v.semaphore(0)
			return errors.Join(m.Acquire(background), m.Acquire(background), m.Release(), m.Release())
		},
		after: counted,
	},
	"sync semaphore parked": { // two wait for one permit
		setup: syncs(shm.SyncOptions{Form: shm.FormSemaphore, Limit: 1, Bounded: true}),
		prep:  opensSyncs(shm.FormSemaphore),
		ready: func(w *world) {
			m := shm.Semaphore{Sync: w.syncs[0]}
			m.TryAcquire()
			w.do(func() {
				if err := errors.Join(m.Acquire(background), m.Release()); err != nil {
					w.say("acquire: %v", err)
				}
			})
			w.do(func() { w.until(m.Parked); m.Release() })
		},
		act: func(v *victim) error {
			return errors.Join(v.semaphore(0).Acquire(background), v.semaphore(0).Release())
		},
		after: func(w *world) {
			w.wait()
			if n, err := (shm.Semaphore{Sync: w.syncs[0]}).Permits(); n != 1 || err != nil {
				w.say("%d permits of one, %v", n, err)
			}
		},
	},
	"sync semaphore mourned": {
		setup: func(w *world) error {
			return errors.Join(syncs(aSemaphore)(w), w.kill("sync semaphore", "Semaphore.exit", "CAS", "after"))
		},
		prep: opensSyncs(shm.FormSemaphore),
		act: func(v *victim) error {
			_, err := v.semaphore(0).Permits()
			return errors.Join(err, wants(v.semaphore(0).TakeDeath(), shm.ErrOwnerDied), v.semaphore(0).TakeDeath())
		},
		after: counted,
	},
	"sync signal": {
		setup: syncs(aSignal), prep: opensSyncs(shm.FormSemaphore),
		ready: func(w *world) {
			w.do(func() {
				if err := (shm.Semaphore{Sync: w.syncs[0]}).Acquire(background); err != nil {
					w.say("acquire: %v", err)
				}
			})
			time.Sleep(time.Millisecond)
		},
		act:   func(v *victim) error { return errors.Join(v.semaphore(0).Release(), v.semaphore(0).Release()) },
		after: func(w *world) { (shm.Semaphore{Sync: w.syncs[0]}).Release() },
	},
	"sync event": {
		setup: syncs(anEvent), prep: opensSyncs(shm.FormEvent),
		ready: func(w *world) {
			w.do(func() {
				if err := (shm.Event{Sync: w.syncs[0]}).Wait(background); err != nil {
					w.say("wait: %v", err)
				}
			})
		},
		act: func(v *victim) error {
			e := v.event()
			e.Set()
			e.Clear()
			return briefly(e.Wait)
		},
		after: func(w *world) { shm.Event{Sync: w.syncs[0]}.Set() },
	},
	"sync event rouses": { // the bench naps again and again
		setup: syncs(anEvent), prep: opensSyncs(shm.FormEvent),
		ready: func(w *world) { w.do(func() { naps(w) }) },
		act: func(v *victim) error {
			e := v.event()
			for range 3 {
				time.Sleep(napsFor / 2) // mostly the bench naps then
				e.Set()
				e.Clear()
			}
			return nil
		},
	},
	"sync event naps": {
		setup: syncs(anEvent), prep: opensSyncs(shm.FormEvent),
		ready: func(w *world) {
			w.do(func() { w.until(w.syncs[0].Parked); shm.Event{Sync: w.syncs[0]}.Set() })
		},
		act:   func(v *victim) error { return v.event().Wait(background) },
		after: func(w *world) { shm.Event{Sync: w.syncs[0]}.Set() },
	},
	"sync cond waits": {
		setup: syncs(aCond, aMutex), prep: opensSyncs(shm.FormCond, shm.FormMutex),
		ready: func(w *world) {
			c := shm.Cond{Sync: w.syncs[0]}
			w.do(func() { w.until(func() bool { return c.Parked() && c.Notify(1) == 1 }) })
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
		setup: syncs(aCond, aMutex), prep: opensSyncs(shm.FormCond, shm.FormMutex),
		ready: waits,
		act:   func(v *victim) error { v.cond().Notify(1); return nil },
		after: func(w *world) { wakesAll(w); w.wait(); locksAgain(1)(w) },
	},
	"sync cond of the dead": { // one who waited is dead; its notification goes to the others
		setup: func(w *world) error {
			return errors.Join(syncs(aCond, aMutex)(w), w.kill("sync cond waits", "Cond.arrive", "Add", "after"))
		},
		prep: opensSyncs(shm.FormCond, shm.FormMutex),
		act:  func(v *victim) error { v.cond().Notify(1); return nil },
		after: func(w *world) {
			if n := (shm.Cond{Sync: w.syncs[0]}).Notify(1); n != 0 {
				w.say("%d dead were notified", n)
			}
			locksAgain(1)(w)
		},
	},
	"sync barrier": {
		setup: syncs(aBarrier), prep: opensSyncs(shm.FormBarrier),
		ready: func(w *world) {
			w.do(func() {
				b := shm.Barrier{Sync: w.syncs[0]}
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
			w.until(shm.Barrier{Sync: w.syncs[0]}.Broken)
			w.wait()
			meets(w)
		},
	},
	"sync barrier of the dead": {
		setup: func(w *world) error {
			return errors.Join(syncs(aBarrier)(w), w.kill("sync barrier alone", "Barrier.Wait", "CAS", "after"))
		},
		prep: opensSyncs(shm.FormBarrier),
		act: func(v *victim) error {
			b := v.barrier()
			_, err := b.Wait(background, nil)
			b.Reset()
			return wants(err, shm.ErrBroken)
		},
		after: meets,
	},
	"sync barrier is watched": { // who watches learns what the victim says before it aborts, or that it is dead
		setup: syncs(aBarrier, anEvent),
		prep:  opensSyncs(shm.FormBarrier, shm.FormEvent),
		ready: func(w *world) {
			b, said := shm.Barrier{Sync: w.syncs[0]}, shm.Event{Sync: w.syncs[1]}
			w.do(func() {
				err := b.Watch(background, func() bool { return b.Broken() })
				if err := errors.Join(err, b.Watch(background,
					func() bool { return said.IsSet() || b.Lost() > 0 })); err != nil {
					w.say("watch: %v", err)
				}
			})
		},
		act: func(v *victim) error {
			v.barrier().Abort()
			shm.Event{Sync: v.syncs[1]}.Set()
			v.barrier().Abort() // breaks nothing more, and is heard all the same
			return nil
		},
		after: func(w *world) { w.wait(); meets(w) },
	},
	"sync barrier watches": { // the victim, which the bench rings
		setup: syncs(aBarrier),
		prep:  opensSyncs(shm.FormBarrier),
		ready: func(w *world) {
			w.do(func() {
				for !w.over.Load() {
					shm.Barrier{Sync: w.syncs[0]}.Abort()
					time.Sleep(time.Millisecond)
				}
			})
		},
		act: func(v *victim) error {
			var looks atomic.Int32
			// it is rung for nothing first
			return v.barrier().Watch(background, func() bool { return looks.Add(1) > 4 })
		},
		after: meets,
	},
	"sync barrier alone": {
		setup: syncs(aBarrier),
		prep:  opensSyncs(shm.FormBarrier),
		act: func(v *victim) error {
			err := briefly(func(ctx context.Context) error { _, err := v.barrier().Wait(ctx, nil); return err })
			v.barrier().Reset()
			return err
		},
		after: meets,
	},
	"sync barrier is reset": { // after the death of a member
		setup: syncs(aBarrier),
		prep:  opensSyncs(shm.FormBarrier),
		ready: func(w *world) {
			before := w.d.Stats().Reaped
			if err := w.leaveDead("sync barrier alone", "Barrier.Wait", "CAS", "after"); err != nil {
				w.say("ready: %v", err)
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
		act: func(v *victim) error { return opensSyncs(shm.FormBarrier)(v) },
		after: func(w *world) {
			if !(shm.Barrier{Sync: w.syncs[0]}).Broken() {
				w.say("a death was forgotten")
			}
			meets(w)
		},
	},
	"sync barrier loses a newborn": { // the victim is its starter
		setup: syncs(aBarrier),
		prep:  opensSyncs(shm.FormBarrier),
		ready: func(w *world) {
			b := shm.Barrier{Sync: w.syncs[0]}
			w.do(func() {
				if _, err := b.Wait(background, nil); !errors.Is(err, shm.ErrBroken) {
					w.say("a newborn died and a wait returns %v", err)
				}
			})
		},
		act: func(v *victim) error {
			arg, err := v.d.Deliver([]shm.Handle{v.syncs[0].Handle()})
			if err != nil {
				return err
			}
			arg.Lost(newborn)
			return arg.Close()
		},
		after: func(w *world) { w.wait(); meets(w) },
	},
	"sync leave": { // in order: it breaks nothing
		setup: syncs(aBarrier, aMutex), prep: opensSyncs(shm.FormBarrier, shm.FormMutex),
		act:   func(v *victim) error { return v.d.Close() },
		after: meets,
	},
}
