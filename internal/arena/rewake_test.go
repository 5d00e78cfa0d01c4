package arena_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// When a woken waiter takes nothing, the next one is woken. A participant that
// lies down and does not get up hears nothing, like one that is stopped.
func TestRewake_DeafWaiterIsInNobodysWay(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, end := context.WithCancel(testutil.Context(t))
		defer end()
		a, deaf, b := f.first, f.join(), f.join()
		r, s, v := newRing(t, a, 1)
		lock, err := a.NewSync(arena.SyncOptions{Form: arena.FormMutex})
		testutil.NoError(t, err)
		permits, err := a.NewSync(arena.SyncOptions{Form: arena.FormSemaphore})
		testutil.NoError(t, err)
		testutil.NoError(t, arena.Mutex{Sync: lock}.TryLock())
		for _, c := range []struct {
			name string
			wait func(d *arena.Domain) func() error
			asks func(seat int) bool
			give func() error
		}{
			{"message", func(d *arena.Domain) func() error {
				theirs := open(t, d, r.Handle(), s, v)
				return func() error { return theirs.Get(ctx, new(arena.Message)) }
			}, r.Asks, func() error { return r.TryPut(nil, nil, false) }},
			{"lock", func(d *arena.Domain) func() error {
				theirs := arena.Mutex{Sync: view(t, d, lock, arena.FormMutex)}
				return func() error { return theirs.Lock(ctx) }
			}, lock.Asks, arena.Mutex{Sync: lock}.Unlock},
			{"permit", func(d *arena.Domain) func() error {
				theirs := arena.Semaphore{Sync: view(t, d, permits, arena.FormSemaphore)}
				return func() error { return theirs.Acquire(ctx) }
			}, permits.Asks, arena.Semaphore{Sync: permits}.Release},
		} {
			deaf.LieDown()
			one, other := async(c.wait(deaf)), async(c.wait(b))
			testutil.Eventually(t, func() bool { return c.asks(deaf.Seat()) && c.asks(b.Seat()) },
				"one of two does not wait for a %s", c.name)
			testutil.NoError(t, c.give())
			select { // something else may wake the deaf
			case err = <-one:
			case err = <-other:
			}
			deaf.GetUp()
			testutil.NoError(t, err)
			defer func() { // before the domains are closed
				end()
				select {
				case <-one:
				case <-other:
				}
			}()
		}
	})
}

// view gives d a view of s.
func view(t *testing.T, d *arena.Domain, s *arena.Sync, form arena.Form) *arena.Sync {
	t.Helper()
	testutil.NoError(t, d.Import(s.Handle()))
	v, err := d.OpenSync(s.Handle(), form)
	testutil.NoError(t, err)
	return v
}

// A waiter that was not woken for what there is has it at its deadline.
func TestWait_DeadlineEndsTheWaitAndNotTheTry(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, deaf := f.first, f.join()
		deaf.LieDown()
		defer deaf.GetUp()
		r, s, v := newRing(t, a, 1)
		theirs := open(t, deaf, r.Handle(), s, v)
		ctx, end := context.WithCancelCause(testutil.Context(t))
		got := async(func() error { return theirs.Get(ctx, new(arena.Message)) })
		testutil.Eventually(t, func() bool { return r.Asks(deaf.Seat()) }, "nobody waits")
		testutil.NoError(t, r.TryPut(nil, nil, false))
		end(errors.New("enough"))
		testutil.NoError(t, <-got)
	})
}

// Receivers that all wait for the next message take turns. One in four of the messages is each
// one's share; what counts here is that none of them starves, since a receiver that comes to wait
// may find the message that another one was woken for.
func TestWait_ReceiversTakeTurns(t *testing.T) {
	const receivers, messages = 4, 80
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		r, s, v := newRing(t, f.first, 1)
		var got [receivers]atomic.Int32
		var all []<-chan error
		var seats []int
		for i := range receivers {
			d := f.join()
			theirs := open(t, d, r.Handle(), s, v)
			seats = append(seats, d.Seat())
			all = append(all, async(func() error {
				for {
					if err := theirs.Get(ctx, new(arena.Message)); err != nil {
						return err
					}
					got[i].Add(1)
				}
			}))
		}
		for range messages {
			for _, seat := range seats {
				testutil.Eventually(t, func() bool { return r.Asks(seat) }, "not all wait")
			}
			testutil.NoError(t, r.Put(ctx, nil, nil, false))
		}
		r.Finish()
		for _, a := range all {
			wantIs(t, <-a, arena.ErrFinished)
		}
		counts := make([]int32, receivers)
		for i := range got {
			counts[i] = got[i].Load()
		}
		t.Log(counts)
		if least := slices.Min(counts); least < messages/receivers/4 {
			t.Errorf("%v of %d messages", counts, messages)
		}
	})
}
