package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/ipc"
)

// An end is of a queue or a pipe that is parted between victim and survivor.
type end int

const (
	noEnd end = iota
	aSender
	aReceiver
	aSide
)

// A place is where a victim dies, and what the survivor is doing meanwhile.
type place struct {
	name     string
	has      end                                           // what the victim alone has
	waits    bool                                          // the survivor, when the victim dies
	before   func(ctx context.Context, v victimPart) error // survivor, before there is a victim
	victim   func(ctx context.Context, v victimPart) error
	survivor func(ctx context.Context, v victimPart) error // its end of the queue is the one that the victim has not
	// what the survivor is told beside who it was; nil: it goes on as ever
	died    error
	stopped error // what its deadline tells it, if the victim was only stopped
}

func until(f func() error) error {
	for {
		if err := f(); err != nil {
			return err
		}
	}
}

// locks is the place in which a lock is held.
func locks(name string, lock func(ctx context.Context, b *toolbox) error, repair func(b *toolbox) error) place {
	return place{
		name: name, waits: true, died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
		victim: func(ctx context.Context, v victimPart) error { return v.stay(lock(ctx, v.Tools)) },
		survivor: func(ctx context.Context, v victimPart) error {
			err := lock(ctx, v.Tools)
			if errors.Is(err, ipc.ErrOwnerDied) {
				err = errors.Join(err, repair(v.Tools))
			}
			return err
		},
	}
}

// beside waits, gives what it and the victim wait for, and returns what became of the waiting. The
// victim may be stopped, and rung first.
func beside(ctx context.Context, wait func(context.Context) error, give func() error) error {
	patient, end := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer end()
	got, others := make(chan error, 1), parked()
	go func() { got <- wait(patient) }()
	for parked() <= others && patient.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return errors.Join(give(), <-got)
}

var someone = ipc.NewOwner()

