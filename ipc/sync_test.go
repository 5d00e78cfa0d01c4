package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A toolbox is one of each thing to synchronise by. It travels as an argument, and as a queue's
// element.
type toolbox struct {
	Mutex     *ipc.Mutex
	RW        *ipc.RWMutex
	Recursive *ipc.RecursiveMutex
	Semaphore *ipc.Semaphore
	Cond      *ipc.Cond
	Event     *ipc.Event
	Barrier   *ipc.Barrier
	Once      *ipc.Once
	Value     *ipc.Value[float64]
	Array     *ipc.Array[int16]
	None      *ipc.Mutex
}

func newToolbox(t testing.TB) *toolbox {
	t.Helper()
	var b toolbox
	var errs [10]error
	b.Mutex, errs[0] = ipc.NewMutex()
	b.RW, errs[1] = ipc.NewRWMutex()
	b.Recursive, errs[2] = ipc.NewRecursiveMutex()
	b.Semaphore, errs[3] = ipc.NewBoundedSemaphore(1)
	b.Cond, errs[4] = ipc.NewCond(nil)
	b.Event, errs[5] = ipc.NewEvent()
	b.Barrier, errs[6] = ipc.NewBarrier(2)
	b.Once, errs[7] = ipc.NewOnce()
	b.Value, errs[8] = ipc.NewValue(0.5)
	b.Array, errs[9] = ipc.ArrayOf([]int16{1, 2, 3})
	testutil.NoError(t, errors.Join(errs[:]...))
	t.Cleanup(func() { testutil.NoError(t, b.close()) })
	return &b
}

func (b *toolbox) close() error {
	return errors.Join(b.Mutex.Close(), b.RW.Close(), b.Recursive.Close(), b.Semaphore.Close(),
		b.Cond.Close(), b.Event.Close(),
		b.Barrier.Close(), b.Once.Close(), b.Value.Close(), b.Array.Close())
}

// soon is a deadline for what does not come.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestQueue_CarriesEveryPrimitive(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		b, q := newToolbox(t), newQueue[*toolbox](t, 1)
		testutil.NoError(t, q.Put(ctx, b))
		c, err := q.Get(ctx)
		testutil.NoError(t, err)
		defer c.close()
		testutil.NoError(t, b.Mutex.Lock(ctx))
		testutil.ErrorIs(t, c.Mutex.TryLock(), ipc.ErrLocked)
		if !c.Mutex.Locked() || c.None != nil {
			t.Error("it is another Mutex")
		}
		testutil.NoError(t, c.Mutex.Unlock()) // the process has the lock
		testutil.ErrorIs(t, b.Mutex.Unlock(), ipc.ErrNotOwner)
		testutil.NoError(t, b.RW.RLock(ctx))
		testutil.ErrorIs(t, c.RW.TryLock(), ipc.ErrLocked)
		testutil.NoError(t, c.RW.TryRLock())
		testutil.NoError(t, errors.Join(c.RW.RUnlock(), b.RW.RUnlock(), c.RW.Lock(ctx), c.RW.Unlock()))
		testutil.ErrorIs(t, b.RW.RUnlock(), ipc.ErrNotOwner)
		testutil.NoError(t, b.Semaphore.Acquire(ctx))
		testutil.ErrorIs(t, c.Semaphore.TryAcquire(), ipc.ErrLocked)
		testutil.NoError(t, c.Semaphore.Release())
		testutil.ErrorIs(t, b.Semaphore.Release(), ipc.ErrReleased)
		testutil.NoError(t, c.Event.Set())
		testutil.NoError(t, b.Event.Wait(ctx))
		testutil.NoError(t, b.Once.Do(ctx, func() error { return nil }))
		testutil.NoError(t, c.Once.Do(ctx, func() error { return errors.New("once more") }))
		if v, err := c.Value.Add(1); v != 1.5 || err != nil {
			t.Error(v, err)
		}
		if v, err := b.Array.Add(2, 4); v != 7 || err != nil || c.Array.Len() != 3 {
			t.Error(v, err)
		}
		o := ipc.NewOwner()
		testutil.NoError(t, errors.Join(b.Recursive.Lock(ctx, o), c.Recursive.Lock(ctx, o)))
		testutil.ErrorIs(t, c.Recursive.TryLock(ipc.NewOwner()), ipc.ErrLocked)
		testutil.ErrorIs(t, c.Recursive.TryLock(ipc.Owner{}), ipc.ErrNotOwner)
		testutil.ErrorIs(t, c.Recursive.Unlock(ipc.NewOwner()), ipc.ErrNotOwner)
		testutil.NoError(t, errors.Join(c.Recursive.Unlock(o), b.Recursive.Unlock(o)))
		met := make(chan error)
		go func() { _, err := b.Barrier.Wait(ctx); met <- err }()
		_, err = c.Barrier.Wait(ctx)
		testutil.NoError(t, errors.Join(err, <-met))
	})
}

