package ipc_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestLease_StaysInTheQueueUntilItIsAcknowledged(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[note](t, 4)
		blocks := d.Stats().Blocks
		for n := range 3 {
			b := testutil.Value(makeBlob(d, text(0, n)))(t)
			testutil.NoError(t, q.Put(ctx, note{N: n, Blob: b}))
			testutil.NoError(t, b.Close())
		}
		take := func(want int) *ipc.Lease[note] {
			t.Helper()
			l := testutil.Value(q.Receiver().Lease(ctx))(t)
			if got := string(l.Value.Blob.bytes()[:len(text(0, want))]); l.Value.N != want || got != text(0, want) {
				t.Fatalf("leased %d %q, want %d", l.Value.N, got, want)
			}
			testutil.NoError(t, l.Value.Blob.Close())
			return l
		}
		a, b := take(0), take(1)
		if q.Len() != 1 {
			t.Errorf("Len is %d, want 1", q.Len())
		}
		testutil.NoError(t, a.Nack())
		if q.Len() != 2 {
			t.Errorf("Len is %d, want 2", q.Len())
		}
		testutil.ErrorIs(t, a.Nack(), ipc.ErrSettled)
		testutil.ErrorIs(t, a.Ack(), ipc.ErrSettled)
		a = take(0) // before the one that has waited
		testutil.NoError(t, a.Ack())
		testutil.ErrorIs(t, a.Ack(), ipc.ErrSettled)
		testutil.NoError(t, b.Ack())
		c := take(2)
		testutil.NoError(t, c.Nack())
		v := testutil.Value(q.Get(ctx))(t) // a get takes it as well
		testutil.NoError(t, v.Blob.Close())
		_, err := q.TryGet()
		testutil.ErrorIs(t, err, ipc.ErrEmpty)
		if n := d.Stats().Blocks; n != blocks {
			t.Errorf("%d blocks are left, want %d", n, blocks)
		}
		testutil.ErrorIs(t, new(ipc.Lease[int]).Ack(), ipc.ErrSettled)
	})
}

func TestLease_ReceiversWaitForTheLastOne(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 4)
		testutil.NoError(t, q.Put(ctx, 7))
		testutil.NoError(t, q.Finish())
		l := testutil.Value(q.Receiver().Lease(ctx))(t)
		_, err := q.TryGet()
		testutil.ErrorIs(t, err, ipc.ErrEmpty)
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = q.Receiver().Lease(brief)
		testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)

		again := make(chan error, 1)
		go func() {
			l, err := q.Receiver().Lease(ctx)
			if err == nil && l.Value != 7 {
				err = errors.New("another value")
			}
			if err == nil {
				err = l.Ack()
			}
			again <- err
		}()
		testutil.NoError(t, l.Nack())
		testutil.NoError(t, <-again)
		_, err = q.Receiver().Lease(ctx)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
	})
}

func TestLease_IsAcknowledgedWhileOthersWait(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 1)
		testutil.NoError(t, q.Put(ctx, 1))
		l := testutil.Value(q.Receiver().Lease(ctx))(t)
		testutil.ErrorIs(t, q.TryPut(2), ipc.ErrFull) // its slot is leased
		put := make(chan error, 1)
		go func() { put <- q.Put(ctx, 2) }()
		testutil.NoError(t, l.Ack())
		testutil.NoError(t, <-put)
		l = testutil.Value(q.Receiver().Lease(ctx))(t)
		testutil.NoError(t, q.Finish())
		got := make(chan error, 1)
		go func() { _, err := q.Get(ctx); got <- err }()
		testutil.NoError(t, l.Ack())
		testutil.ErrorIs(t, <-got, ipc.ErrClosed)
	})
}

// A Lease outlives the Receiver, and one that is forgotten is returned.
func TestLease_IsReturnedWhenItIsForgotten(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 4)
		testutil.NoError(t, q.Put(ctx, 1))
		testutil.NoError(t, q.Put(ctx, 2))
		r := testutil.Value(q.Receiver().Clone())(t)
		l := testutil.Value(r.Lease(ctx))(t)
		testutil.Value(r.Lease(ctx))(t)
		testutil.NoError(t, r.Close())
		testutil.NoError(t, l.Ack())
		testutil.Eventually(t, func() bool { runtime.GC(); return q.Len() == 1 }, "the lease is not returned")
		if v := testutil.Value(q.Get(ctx))(t); v != 2 {
			t.Errorf("got %d, want 2", v)
		}
	})
}

// The last receiving end is closed while a value of it is leased: a return lets go of the value.
func TestLease_OfAQueueWithoutReceivers(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		before := d.Stats().Blocks
		q := testutil.Value(ipc.NewQueue[*blob](2))(t)
		b := testutil.Value(makeBlob(d, "blob"))(t)
		testutil.NoError(t, q.Put(ctx, b))
		testutil.NoError(t, b.Close())
		l := testutil.Value(q.Receiver().Lease(ctx))(t)
		testutil.NoError(t, l.Value.Close())
		testutil.NoError(t, q.Close())
		testutil.NoError(t, l.Nack())
		testutil.Eventually(t, func() bool { return d.Stats().Blocks == before }, "blocks are left over")
	})
}

func TestLeases_EndsWithTheQueue(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx, q := testutil.Context(t), newQueue[int](t, 100)
		for n := range 100 {
			testutil.NoError(t, q.Put(ctx, n))
		}
		testutil.NoError(t, q.Finish())
		seen := make([]int, 100)
		for l, err := range q.Receiver().Leases(ctx) {
			testutil.NoError(t, err)
			if seen[l.Value]++; seen[l.Value] == 1 && l.Value%3 == 0 {
				testutil.NoError(t, l.Nack())
				continue
			}
			testutil.NoError(t, l.Ack())
		}
		for n, times := range seen {
			if want := 1 + (2-n%3)/2; times != want {
				t.Errorf("%d came %d times, want %d", n, times, want)
			}
		}
	})
}
