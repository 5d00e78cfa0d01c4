package nats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/shoal-mp/shoal/internal/broker"
	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkQueue puts batches of tensors and gets them again, by a Queue and by the client library
// with the same payloads and the same guarantees: ids, and confirmed acknowledgements.
func BenchmarkQueue(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		n := min(256, 64<<20/size)
		b.Run(fmt.Sprint("shoal/", size), func(b *testing.B) {
			ctx := context.Background()
			q := open[*tensor.Tensor](b, local(b), "bench", nats.QueueOptions{})
			xs, got := make([]*tensor.Tensor, n), make([]*tensor.Tensor, n)
			for i := range xs {
				x, err := tensor.NewShared(tensor.Uint8, size)
				check(b, err)
				defer x.Close()
				xs[i] = x
			}
			b.SetBytes(int64(n * size))
			for b.Loop() {
				if _, err := q.PutN(ctx, xs); err != nil {
					b.Fatal(err)
				}
				for k := 0; k < n; {
					m, err := q.GetN(ctx, got[k:])
					check(b, err)
					k += m
				}
				for _, x := range got {
					x.Close()
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "values/s")
		})
		b.Run(fmt.Sprint("raw/", size), func(b *testing.B) { benchRaw(b, n, size+40) })
	}
}

func benchRaw(b *testing.B, n, size int) {
	ctx := context.Background()
	nc, err := client.Connect(start(b, broker.Options{}).URL())
	check(b, err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256))
	check(b, err)
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "raw", Subjects: []string{"raw"},
		Retention: jetstream.WorkQueuePolicy, Duplicates: 2 * time.Minute})
	check(b, err)
	k, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "all", AckPolicy: jetstream.AckExplicitPolicy})
	check(b, err)
	data := make([]byte, size)
	b.SetBytes(int64(n * (size - 40)))
	for b.Loop() {
		futures := make([]jetstream.PubAckFuture, n)
		for i := range futures {
			futures[i], err = js.PublishAsync("raw", data, jetstream.WithMsgID(nuid.Next()))
			check(b, err)
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
			check(b, err)
			for m := range batch.Messages() {
				if got++; got == n {
					check(b, m.DoubleAck(ctx))
				} else {
					check(b, m.Ack())
				}
			}
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "values/s")
}

// BenchmarkLarge puts and gets one large tensor: by a Queue, in chunks of a stream, and by the
// object store of the client library.
func BenchmarkLarge(b *testing.B) {
	const size = 64 << 20
	ctx := context.Background()
	b.Run("chunks", func(b *testing.B) {
		q := open[*tensor.Tensor](b, local(b), "bench", nats.QueueOptions{})
		x, err := tensor.NewShared(tensor.Uint8, size)
		check(b, err)
		defer x.Close()
		b.SetBytes(size)
		for b.Loop() {
			check(b, q.Put(ctx, x))
			y, err := q.Get(ctx)
			check(b, err)
			check(b, y.Close())
		}
	})
	b.Run("objects", func(b *testing.B) {
		nc, err := client.Connect(start(b, broker.Options{}).URL())
		check(b, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		check(b, err)
		objects, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "bench"})
		check(b, err)
		data := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			_, err := objects.PutBytes(ctx, "x", data)
			check(b, err)
			_, err = objects.GetBytes(ctx, "x")
			check(b, err)
			check(b, objects.Delete(ctx, "x"))
		}
	})
}
