package pool_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// met waits for the others at a barrier, if it is given one.
var met = pool.Register("met", func(ctx context.Context, b *ipc.Barrier) (bool, error) {
	if b == nil {
		return false, nil
	}
	defer b.Close()
	_, err := b.Wait(ctx)
	return true, err
})

// What was short a hundred times and then waits for the other workers must not keep their tasks.
func TestPool_SharesOutWhatTakesLong(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		const workers = 4
		b, err := ipc.NewBarrier(workers)
		testutil.NoError(t, err)
		defer b.Close()
		p := open(t, pool.Options{Workers: workers, ChunkSize: 1, Process: shoal.Options{Start: m}})
		for range 3 {
			testutil.Value(met.Map(testutil.Context(t), p, make([]*ipc.Barrier, 100)))(t)
			for i, ok := range testutil.Value(met.Map(testutil.Context(t), p, []*ipc.Barrier{b, b, b, b}))(t) {
				if !ok {
					t.Errorf("task %d was at no barrier", i)
				}
			}
		}
	})
}
