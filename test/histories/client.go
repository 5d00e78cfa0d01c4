//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
)

var work = shoal.Register("histories", func(ctx context.Context, rank int, j job) error {
	c, err := newClient(j, rank)
	if err != nil {
		return err
	}
	k := kindNamed(j.Kind)
	for i := range objects {
		c.recorder.object = i
		time.Sleep(time.Duration(j.Start + int64(i)*int64(interval) - now()))
		for n := 0; n < opsEach && now() < j.Start+int64(i+1)*int64(interval); n++ {
			if err := k.work(c, ctx, i); err != nil {
				return fmt.Errorf("object %d: %w", i, err)
			}
			if c.random.IntN(3) == 0 {
				runtime.Gosched()
			}
		}
		if err := c.release(i); err != nil {
			return err
		}
	}
	if rank < j.Kills {
		<-ctx.Done() // it is killed, however late
	}
	return nil
})

// A client performs operations on a session's objects and records them. Only one goroutine may
// use it. It works on one object at a time; its methods for a kind of object have the object's
// index.
type client struct {
	job
	number   uint8
	random   *rand.Rand
	recorder *recorder
	value    uint64 // the newest that this client has put, stored or set
	locked   bool   // it holds the mutex of the present object
	held     int    // permits of the present semaphore
	seen     uint64 // a value of a dict
}

func logOf(j job, number int) string { return fmt.Sprint(j.Log, number) }

func newClient(j job, number int) (*client, error) {
	r, err := openRecorder(logOf(j, number))
	return &client{
		job: j, number: uint8(number), recorder: r,
		random: rand.New(rand.NewPCG(j.Seed, uint64(number)+2)),
	}, err
}

// next returns a value that no client has used, and that is not 0.
func (c *client) next() uint64 {
	c.value++
	return uint64(c.number)<<32 | c.value
}

// wait returns a context with a random deadline: up to 0.5 ms ahead, or in the past with a
// probability of one third. The caller must call the returned function.
func (c *client) wait(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(c.random.IntN(750)-250)*time.Microsecond)
}

