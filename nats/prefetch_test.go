package nats_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Values that were asked for ahead come in order, once, to several goroutines. Those that nobody
// took go to other receivers when the queue is closed.
func TestQueue_Prefetch(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	q := open[int](t, c, "ahead", nats.QueueOptions{Prefetch: 20})
	const values = 500
	vs := make([]int, values)
	for i := range vs {
		vs[i] = i
	}
	_, err := q.PutN(ctx, vs)
	testutil.NoError(t, err)
	for want := range 100 {
		if v, err := q.Get(ctx); v != want || err != nil {
			t.Fatalf("%d, %v, want %d", v, err, want)
		}
	}
	var mu sync.Mutex
	seen := make(map[int]int)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 100 {
				d, err := q.Next(ctx)
				if err == nil {
					err = d.Ack(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[d.Value]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	testutil.Eventually(t, func() bool { return count(t, q).Taken > 0 }, "no values wait here")
	testutil.NoError(t, q.Close())
	other := open[int](t, c, "ahead", nats.QueueOptions{})
	testutil.NoError(t, other.Finish(ctx))
	for v, err := range other.All(ctx) {
		testutil.NoError(t, err)
		seen[v]++
	}
	for v := 100; v < values; v++ {
		if seen[v] != 1 {
			t.Errorf("%d came %d times", v, seen[v])
		}
	}
}

// A process that has asked ahead and gets no more keeps nothing from the others for longer than
// AckWait, though it lives.
func TestQueue_PrefetchedValuesAreNotHoarded(t *testing.T) {
	ctx := testutil.Context(t)
	c := local(t)
	lazy := open[int](t, c, "lazy", nats.QueueOptions{Prefetch: 20, AckWait: 300 * time.Millisecond})
	other := open[int](t, c, "lazy", nats.QueueOptions{})
	_, err := lazy.PutN(ctx, []int{0, 1, 2, 3, 4})
	testutil.NoError(t, err)
	v, err := lazy.Get(ctx)
	testutil.NoError(t, err)
	seen := map[int]bool{v: true}
	for len(seen) < 5 {
		v, err := other.Get(ctx)
		testutil.NoError(t, err)
		seen[v] = true
	}
	_, err = lazy.Get(contextOf(t, 50*time.Millisecond)) // what it had is not its own any more
	testutil.ErrorIs(t, err, nats.ErrEmpty)
}

// With values on the way, cuts and short waits.
func TestQueue_PrefetchLosesNothing(t *testing.T) {
	ctx := testutil.Context(t)
	p := newPath(t, start(t, broker.Options{}).URL())
	c := connect(t, "nats://"+p.l.Addr().String())
	q := open[int](t, c, "ahead-cut",
		nats.QueueOptions{Prefetch: 10, AckWait: 500 * time.Millisecond, MaxDeliveries: 1000})
	const values = 300
	put := make(chan error, 1)
	go func() {
		for i := range values {
			if err := q.Put(ctx, i); err != nil {
				put <- err
				return
			}
		}
		put <- nil
	}()
	seen, uncertain := make(map[int]int), make(map[int]bool)
	for n := 1; len(seen)+len(uncertain) < values; n++ {
		testutil.NoError(t, context.Cause(ctx))
		if n%60 == 0 {
			p.cut()
		}
		short, cancel := context.WithTimeout(ctx, time.Duration(n%30)*time.Millisecond)
		d, err := q.Next(short)
		cancel()
		if err != nil {
			continue
		}
		switch err := d.Ack(ctx); {
		case err == nil:
			seen[d.Value]++
			delete(uncertain, d.Value)
		case errors.Is(err, nats.ErrUncertain): // it may come again, or not
			if seen[d.Value] == 0 {
				uncertain[d.Value] = true
			}
		case !errors.Is(err, nats.ErrExpired):
			t.Fatal(err)
		}
	}
	testutil.NoError(t, <-put)
	for v, n := range seen {
		if n != 1 {
			t.Errorf("%d came %d times", v, n)
		}
	}
}
