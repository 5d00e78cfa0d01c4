package tensor_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A shift is what the workers of TestTensor_IsSentBeforeTheFirstWorkerExists get.
type shift struct {
	Tasks *ipc.Receiver[*tensor.Tensor]
	Done  *ipc.Sender[float64]
}

// toil says the mean of each task.
var toil = shoal.Register("toil", func(ctx context.Context, _ int, s shift) error {
	for t, err := range s.Tasks.All(ctx) {
		if err != nil {
			return err
		}
		mean := t.Sum() / float64(t.Numel())
		if err := t.Close(); err != nil {
			return err
		}
		if err := s.Done.Put(ctx, mean); err != nil {
			return err
		}
	}
	return nil
})

// A queue with a bound would wait for ever here: nobody is there to take anything.
func TestTensor_IsSentBeforeTheFirstWorkerExists(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 128 << 20})
	testutil.NoError(t, err)
	use(t, d)
	ctx := testutil.Context(t)
	tasks, err := ipc.NewQueue[*tensor.Tensor](ipc.Unbounded)
	testutil.NoError(t, err)
	done, err := ipc.NewQueue[float64](ipc.Unbounded)
	testutil.NoError(t, err)
	const count = 1000
	for i := range count {
		x, err := tensor.NewShared(tensor.Float32, 100, 100)
		testutil.NoError(t, err)
		x.Fill(float64(i))
		testutil.NoError(t, tasks.Put(ctx, x))
		testutil.NoError(t, x.Close())
	}
	testutil.NoError(t, tasks.Finish())
	testutil.NoError(t, toil.Spawn(ctx, 3, shift{tasks.Receiver(), done.Sender()}))
	testutil.NoError(t, done.Finish())
	seen := make(map[float64]bool)
	for mean, err := range done.All(ctx) {
		testutil.NoError(t, err)
		if seen[mean] || mean < 0 || mean >= count {
			t.Errorf("task %v was done twice, or never given", mean)
		}
		seen[mean] = true
	}
	if len(seen) != count {
		t.Errorf("%d tasks of %d were done", len(seen), count)
	}
	testutil.NoError(t, tasks.Close())
	testutil.NoError(t, done.Close())
}