// outcomeOf returns the outcome that corresponds to err, the result of an operation. If none
// does, it returns err.
func outcomeOf(err error) (outcome, error) {
	if err == nil {
		return done, nil
	}
	if errors.Is(err, ipc.ErrOwnerDied) {
		return ownerDied, nil
	}
	for _, known := range []error{ipc.ErrFull, ipc.ErrEmpty, ipc.ErrLocked, ipc.ErrNotOwner, manager.ErrNoKey} {
		if errors.Is(err, known) {
			return refused, nil
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return expired, nil
	}
	return 0, err
}

// do calls f and records it as the operation name, which has no value. It returns the outcome,
// and an error if f's error corresponds to no outcome or the recorder fails.
func (c *client) do(name opName, f func() error) (outcome, error) {
	var end outcome
	err := c.recorder.do(op{Client: c.number, Name: name}, func() (r result, err error) {
		end, err = outcomeOf(f())
		return result{Outcome: end}, err
	})
	return end, err
}

// put calls f with a new value and records it as a put. It returns an error if f's error
// corresponds to no outcome or the recorder fails.
func (c *client) put(f func(v uint64) error) error {
	v := c.next()
	return c.recorder.do(op{Client: c.number, Name: opPut, Value: v}, func() (r result, err error) {
		r.Outcome, err = outcomeOf(f(v))
		return r, err
	})
}

func (c *client) get(name opName, f func() (uint64, error)) (r result, err error) {
	err = c.recorder.do(op{Client: c.number, Name: name}, func() (result, error) {
		v, err := f()
		r.Outcome, err = outcomeOf(err)
		if r.Outcome == done {
			r.Value = v
		}
		return r, err
	})
	return r, err
}

func (c *client) queue(ctx context.Context, i int) error {
	q := c.Queues[i]
	ctx, cancel := c.wait(ctx)
	defer cancel()
	switch c.random.IntN(4) {
	case 0:
		return c.put(func(v uint64) error { return q.Put(ctx, v) })
	case 1:
		return c.put(q.TryPut)
	case 2:
		_, err := c.get(opGet, func() (uint64, error) { return q.Get(ctx) })
		return err
	}
	_, err := c.get(opGet, q.TryGet)
	return err
}

// drainQueue gets and records the values of queue i until there is none.
func (c *client) drainQueue(_ context.Context, i int) error {
	for {
		if r, err := c.get(opGet, c.Queues[i].TryGet); err != nil || r.Outcome != done {
			return err
		}
	}
}

func (c *client) latest(ctx context.Context, i int) error {
	if c.random.IntN(2) == 0 {
		return c.load(ctx, i)
	}
	v := c.next()
	return c.recorder.do(op{Client: c.number, Name: opStore, Value: v}, func() (r result, err error) {
		r.Version, err = c.Latests[i].Store(ctx, v)
		r.Outcome = done
		return r, err
	})
}

func (c *client) load(_ context.Context, i int) error {
	return c.recorder.do(op{Client: c.number, Name: opLoad}, func() (r result, err error) {
		r.Value, r.Version, err = c.Latests[i].Load()
		r.Outcome = done
		return r, err
	})
}

func (c *client) dict(ctx context.Context, i int) error {
	d := c.Dicts[i]
	o := op{Client: c.number, Key: uint8(c.random.IntN(keys))}
	var f func() (uint64, error)
	switch c.random.IntN(5) {
	case 0:
		o.Name, o.Value = opSet, c.next()
		f = func() (uint64, error) { return 0, d.Set(ctx, o.Key, o.Value) }
	case 1:
		o.Name = opDelete
		f = func() (uint64, error) { return 0, d.Delete(ctx, o.Key) }
	case 2:
		o.Name = opPop
		f = func() (uint64, error) { return d.Pop(ctx, o.Key) }
	case 3:
		o.Name, o.Value, o.Old = opSwap, c.next(), c.seen
		f = func() (uint64, error) {
			swapped, err := d.CompareAndSwap(ctx, o.Key, o.Old, o.Value)
			if err == nil && !swapped {
				err = manager.ErrNoKey
			}
			return 0, err
		}
	default:
		return c.lookup(ctx, d, o.Key)
	}
	return c.recorder.do(o, func() (r result, err error) {
		r.Value, err = f()
		r.Outcome, err = outcomeOf(err)
		if r.Outcome != done {
			r.Value = 0
		}
		return r, err
	})
}

func (c *client) lookup(ctx context.Context, d *manager.Dict[uint8, uint64], key uint8) error {
	return c.recorder.do(op{Client: c.number, Name: opLookup, Key: key}, func() (r result, err error) {
		v, err := d.Get(ctx, key)
		if r.Outcome, err = outcomeOf(err); r.Outcome == done {
			r.Value, c.seen = v, v
		}
		return r, err
	})
}

func (c *client) drainDict(ctx context.Context, i int) error {
	for key := range uint8(keys) {
		if err := c.lookup(ctx, c.Dicts[i], key); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) mutex(ctx context.Context, i int) error {
	m := c.Mutexes[i]
	if c.locked {
		return c.unlock(i)
	}
	ctx, cancel := c.wait(ctx)
	defer cancel()
	lock := m.TryLock
	if c.random.IntN(2) == 0 {
		lock = func() error { return m.Lock(ctx) }
	}
	return c.lock(m, lock)
}

// lock locks m by f, and marks it consistent if its owner has died. It sets c.locked if f succeeds.
// A refusal or the end of a deadline is recorded as an outcome and is not an error.
func (c *client) lock(m *ipc.Mutex, f func() error) error {
	end, err := c.do(opLock, f)
	c.locked = end == done || end == ownerDied
	if end == ownerDied && err == nil {
		_, err = c.do(opMark, m.MarkConsistent)
	}
	return err
}

func (c *client) unlock(i int) error {
	c.locked = false
	_, err := c.do(opUnlock, c.Mutexes[i].Unlock)
	return err
}

// drainMutex locks and unlocks mutex i. Every other process must have unlocked it or died with
// it.
func (c *client) drainMutex(ctx context.Context, i int) error {
	m := c.Mutexes[i]
	if err := c.lock(m, func() error { return m.Lock(ctx) }); err != nil {
		return err
	}
	return c.unlock(i)
}

func (c *client) semaphore(ctx context.Context, i int) error {
	s := c.Semaphores[i]
	switch n := c.random.IntN(5); {
	case n < 2 && c.held > 0:
		return c.giveBack(i)
	case n == 2:
		_, err := c.get(opPermits, func() (uint64, error) {
			free, err := s.Permits()
			return uint64(free), err
		})
		return err
	}
	ctx, cancel := c.wait(ctx)
	defer cancel()
	acquire := s.TryAcquire
	if c.random.IntN(2) == 0 {
		acquire = func() error { return s.Acquire(ctx) }
	}
	end, err := c.do(opAcquire, acquire)
	if end == done {
		c.held++
	}
	return err
}

func (c *client) giveBack(i int) error {
	c.held--
	_, err := c.do(opRelease, c.Semaphores[i].Release)
	return err
}

// drainSemaphore acquires every permit of semaphore i and releases them. The permits of dead
// processes must have returned.
func (c *client) drainSemaphore(ctx context.Context, i int) error {
	for range permits {
		if _, err := c.do(opAcquire, func() error { return c.Semaphores[i].Acquire(ctx) }); err != nil {
			return err
		}
		c.held++
	}
	if _, err := c.do(opAcquire, c.Semaphores[i].TryAcquire); err != nil {
		return err
	}
	return c.release(i)
}

// release releases the permits and the lock that the client holds of object i.
func (c *client) release(i int) error {
	for c.held > 0 {
		if err := c.giveBack(i); err != nil {
			return err
		}
	}
	if c.locked {
		return c.unlock(i)
	}
	return nil
}