func allPlaces() []place {
	barrier := func(ctx context.Context, v victimPart) error { _, err := v.Tools.Barrier.Wait(ctx); return err }
	return slices.Concat(channels(), queues(), joinables(), memories(), []place{
		locks("mutex/holding", func(ctx context.Context, b *toolbox) error { return b.Mutex.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Mutex.MarkConsistent(), b.Mutex.Unlock()) }),
		locks("rwmutex/writing", func(ctx context.Context, b *toolbox) error { return b.RW.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.RW.MarkConsistent(), b.RW.Unlock()) }),
		locks("recursive mutex/holding twice",
			func(ctx context.Context, b *toolbox) error {
				if err := b.Recursive.Lock(ctx, someone); err != nil {
					return err
				}
				return b.Recursive.Lock(ctx, someone)
			},
			func(b *toolbox) error {
				return errors.Join(b.Recursive.MarkConsistent(someone), b.Recursive.Unlock(someone))
			}),
		locks("cond/holding the lock", func(ctx context.Context, b *toolbox) error { return b.Cond.Mutex().Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Cond.Mutex().MarkConsistent(), b.Cond.Mutex().Unlock()) }),
		locks("value/holding its lock", func(ctx context.Context, b *toolbox) error { return b.Value.Lock(ctx) },
			func(b *toolbox) error { return errors.Join(b.Value.MarkConsistent(), b.Value.Unlock()) }),
		{
			name: "array/in the middle of a copy", waits: true, died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error {
				if err := v.Tools.Array.Lock(ctx); err != nil {
					return err
				}
				v.there()
				return until(func() error { return v.Tools.Array.Write(0, []int16{4, 5, 6}) })
			},
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.Array.Lock(ctx)
				if errors.Is(err, ipc.ErrOwnerDied) {
					err = errors.Join(err, v.Tools.Array.MarkConsistent(), v.Tools.Array.Unlock())
				}
				return err
			},
		},
		{
			name:   "mutex/waiting beside others",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.Mutex.Lock(ctx) },
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return v.stay(v.Tools.Mutex.Lock(ctx))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(beside(ctx, v.Tools.Mutex.Lock, v.Tools.Mutex.Unlock), v.Tools.Mutex.Unlock())
			},
		},
		{
			name: "rwmutex/writing, for a reader", waits: true, died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
			victim:   func(ctx context.Context, v victimPart) error { return v.stay(v.Tools.RW.Lock(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error { return v.Tools.RW.RLock(ctx) },
		},
		{ // who waits for readers has the lock
			name: "rwmutex/waiting to write", died: ipc.ErrOwnerDied, stopped: ipc.ErrLocked,
			before: func(ctx context.Context, v victimPart) error { return v.Tools.RW.RLock(ctx) },
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(v.Tools.RW.Lock(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				err := errors.Join(v.Tools.RW.RUnlock(), v.Tools.RW.Lock(ctx))
				if errors.Is(err, ipc.ErrOwnerDied) {
					err = errors.Join(err, v.Tools.RW.MarkConsistent(), v.Tools.RW.Unlock())
				}
				return err
			},
		},
		{
			name:   "rwmutex/waiting to read",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.RW.Lock(ctx) },
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(v.Tools.RW.RLock(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.RW.Unlock(), v.Tools.RW.TryLock(), v.Tools.RW.Unlock())
			},
		},
		{
			name:   "recursive mutex/waiting",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.Recursive.Lock(ctx, someone) },
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return v.stay(v.Tools.Recursive.Lock(ctx, ipc.NewOwner()))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.Recursive.Unlock(someone), v.Tools.Recursive.TryLock(someone),
					v.Tools.Recursive.Unlock(someone))
			},
		},
		{
			name: "value/in the middle of additions",
			victim: func(ctx context.Context, v victimPart) error {
				v.there()
				return until(func() error { _, err := v.Tools.Value.Add(1); return err })
			},
			survivor: func(ctx context.Context, v victimPart) error {
				sum, err := v.Tools.Value.Add(0.25)
				if whole := sum - 0.75; err == nil && whole != math.Trunc(whole) { // it was 0.5
					err = fmt.Errorf("%v is no sum of what was added", sum)
				}
				return err
			},
		},
		{
			name: "rwmutex/reading", waits: true, stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error { return v.stay(v.Tools.RW.RLock(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.RW.Lock(ctx)
				if err == nil {
					err = v.Tools.RW.Unlock()
				}
				return err
			},
		},
		{
			name: "semaphore/holding", waits: true, stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error { return v.stay(v.Tools.Semaphore.Acquire(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				err := v.Tools.Semaphore.Acquire(ctx)
				if err == nil {
					err = v.Tools.Semaphore.Release()
				}
				return err
			},
		},
		{
			name:   "semaphore/waiting beside others",
			before: func(ctx context.Context, v victimPart) error { return v.Tools.Semaphore.Acquire(ctx) },
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return v.stay(v.Tools.Semaphore.Acquire(ctx))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(beside(ctx, v.Tools.Semaphore.Acquire, v.Tools.Semaphore.Release),
					v.Tools.Semaphore.Release())
			},
		},
		{
			name: "cond/inside wait",
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return errors.Join(v.Tools.Cond.Mutex().Lock(ctx), v.Tools.Cond.Wait(ctx), v.stay(nil))
			},
			survivor: func(ctx context.Context, v victimPart) error {
				c := v.Tools.Cond
				if err := c.Mutex().Lock(ctx); err != nil {
					return err
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					if c.Mutex().Lock(ctx) == nil { // only when the survivor waits
						c.NotifyAll()
						c.Mutex().Unlock()
					}
				}()
				err := c.Wait(ctx)
				err = errors.Join(err, c.Mutex().Unlock())
				<-done
				return err
			},
		},
		{
			name:   "event/inside wait",
			victim: func(ctx context.Context, v victimPart) error { v.soon(); return v.stay(v.Tools.Event.Wait(ctx)) },
			survivor: func(ctx context.Context, v victimPart) error {
				return errors.Join(v.Tools.Event.Set(), v.Tools.Event.Wait(ctx))
			},
		},
		{
			name: "barrier/inside", waits: true, died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim: func(ctx context.Context, v victimPart) error {
				v.soon()
				return errors.Join(barrier(ctx, v), v.stay(nil))
			},
			survivor: barrier,
		},
		{
			name: "barrier/on the way to it", waits: true, died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim:   func(ctx context.Context, v victimPart) error { return v.stay(nil) },
			survivor: barrier,
		},
		{
			name: "barrier/in its action", waits: true, died: ipc.ErrBroken, stopped: ipc.ErrBroken,
			victim: func(ctx context.Context, v victimPart) error {
				v.Tools.Barrier.Action = func() error { return v.stay(nil) }
				for range 2 {
					go barrier(ctx, v)
				}
				return barrier(ctx, v)
			},
			survivor: barrier,
		},
		{
			name: "once/in the middle", waits: true, stopped: ipc.ErrLocked,
			victim: func(ctx context.Context, v victimPart) error {
				return v.Tools.Once.Do(ctx, func() error { return v.stay(nil) })
			},
			survivor: func(ctx context.Context, v victimPart) error {
				again := errors.New("it was not done again")
				err := v.Tools.Once.Do(ctx, func() error { again = nil; return nil })
				if err == nil {
					err = again
				}
				return err
			},
		},
	})
}

func placeNamed(name string) place {
	for _, p := range allPlaces() {
		if p.name == name {
			return p
		}
	}
	panic("there is no place " + name)
}
