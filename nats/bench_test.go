package nats_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkQueue puts batches of tensors and gets them again, by turns through a Queue and through
// the client library with messages of the same size and the same guarantees: ids, and confirmed
// acknowledgements. It compares the medians.
func BenchmarkQueue(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := min(256, 16<<20/size)
			url := start(b, broker.Options{}).URL()
			ours, raw := queueRound(b, url, n, size), rawRound(b, url, n, size)
			var took [2][]time.Duration
			for b.Loop() {
				for i, round := range []func(){ours, raw} {
					begin := time.Now()
					round()
					took[i] = append(took[i], time.Since(begin))
				}
			}
			var rate [2]float64
			for i, t := range took {
				slices.Sort(t)
				rate[i] = float64(n) / t[len(t)/2].Seconds()
			}
			b.ReportMetric(rate[0], "values/s")
			b.ReportMetric(rate[1], "raw/s")
			b.ReportMetric(rate[0]/rate[1], "ratio")
		})
	}
}

// queueRound returns what puts n tensors into a Queue and gets them.
func queueRound(b *testing.B, url string, n, size int) func() {
	ctx := context.Background()
	q := open[*tensor.Tensor](b, connect(b, url), "bench", nats.QueueOptions{})
	xs, got := make([]*tensor.Tensor, n), make([]*tensor.Tensor, n)
	for i := range xs {
		x, err := tensor.NewShared(tensor.Uint8, size)
		testutil.NoError(b, err)
		b.Cleanup(func() { x.Close() })
		xs[i] = x
	}
	return func() {
		_, err := q.PutN(ctx, xs)
		testutil.NoError(b, err)
		for k := 0; k < n; {
			m, err := q.GetN(ctx, got[k:])
			testutil.NoError(b, err)
			k += m
		}
		for _, x := range got {
			x.Close()
		}
	}
}

// tensorHead is about what a tensor has in a message beside its bytes.
const tensorHead = 45

// rawRound returns what does the same by the client library. It does nothing with
// what it gets.
func rawRound(b *testing.B, url string, n, size int) func() {
	ctx := context.Background()
	nc, err := client.Connect(url)
	testutil.NoError(b, err)
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256))
	testutil.NoError(b, err)
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "raw", Subjects: []string{"raw"},
		Retention: jetstream.WorkQueuePolicy, Duplicates: 2 * time.Minute})
	testutil.NoError(b, err)
	k, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "all", AckPolicy: jetstream.AckExplicitPolicy})
	testutil.NoError(b, err)
	data := make([]byte, size+tensorHead)
	futures := make([]jetstream.PubAckFuture, n)
	return func() {
		for i := range futures {
			futures[i], err = js.PublishAsync("raw", data, jetstream.WithMsgID(nuid.Next()))
			testutil.NoError(b, err)
		}
		for _, f := range futures {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				b.Fatal(err)
			}
		}
		for got := 0; got < n; {
			batch, err := k.Fetch(n-got, jetstream.FetchMaxWait(time.Second))
			testutil.NoError(b, err)
			for m := range batch.Messages() {
				if got++; got == n {
					testutil.NoError(b, m.DoubleAck(ctx))
				} else {
					testutil.NoError(b, m.Ack())
				}
			}
		}
	}
}

// BenchmarkLarge puts and gets one large tensor: by a Queue, in chunks of a stream, and by the
// object store of the client library.
func BenchmarkLarge(b *testing.B) {
	const size = 64 << 20
	ctx := context.Background()
	b.Run("chunks", func(b *testing.B) {
		q := open[*tensor.Tensor](b, local(b), "bench", nats.QueueOptions{})
		x, err := tensor.NewShared(tensor.Uint8, size)
		testutil.NoError(b, err)
		defer x.Close()
		b.SetBytes(size)
		for b.Loop() {
			testutil.NoError(b, q.Put(ctx, x))
			y, err := q.Get(ctx)
			testutil.NoError(b, err)
			testutil.NoError(b, y.Close())
		}
	})
	b.Run("objects", func(b *testing.B) {
		nc, err := client.Connect(start(b, broker.Options{}).URL())
		testutil.NoError(b, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		testutil.NoError(b, err)
		objects, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "bench"})
		testutil.NoError(b, err)
		data := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			_, err := objects.PutBytes(ctx, "x", data)
			testutil.NoError(b, err)
			_, err = objects.GetBytes(ctx, "x")
			testutil.NoError(b, err)
			testutil.NoError(b, objects.Delete(ctx, "x"))
		}
	})
}
