package data_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// counting is a stream of 0 … N-1, with noise.
type counting struct {
	N    int
	Kill []int
	Dir  string
}

func (c *counting) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		once := noisy{Dir: c.Dir}
		for i := range c.N {
			if !p.Has(i) {
				continue
			}
			if slices.Contains(c.Kill, i) && once.once("stream", i) {
				die()
			}
			if !yield(data.Sample{tensor.FromSlice([]int64{int64(i), data.Rand(ctx).Int64()}, 2)}, nil) {
				return
			}
		}
	}
}

// deaf is a stream that gives everybody everything.
type deaf struct{ N int }

func (d *deaf) Samples(ctx context.Context, _ data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range d.N {
			if !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil) {
				return
			}
		}
	}
}

func TestStream_IsTheSameForAnyWorkers(t *testing.T) {
	var want []uint64
	executors(func(name string, workers int, kind data.Kind) {
		for _, asReady := range []bool{false, true} {
			c := &counting{N: 203}
			if kind == data.Processes {
				c.Kill, c.Dir = []int{50, 130}, t.TempDir()
			}
			l := data.NewStreamLoader(c, data.Options{BatchSize: 4, Workers: workers, Kind: kind,
				AsReady: asReady, Seed: 5})
			got := digests(t, l, 1)
			l.Close()
			if want == nil {
				want = slices.Clone(got)
			}
			ordered := slices.Clone(want)
			if asReady {
				slices.Sort(got)
				slices.Sort(ordered)
			}
			if !slices.Equal(got, ordered) {
				t.Errorf("%s, as ready %v: %d batches, which differ from the first %d", name, asReady,
					len(got), len(want))
			}
		}
	})
}

func TestStream_IsReadOnceByAllRanksAndWorkers(t *testing.T) {
	for _, world := range []int{1, 2, 3, 5, 20} {
		for _, workers := range []int{0, 1, 2, 5} {
			for _, n := range []int{0, 1, 3, 100} {
				var all []int
				for rank := range world {
					l := data.NewStreamLoader(&counting{N: n},
						data.Options{BatchSize: 3, Workers: workers, Rank: rank, World: world})
					all = append(all, loadAll(t, l)...)
				}
				slices.Sort(all)
				if !slices.Equal(all, data.Sequential(n).Order(0)) {
					t.Fatalf("%d ranks with %d workers read %v of %d", world, workers, all, n)
				}
			}
		}
	}
}

// told is a stream of which each sample has the ID of the worker that reads it.
type told struct{ N int }

func (s *told) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		info, _ := data.WorkerInfo(ctx)
		for i := range s.N {
			if p.Has(i) && !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(info.ID))}, nil) {
				return
			}
		}
	}
}

// TestStream_ARankKeepsAllItsWorkersBusy: the parts of a rank of two are all even, and one of its
// two workers had none of them.
func TestStream_ARankKeepsAllItsWorkersBusy(t *testing.T) {
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		l := data.NewStreamLoader(&told{64}, data.Options{Workers: 2, Kind: kind, World: 2})
		count := make(map[int]int)
		for _, id := range loadAll(t, l) {
			count[id]++
		}
		if count[0] != 16 || count[1] != 16 {
			t.Errorf("%v: workers 0 and 1 have read %v of 32 samples", kind, count)
		}
		l.Close()
	}
}

func TestStream_ThatIgnoresItsPartIsDetected(t *testing.T) {
	for _, workers := range []int{0, 3} {
		o := data.Options{BatchSize: 3, Workers: workers, Debug: true}
		if _, err := read(t, data.NewStreamLoader(&deaf{20}, o), 0); !errors.Is(err, data.ErrPart) {
			t.Errorf("%d workers: %v, want ErrPart", workers, err)
		}
		if got := loadAll(t, data.NewStreamLoader(&counting{N: 20}, o)); len(got) != 20 {
			t.Errorf("%d workers: %v of a stream that heeds its part", workers, got)
		}
	}
}
