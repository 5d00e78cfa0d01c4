package ipc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

type small struct {
	Epoch, Step int
	Loss        float64
	Done        bool
}

func BenchmarkQueuePutGet(b *testing.B) {
	d := shared(b)
	b.Run("int", func(b *testing.B) { benchmarkPutGet(b, 7, 0, func(int) {}) })
	b.Run("struct", func(b *testing.B) { benchmarkPutGet(b, small{1, 2, 0.5, true}, 0, func(small) {}) })
	for _, n := range []int{100, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprint("bytes-", n), func(b *testing.B) { benchmarkPutGet(b, make([]byte, n), n, func([]byte) {}) })
	}
	b.Run("block", func(b *testing.B) {
		x := newBlob(b, d, "x")
		defer x.Close()
		benchmarkPutGet(b, x, 0, func(x *blob) { x.Close() })
	})
}

// benchmarkPutGet puts and gets in one goroutine, so that nobody waits.
func benchmarkPutGet[T any](b *testing.B, v T, size int, done func(T)) {
	ctx, q := context.Background(), newQueue[T](b, 8)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		if err := q.Put(ctx, v); err != nil {
			b.Fatal(err)
		}
		v, err := q.Get(ctx)
		if err != nil {
			b.Fatal(err)
		}
		done(v)
	}
}

// BenchmarkBatch is the price of one of 64 values, in batches and one by one.
func BenchmarkBatch(b *testing.B) {
	shared(b)
	ctx := context.Background()
	in, out := make([]int, 64), make([]int, 64)
	b.Run("one-by-one", func(b *testing.B) {
		q := newQueue[int](b, 64)
		for i := 0; b.Loop(); i++ {
			if i%64 == 0 {
				for range 64 {
					q.Put(ctx, 1)
				}
			}
			q.Get(ctx)
		}
	})
	b.Run("batch", func(b *testing.B) {
		q := newQueue[int](b, 64)
		for i := 0; b.Loop(); i++ {
			if i%64 == 0 {
				q.PutN(ctx, in)
				q.GetN(ctx, out)
			}
		}
	})
}

func BenchmarkCreateAndUnlink(b *testing.B) {
	shared(b)
	for b.Loop() {
		m, err := ipc.NewMemory("m", 4096)
		testutil.NoError(b, err)
		testutil.NoError(b, m.Close())
		testutil.NoError(b, ipc.Unlink("m"))
	}
}

func BenchmarkOpen(b *testing.B) {
	shared(b)
	m, err := ipc.NewMemory("m", 4096)
	testutil.NoError(b, err)
	for b.Loop() {
		again, err := ipc.Lookup[*ipc.Memory]("m")
		testutil.NoError(b, err)
		testutil.NoError(b, again.Close())
	}
	testutil.NoError(b, m.Close())
	testutil.NoError(b, ipc.Unlink("m"))
}
