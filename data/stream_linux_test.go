package data_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// gathering is a stream of which the parts wait until several are being read.
type gathering struct {
	n     int64
	begun atomic.Int64
	all   chan struct{} // closed when n parts are being read
	late  atomic.Bool
}

func (s *gathering) Samples(_ context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		if s.begun.Add(1) == s.n {
			close(s.all)
		}
		select {
		case <-s.all:
		case <-time.After(5 * time.Second):
			s.late.Store(true)
		}
		yield(data.Sample{tensor.Scalar(tensor.Int64, float64(p.Index))}, nil)
	}
}

// TestStream_AllWorkersReadAtTheSameTime: there was one batch under way, however many workers.
func TestStream_AllWorkersReadAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &gathering{n: 4, all: make(chan struct{})}
		if got := loadAll(t, data.NewStreamLoader(s, data.Options{Workers: 4})); len(got) != 16 || s.late.Load() {
			t.Errorf("%d samples; at the same time read %d of 4 workers", len(got), s.begun.Load())
		}
	})
}

// A pair is a stream of two parts of n samples, and of others of one sample. Each sample of part 0
// waits until that of part 1 is read.
type pair struct {
	n    int
	read []chan struct{} // by number of the sample, of part 1
	late atomic.Int64
}

func (s *pair) Samples(_ context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range s.n {
			switch {
			case p.Index > 1 && i > 0:
				return
			case p.Index == 1:
				close(s.read[i])
			case p.Index == 0 && s.late.Load() == 0:
				select {
				case <-s.read[i]:
				case <-time.After(5 * time.Second):
					s.late.Store(int64(i))
				}
			}
			if !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil) {
				return
			}
		}
	}
}

// TestStream_PartsThatAreOverTakeNoRoom: what was planned behind the end of a part stayed among the
// bytes that PrefetchBytes bounds, so that nothing was read ahead any more.
func TestStream_PartsThatAreOverTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pair{n: 40}
		for range s.n {
			s.read = append(s.read, make(chan struct{}))
		}
		got := loadAll(t, data.NewStreamLoader(s, data.Options{Workers: 2, PrefetchBytes: 4 * 8}))
		if s.late.Load() > 0 || len(got) != 2*s.n+14 {
			t.Errorf("%d samples; sample %d of part 1 is not read while that of part 0 is", len(got), s.late.Load())
		}
	})
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
