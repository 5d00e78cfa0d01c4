package data_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// Loaders in worker processes: four workers get a chunk each of a tensor that nobody copies, and
// load it with workers of their own.

const quarters = 4

// whole is a tensor of 1000×100 in shared memory, and its sum.
func whole() (t *tensor.Tensor, sum float64, err error) {
	t, err = tensor.NewShared(tensor.Float64, 1000, 100)
	if err != nil {
		return nil, 0, err
	}
	for i := range tensor.Data[float64](t) {
		tensor.Data[float64](t)[i] = float64(i % 1013)
	}
	return t, t.Sum(), nil
}

// sumOf adds up a chunk in batches of 32 that two workers load: two of this process, or two
// processes below it. Their threads are out of this worker's share.
func sumOf(ctx context.Context, chunk *tensor.Tensor, kind data.Kind) (sum float64, err error) {
	set := data.NewTensorDataset(chunk)
	defer set.Close()
	loader := data.NewLoader(set, data.Options{BatchSize: 32, Shuffle: true, Workers: 2, Kind: kind})
	defer loader.Close()
	n := 0
	for batch, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		sum += batch[0].Sum()
		n++
	}
	if want := (chunk.Dim(0) + 31) / 32; n != want {
		return 0, fmt.Errorf("%d batches, want %d", n, want)
	}
	return sum, nil
}

// A share is a chunk of the tensor, and where its sum goes.
type share struct {
	Chunks []*tensor.Tensor
	Sums   *manager.Array[float64]
	Kind   data.Kind
}

var sumToArray = shoal.Register("test.sum to array", func(ctx context.Context, rank int, s share) error {
	defer s.Sums.Close()
	sum, err := sumOf(ctx, s.Chunks[rank], s.Kind)
	return errors.Join(err, s.Sums.Set(ctx, rank, sum))
})

// A queues is the two queues of a worker.
type queues struct {
	Chunks *ipc.Receiver[*tensor.Tensor]
	Sums   *ipc.Sender[float64]
	Kind   data.Kind
}

var sumFromQueue = shoal.Register("test.sum from queue", func(ctx context.Context, _ int, q queues) error {
	defer q.Sums.Close()
	for chunk, err := range q.Chunks.All(ctx) {
		if err != nil {
			return err
		}
		sum, err := sumOf(ctx, chunk, q.Kind)
		if err = errors.Join(err, q.Sums.Put(ctx, sum)); err != nil {
			return err
		}
	}
	return nil
})

var sumStar = pool.Register2("test.sum star",
	func(ctx context.Context, kind data.Kind, chunk *tensor.Tensor) (float64, error) {
		return sumOf(ctx, chunk, kind)
	})

// managerArray is the first form: an array of a manager has a place for each worker's sum.
func managerArray(ctx context.Context, t *tensor.Tensor, kind data.Kind) ([]float64, error) {
	m, err := manager.New(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	sums, err := manager.NewArray(ctx, m, make([]float64, quarters)...)
	if err != nil {
		return nil, err
	}
	defer sums.Close()
	if err := sumToArray.Spawn(ctx, quarters, share{t.Chunk(quarters, 0), sums, kind}); err != nil {
		return nil, err
	}
	return sums.All(ctx)
}

// twoQueues is the second form: chunks in one queue, sums in the other, and a worker for whichever
// comes next.
func twoQueues(ctx context.Context, t *tensor.Tensor, kind data.Kind) (all []float64, err error) {
	in, err := ipc.NewQueue[*tensor.Tensor](quarters)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := ipc.NewQueue[float64](quarters)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	g, err := sumFromQueue.Start(ctx, quarters, queues{in.Receiver(), out.Sender(), kind}, shoal.Options{})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	for _, c := range t.Chunk(quarters, 0) {
		if err := in.Put(ctx, c); err != nil {
			return nil, err
		}
		c.Close()
	}
	if err := errors.Join(in.Finish(), g.Wait()); err != nil {
		return nil, err
	}
	for range quarters {
		sum, err := out.TryGet()
		if err != nil {
			return nil, err
		}
		all = append(all, sum)
	}
	return all, nil
}

// starMap is the third form: a pool, and a pair of arguments for each chunk.
func starMap(ctx context.Context, t *tensor.Tensor, kind data.Kind) ([]float64, error) {
	p, err := pool.New(ctx, pool.Options{Workers: quarters})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return sumStar.StarMap(ctx, p, func(yield func(data.Kind, *tensor.Tensor) bool) {
		for _, c := range t.Chunk(quarters, 0) {
			if !yield(kind, c) {
				return
			}
		}
	})
}

func TestLoadersWorkInWorkers(t *testing.T) {
	tensor1, want, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	defer tensor1.Close()
	for name, form := range map[string]func(context.Context, *tensor.Tensor, data.Kind) ([]float64, error){
		"manager array": managerArray, "two queues": twoQueues, "StarMap": starMap,
	} {
		for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
			sums, err := form(t.Context(), tensor1, kind)
			if err != nil || len(sums) != quarters {
				t.Fatalf("%s, kind %d: %v, %v", name, kind, sums, err)
			}
			total := 0.0
			for _, s := range sums {
				total += s
			}
			if total != want || slices.Contains(sums, 0) {
				t.Errorf("%s, kind %d: %v, together %v, want %v", name, kind, sums, total, want)
			}
		}
	}
}

func TestANestedLoaderStaysInItsShareOfThreads(t *testing.T) {
	p, err := pool.New(t.Context(), pool.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	shares, err := threadsBelow.Map(t.Context(), p, []int{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shares {
		if own := max(1, shoal.Threads()/2); s[0] > own || s[1] > max(1, own/2) {
			t.Errorf("a worker has %d threads and its loader's workers %d each, of %d", s[0], s[1], shoal.Threads())
		}
	}
}

var threadsBelow = pool.Register("test.threads below", func(ctx context.Context, _ int) (shares [2]int, err error) {
	shares[0] = shoal.Threads()
	for b, err := range data.NewLoader(threads{2}, data.Options{Workers: 2, Kind: data.Processes}).Batches(ctx) {
		if err != nil {
			return shares, err
		}
		shares[1] = max(shares[1], int(tensor.At[int64](b[0], 0)))
	}
	return shares, nil
})

// threads is a set whose samples are how many threads who loads them may use.
type threads struct{ N int }

func init() { wire.RegisterType[threads]("test.threads") }

func (d threads) Len() int { return d.N }
func (d threads) Get(context.Context, int) (data.Sample, error) {
	return data.Sample{tensor.Scalar(tensor.Int64, float64(shoal.Threads()))}, nil
}
