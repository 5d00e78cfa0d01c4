package pool_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
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
		check(t, err)
		defer b.Close()
		p := open(t, pool.Options{Workers: workers, Start: m, ChunkSize: 1})
		for range 3 {
			get[[]bool](t)(met.Map(deadline(t), p, make([]*ipc.Barrier, 100)))
			for i, ok := range get[[]bool](t)(met.Map(deadline(t), p, []*ipc.Barrier{b, b, b, b})) {
				if !ok {
					t.Errorf("task %d was at no barrier", i)
				}
			}
		}
	})
}
