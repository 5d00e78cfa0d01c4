package data_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// numbers is a set whose sample i is the number i, and that fails where it is told to.
type numbers struct {
	n, bad int
	odd    int // the sample of another shape
}

var errBad = errors.New("bad sample")

func upTo(n int) numbers { return numbers{n, -1, -1} }

func (d numbers) Len() int { return d.n }

func (d numbers) Get(ctx context.Context, i int) (data.Sample, error) {
	switch i {
	case d.bad:
		return nil, errBad
	case d.odd:
		return data.Sample{tensor.New(tensor.Int64, 2)}, nil
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// read returns the numbers of an epoch, batch by batch.
func read(t testing.TB, l *data.Loader, epoch int) (batches [][]int64, err error) {
	t.Helper()
	for b, err := range l.Epoch(t.Context(), epoch) {
		if err != nil {
			return batches, err
		}
		batches = append(batches, slices.Clone(tensor.Data[int64](b[0])))
	}
	return batches, nil
}

// sets are the two ways in which batches are made: sample by sample and by the set itself.
func sets(n int) map[string]data.Dataset {
	return map[string]data.Dataset{
		"numbers": upTo(n),
		"tensor":  data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, float64(n), 1)),
	}
}

func TestLoader_MakesTheSameBatchesForAnyNumberOfWorkers(t *testing.T) {
	for name, ds := range sets(103) {
		var want [3]string
		for _, workers := range []int{0, 1, 2, 7} {
			for _, prefetch := range []int{0, 1, 20} {
				l := data.NewLoader(ds, data.Options{BatchSize: 10, Shuffle: true, Seed: 5, Workers: workers,
					Prefetch: prefetch})
				for epoch := range want {
					batches, err := read(t, l, epoch)
					if err != nil {
						t.Fatal(err)
					}
					got := fmt.Sprint(batches)
					if want[epoch] == "" {
						want[epoch] = got
					}
					if got != want[epoch] {
						t.Errorf("%s: epoch %d with %d workers: %v, want %v", name, epoch, workers, got, want[epoch])
					}
					all := slices.Concat(batches...)
					slices.Sort(all)
					if len(batches) != l.Len() || len(batches[10]) != 3 || len(all) != 103 ||
						len(slices.Compact(all)) != 103 {
						t.Errorf("%s: epoch %d is %v", name, epoch, batches)
					}
				}
				l.Close()
			}
		}
		if want[0] == want[1] || want[1] == want[2] {
			t.Errorf("%s: epochs have the same order", name)
		}
	}
}

func TestLoader_BatchesCountsTheEpochs(t *testing.T) {
	l := data.NewLoader(upTo(50), data.Options{BatchSize: 50, Shuffle: true})
	defer l.Close()
	for epoch := range 3 {
		want, err := read(t, l, epoch)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(t.Context()) {
			if got := tensor.Data[int64](b[0]); err != nil || !slices.Equal(got, want[0]) {
				t.Errorf("call %d of Batches: %v, %v; want epoch %d, %v", epoch, got, err, epoch, want[0])
			}
		}
	}
}

func TestOptions_DropLastLeavesOutTheSmallBatch(t *testing.T) {
	for n, want := range map[int]int{0: 0, 9: 0, 10: 1, 19: 1, 20: 2} {
		for _, workers := range []int{0, 2} {
			l := data.NewLoader(upTo(n), data.Options{BatchSize: 10, DropLast: true, Workers: workers})
			batches, err := read(t, l, 0)
			if err != nil || len(batches) != want || l.Len() != want {
				t.Errorf("%d samples: %v, %v, Len %d; want %d batches", n, batches, err, l.Len(), want)
			}
		}
	}
}

func TestSampleError_NamesItsSampleAndEndsTheEpoch(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		for name, c := range map[string]struct {
			ds   numbers
			want error
		}{
			"bad":   {numbers{100, 37, -1}, errBad},
			"shape": {numbers{100, -1, 37}, data.ErrShape},
		} {
			l := data.NewLoader(c.ds, data.Options{BatchSize: 5, Workers: workers})
			batches, err := read(t, l, 0)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "sample 37") || len(batches) != 7 {
				t.Errorf("%s, %d workers: %v after %d batches, want sample 37's after 7", name, workers, err,
					len(batches))
			}
		}
	}
}

func TestLoader_IsUsableAfterABreak(t *testing.T) {
	for _, workers := range []int{0, 3} {
		l := data.NewLoader(upTo(100), data.Options{BatchSize: 5, Workers: workers})
		for range 5 {
			for b := range l.Epoch(t.Context(), 0) {
				if tensor.Data[int64](b[0])[0] == 10 {
					break
				}
			}
		}
		if batches, err := read(t, l, 0); err != nil || len(batches) != 20 {
			t.Errorf("%d workers: %d batches, %v", workers, len(batches), err)
		}
	}
}

