package nats_test

import (
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A large value waits for room, or the clocks of two hosts differ: to a process that opens the
// queue its chunks seem abandoned, and it removes them. The value arrives whole.
func TestQueue_ChunksThatSeemAbandoned(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 64 << 10})
	c := connect(t, b.URL())
	q := open[*tensor.Tensor](t, c, "abandoned", nats.QueueOptions{Capacity: 1})
	small, big := tensor.Ones(tensor.Int32, 2), tensor.Full(tensor.Int32, 7, 100_000)
	defer small.Close()
	defer big.Close()
	testutil.NoError(t, q.Put(ctx, small))
	put := make(chan error, 1)
	go func() { put <- q.Put(ctx, big) }()
	testutil.Eventually(t, func() bool { return b.Stats().Bytes > 400_000 }, "the chunks do not arrive")
	time.Sleep(20 * time.Millisecond) // and it waits for room
	undo := nats.SetAbandoned(-time.Hour)
	open[*tensor.Tensor](t, c, "abandoned", nats.QueueOptions{})
	undo()
	if n := b.Stats().Bytes; n > 100_000 {
		t.Fatalf("they do not seem abandoned: %d bytes", n)
	}
	for _, want := range []*tensor.Tensor{small, big} {
		x, err := q.Get(ctx)
		testutil.NoError(t, err)
		same(t, x, want)
		testutil.NoError(t, x.Close())
	}
	testutil.NoError(t, <-put)
	testutil.Eventually(t, func() bool { return b.Stats().Bytes == 0 }, "bytes are left")
}

// While large values are put, others open the queue and the store again and again, and all chunks
// seem abandoned to them. No value that was put is lost, and no chunk is left.
func TestChunks_OthersSweep(t *testing.T) {
	noBlocks(t)
	ctx := testutil.Context(t)
	b := start(t, broker.Options{MaxPayload: 64 << 10})
	c := connect(t, b.URL())
	q := open[*tensor.Tensor](t, c, "swept", nats.QueueOptions{})
	s := openStore[*tensor.Tensor](t, c, "swept", nats.StoreOptions{})
	defer nats.SetAbandoned(-time.Hour)()
	const values = 60
	stop := make(chan struct{})
	var sweepers, all sync.WaitGroup
	sweepers.Go(func() {
		c := connect(t, b.URL())
		for {
			select {
			case <-stop:
				return
			default:
			}
			q, err := nats.OpenQueue[*tensor.Tensor](ctx, c, "swept", nats.QueueOptions{})
			if err == nil {
				err = q.Close()
			}
			if err == nil {
				_, err = nats.OpenStore[*tensor.Tensor](ctx, c, "swept", nats.StoreOptions{})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Go(func() {
		for i := range values {
			x := tensor.Full(tensor.Int32, float64(i), 100_000)
			if err := q.Put(ctx, x); err != nil {
				t.Errorf("put %d: %v", i, err)
			}
			x.Close()
		}
	})
	all.Go(func() {
		for i := range values {
			x, err := q.Get(ctx)
			if err != nil {
				t.Errorf("get %d: %v", i, err)
				return
			}
			want := tensor.Full(tensor.Int32, float64(i), 100_000)
			same(t, x, want)
			want.Close()
			x.Close()
		}
	})
	all.Go(func() {
		for i := range values {
			x := tensor.Full(tensor.Int32, float64(i), 100_000)
			if _, err := s.Set(ctx, "a", x); err != nil {
				t.Errorf("set %d: %v", i, err)
			}
			y, _, err := s.Get(ctx, "a")
			if err != nil {
				t.Errorf("get %d of the store: %v", i, err)
				return
			}
			same(t, y, x)
			y.Close()
			x.Close()
		}
	})
	all.Wait()
	close(stop)
	sweepers.Wait()
	open[*tensor.Tensor](t, c, "swept", nats.QueueOptions{})
	testutil.NoError(t, s.Delete(ctx, "a"))
	openStore[*tensor.Tensor](t, c, "swept", nats.StoreOptions{})
	testutil.Eventually(t, func() bool { return b.Stats().Bytes < 10_000 }, "chunks are left")
}