func TestMutex_OfAnotherTypeIsRefused(t *testing.T) {
	local(t)
	b := newToolbox(t)
	_, err := receive[ipc.Event](t, b.Mutex)
	testutil.ErrorIs(t, err, ipc.ErrType)
	_, err = receive[ipc.Value[float32]](t, b.Value)
	testutil.ErrorIs(t, err, ipc.ErrType)
	_, err = receive[ipc.Array[float64]](t, b.Value)
	testutil.ErrorIs(t, err, ipc.ErrType)
	var zero ipc.Mutex
	testutil.ErrorIs(t, zero.Lock(t.Context()), ipc.ErrClosed)
	testutil.ErrorIs(t, zero.Unlock(), ipc.ErrClosed)
	testutil.ErrorIs(t, zero.MarkConsistent(), ipc.ErrClosed)
	testutil.NoError(t, zero.Close())
}

func TestMutex_DeadlineNamesItsHolder(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		b := newToolbox(t)
		testutil.NoError(t, b.Mutex.TryLock())
		err := b.Mutex.Lock(soon(t))
		testutil.ErrorIs(t, err, ipc.ErrLocked, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), fmt.Sprintf("by process %d", os.Getpid())) {
			t.Errorf("%v does not say who has it", err)
		}
		testutil.NoError(t, b.Semaphore.TryAcquire())
		testutil.ErrorIs(t, b.Semaphore.Acquire(soon(t)), ipc.ErrLocked, context.DeadlineExceeded)
		testutil.ErrorIs(t, b.Event.Wait(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, b.Cond.Mutex().TryLock())
		testutil.ErrorIs(t, b.Cond.Wait(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, b.Cond.Mutex().Unlock())
		testutil.ErrorIs(t, b.Cond.Wait(t.Context()), ipc.ErrNotOwner)
		_, err = b.Barrier.Wait(soon(t))
		testutil.ErrorIs(t, err, ipc.ErrBroken, context.DeadlineExceeded)
		if !b.Barrier.Broken() || b.Barrier.Waiting() != 0 || b.Barrier.Parties() != 2 {
			t.Error("a barrier whose wait ended is not broken")
		}
		testutil.NoError(t, b.Barrier.Reset())
		testutil.NoError(t, errors.Join(b.Mutex.Unlock(), b.Semaphore.Release()))
	})
}

func TestMutex_CloseEndsWaitsAndAHeldLockStays(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		m, err := ipc.NewMutex()
		testutil.NoError(t, err)
		testutil.NoError(t, m.Lock(ctx))
		done := make(chan error)
		go func() { done <- m.Lock(ctx) }()
		testutil.NoError(t, m.Close())
		testutil.ErrorIs(t, <-done, ipc.ErrClosed)
		testutil.ErrorIs(t, m.Lock(ctx), ipc.ErrClosed)
		if d.Stats().Blocks != 1 {
			t.Error("a lock that is held went away")
		}
		testutil.NoError(t, m.Unlock())
		testutil.ErrorIs(t, m.Unlock(), ipc.ErrClosed)
		testutil.NoError(t, m.Close())
	})
}