func TestLoader_CloseEndsIterations(t *testing.T) {
	for _, workers := range []int{0, 2} {
		l := data.NewLoader(upTo(1000), data.Options{Workers: workers})
		n := 0
		var last error
		for _, err := range l.Batches(t.Context()) {
			if last = err; n == 3 {
				l.Close()
				l.Close()
			}
			n++
		}
		if !errors.Is(last, data.ErrClosed) || n > 20 {
			t.Errorf("%d workers: %v after %d batches, want ErrClosed", workers, last, n)
		}
		if _, err := read(t, l, 0); !errors.Is(err, data.ErrClosed) {
			t.Errorf("%d workers: %v of a closed Loader, want ErrClosed", workers, err)
		}
	}
}

func TestLoader_EndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	for _, workers := range []int{0, 2} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var last error
		for _, err := range data.NewLoader(upTo(1000), data.Options{Workers: workers}).Batches(ctx) {
			cancel(why)
			last = err
		}
		if !errors.Is(last, why) {
			t.Errorf("%d workers: %v, want the cause", workers, last)
		}
	}
}

func TestOptions_ReuseUsesBuffersAgain(t *testing.T) {
	l := data.NewLoader(datasets.Digits(64, 1), data.Options{BatchSize: 16, Transform: data.ToTensor, Reuse: true})
	defer l.Close()
	seen := map[*float32]bool{}
	for range 3 {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			seen[&tensor.Data[float32](b[0])[0]] = true
		}
	}
	if len(seen) != 1 {
		t.Errorf("12 batches lie in %d places, want one", len(seen))
	}
}

func TestOptions_SharedBatchesBelongToTheConsumer(t *testing.T) {
	dom, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	blocks := func() int { return dom.Observe().Summary.Kinds["block"].Blocks } // what batches lie in
	before := blocks()
	ds := datasets.Digits(100, 1)
	l := data.NewLoader(ds, data.Options{BatchSize: 10, Workers: 2, Shared: true, Transform: data.ToTensor})
	defer l.Close()
	var kept []data.Batch
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !b[0].IsShared() || !b[1].IsShared() {
			t.Error("a batch is not in shared memory")
		}
		if kept = append(kept, b); len(kept) == 5 {
			break
		}
	}
	for k, b := range kept {
		if !tensor.Equal(b[1], ds.Tensors[1].Narrow(0, 10*k, 10)) {
			t.Errorf("batch %d was overwritten", k)
		}
		b[0].Close()
		b[1].Close()
	}
	if after := blocks(); after > before { // fewer, if the garbage collector has found what other tests left
		t.Errorf("%d blocks are left", after-before)
	}
}

func TestShard_SharesOutAllSamples(t *testing.T) {
	for _, n := range []int{0, 1, 10, 11} {
		var all []int
		for rank := range 3 {
			s := data.Shard(data.Random(n, 1), rank, 3)
			if order := s.Order(4); len(order) == s.Len() {
				all = append(all, order...)
			} else {
				t.Errorf("shard %d of %d samples has %d, and says %d", rank, n, len(order), s.Len())
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, data.Sequential(n).Order(0)) {
			t.Errorf("the shards of %d samples are %v", n, all)
		}
	}
}

func TestTransform_ComputesWhatTorchDoes(t *testing.T) {
	img := tensor.FromSlice([]uint8{0, 255, 51, 102}, 1, 2, 2)
	tr := data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))
	got := tr.Apply(nil, img)
	want := tensor.FromSlice([]float32{-0.4242, 2.8215, 0.2249, 0.8740}, 1, 1, 2, 2) // torchvision's, to four digits
	if !slices.Equal(got.Shape(), want.Shape()) || !tensor.AllClose(got, want, 0, 1e-4) {
		t.Errorf("%v, want %v", got, want)
	}
	if again := tr.Apply(got, img); again != got {
		t.Error("the memory of the first result was not used again")
	}
}

func BenchmarkLoader(b *testing.B) {
	ds := datasets.Digits(6400, 1)
	for _, workers := range []int{0, 1} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			l := data.NewLoader(ds, data.Options{BatchSize: 64, Shuffle: true, Workers: workers,
				Transform: data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))})
			defer l.Close()
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range l.Batches(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*6400/b.Elapsed().Seconds(), "samples/s")
		})
	}
}
