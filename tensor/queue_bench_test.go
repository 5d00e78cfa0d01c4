package tensor_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkQueuePutGet puts a tensor of 64 bytes and gets it, in one goroutine.
func BenchmarkQueuePutGet(b *testing.B) {
	d, err := arena.NewLocal(1 << 20)
	testutil.NoError(b, err)
	arena.SetDefault(d)
	b.Cleanup(func() {
		arena.SetDefault(nil)
		testutil.NoError(b, d.Close())
	})
	x := tensor.New(tensor.Float32, 4, 4)
	defer x.Close()
	testutil.NoError(b, x.Share())
	for name, t := range map[string]*tensor.Tensor{"contiguous": x, "strided": x.T()} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			q, err := ipc.NewQueue[*tensor.Tensor](8)
			testutil.NoError(b, err)
			defer q.Close()
			b.ReportAllocs()
			for b.Loop() {
				testutil.NoError(b, q.Put(ctx, t))
				got, err := q.Get(ctx)
				testutil.NoError(b, err)
				testutil.NoError(b, got.Close())
			}
		})
	}
}