func TestOnce_IsDoneOnce(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		b := newToolbox(t)
		testutil.ErrorIs(t, b.Once.Do(ctx, func() error { return ipc.ErrFull }), ipc.ErrFull)
		func() {
			defer func() { recover() }()
			b.Once.Do(ctx, func() error { panic("not done") })
		}()
		if done, err := b.Once.Done(); done || err != nil {
			t.Error(done, err)
		}
		var calls atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { testutil.NoError(t, b.Once.Do(ctx, func() error { calls.Add(1); return nil })) })
		}
		wg.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestCond_HandsOver(t *testing.T) {
	local(t) // where the race detector sees that the lock is one
	ctx := testutil.Context(t)
	m, err := ipc.NewMutex()
	testutil.NoError(t, err)
	c, err := ipc.NewCond(m)
	testutil.NoError(t, errors.Join(err, m.Close())) // c has one of its own
	defer c.Close()
	const total = 200
	ready, taken := 0, 0
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				testutil.NoError(t, c.Mutex().Lock(ctx))
				testutil.NoError(t, c.WaitFor(ctx, func() bool { return ready > 0 || taken == total }))
				if ready > 0 {
					ready--
					taken++
				}
				over := taken == total
				testutil.NoError(t, c.Mutex().Unlock())
				if over {
					testutil.NoError(t, c.NotifyAll())
					return
				}
			}
		})
	}
	for range total {
		testutil.NoError(t, c.Mutex().Lock(ctx))
		ready++
		testutil.NoError(t, c.Notify(1))
		testutil.NoError(t, c.Mutex().Unlock())
	}
	wg.Wait()
}

func number[T ipc.Number](t *testing.T, high T) {
	t.Helper()
	a, err := ipc.NewArray[T](5)
	testutil.NoError(t, err)
	defer a.Close()
	testutil.NoError(t, a.Write(0, []T{1, 2, 3, high, 5}))
	var wg sync.WaitGroup
	for range 4 { // neighbours do not disturb each other
		wg.Go(func() {
			for range 25 {
				if _, err := a.Add(1, 1); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 25 {
				if _, err := a.Add(2, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := make([]T, 5)
	testutil.NoError(t, a.Read(0, got))
	if want := []T{1, 102, 103, high, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if ok, err := a.CompareAndSwap(3, 1, 9); ok || err != nil {
		t.Error("it was swapped", err)
	}
	if ok, err := a.CompareAndSwap(3, high, 9); !ok || err != nil {
		t.Error("it was not swapped", err)
	}
	if v, err := a.At(3); v != 9 || err != nil {
		t.Error(v, err)
	}
	testutil.ErrorIs(t, a.Set(5, 1), ipc.ErrIndex)
	testutil.ErrorIs(t, a.Set(-6, 1), ipc.ErrIndex)
	testutil.ErrorIs(t, a.Read(3, got), ipc.ErrIndex)
	testutil.ErrorIs(t, a.Read(math.MaxInt, got), ipc.ErrIndex)
	testutil.NoError(t, a.Read(5, nil))
}

type celsius float32

func TestArray_OfNumbersOfEverySize(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		number[int8](t, math.MinInt8)
		number[uint8](t, math.MaxUint8)
		number[int16](t, math.MinInt16)
		number[uint16](t, math.MaxUint16)
		number[int32](t, math.MinInt32)
		number[uint32](t, math.MaxUint32)
		number[int64](t, math.MinInt64)
		number[uint64](t, math.MaxUint64)
		number[int](t, math.MinInt)
		number[float32](t, math.MaxFloat32)
		number[float64](t, math.Inf(-1))
		number[celsius](t, -273.15)
		_, err := ipc.NewArray[int](-1)
		testutil.ErrorIs(t, err, ipc.ErrSize)
		none, err := ipc.NewArray[int](0)
		testutil.NoError(t, err)
		if none.Len() != 0 {
			t.Error(none.Len())
		}
		testutil.NoError(t, none.Close())
		testutil.ErrorIs(t, none.Set(0, 1), ipc.ErrClosed)
	})
}

// receive encodes v and decodes it as a T.
func receive[T any](t testing.TB, v any) (T, error) {
	t.Helper()
	return codec.Decode[T](decoderOf(t, v))
}

// decoderOf returns a decoder of a message with v.
func decoderOf(t testing.TB, v any) *codec.Decoder {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	enc, dec := new(codec.Encoder), new(codec.Decoder)
	enc.Reset(nil)
	testutil.NoError(t, codec.EncodeValue(enc, v))
	t.Cleanup(func() { enc.Done(true); dec.Done(false) })
	dec.Reset(enc.Message(), importer{d, enc.Message().Blocks})
	return dec
}
