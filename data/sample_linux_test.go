package data_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/wire"
)

// holes is a set of two fields, of which some samples are not like the others.
type holes struct{ Kinds []string }

func init() {
	wire.RegisterType[*holes]("test.holes")
	wire.RegisterType[*holeStream]("test.holeStream")
}

func (d *holes) Len() int { return len(d.Kinds) }

func (d *holes) Get(_ context.Context, i int) (data.Sample, error) {
	a, b := tensor.Scalar(tensor.Int64, float64(i)), tensor.Full(tensor.Float32, float64(i), 2)
	switch d.Kinds[i] {
	case "nil":
		return data.Sample{a, nil}, nil
	case "no fields":
		return data.Sample{}, nil
	case "no sample":
		return nil, nil
	case "closed":
		b.Close()
	case "fewer":
		return data.Sample{a}, nil
	case "more":
		return data.Sample{a, b, a}, nil
	case "shape":
		b = tensor.Full(tensor.Float32, 0, 3)
	case "dtype":
		b = tensor.Full(tensor.Float64, 0, 2)
	case "goexit":
		runtime.Goexit()
	case "panic":
		var none *tensor.Tensor
		none.Fill(1)
	}
	return data.Sample{a, b}, nil
}

// holeStream is holes, one after the other.
type holeStream struct{ Of *holes }

func (s *holeStream) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range s.Of.Len() {
			if p.Has(i) && !yield(s.Of.Get(ctx, i)) {
				return
			}
		}
	}
}

// TestRegression_S1_4_ANilTensorIsASampleError, and what else is no sample: wherever it stands, it
// is one error that names it.
func TestRegression_S1_4_ANilTensorIsASampleError(t *testing.T) {
	for kind, want := range map[string]error{
		"nil": data.ErrSample, "no fields": data.ErrSample, "no sample": data.ErrSample, "closed": data.ErrSample,
		"fewer": data.ErrShape, "more": data.ErrShape, "shape": data.ErrShape, "dtype": data.ErrShape, "panic": nil,
	} {
		for _, at := range []int{0, 2, 5} {
			kinds := make([]string, 8)
			kinds[at] = kind
			set := &holes{kinds}
			oneOfEach(func(name string, workers int, k data.Kind) {
				if k == data.Processes && at != 2 {
					return // processes are dear
				}
				wrongSample(t, name+", "+kind, want, at,
					data.NewLoader(set, data.Options{BatchSize: 4, Workers: workers, Kind: k}))
			})
			if want == data.ErrSample {
				wrongSample(t, "stream of "+kind, want, at,
					data.NewStreamLoader(&holeStream{set}, data.Options{BatchSize: 4, Parts: 1, Workers: 1}))
				wrongSample(t, "single "+kind, want, at, data.NewLoader(set, data.Options{BatchSize: data.Single}))
			}
		}
	}
}

// wrongSample wants a loop to end with the error of sample at; of a batch whose first sample is
// another one than the rest, with that of any.
func wrongSample(t *testing.T, name string, want error, at int, l *data.Loader) {
	t.Helper()
	defer l.Close()
	var err error
	for _, err = range l.Batches(t.Context()) {
		if err != nil {
			break
		}
	}
	var bad *data.SampleError
	switch {
	case !errors.As(err, &bad):
		t.Errorf("%s at %d: %v, want a SampleError", name, at, err)
	case want != nil && !errors.Is(err, want), bad.Index != at && (at != 0 || want == data.ErrSample):
		t.Errorf("%s at %d: %v", name, at, err)
	}
}

// TestSample_ThatIsNoneIsSkipped wants the rest of the batch.
func TestSample_ThatIsNoneIsSkipped(t *testing.T) {
	kinds := make([]string, 8)
	kinds[0], kinds[3], kinds[5] = "nil", "closed", "no sample"
	oneOfEach(func(name string, workers int, k data.Kind) {
		l := data.NewLoader(&holes{kinds},
			data.Options{BatchSize: 4, Workers: workers, Kind: k, Skip: func(*data.SampleError) bool { return true }})
		defer l.Close()
		got, err := read(t, l, 0)
		if want := [][]int64{{1, 2}, {4, 6, 7}}; err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	})
}

// fixed is a BatchSampler of given batches.
type fixed [][]int

func (f fixed) Len() int            { return len(f) }
func (f fixed) Batches(int) [][]int { return slices.Clone(f) }

func TestRegression_S1_2_ABatchWithoutSamplesIsAnError(t *testing.T) {
	for _, batches := range []fixed{{{}}, {{0, 1}, {}, {2}}, {{0}, {1}, nil}} {
		executors(func(name string, workers int, k data.Kind) {
			if workers > 3 || k == data.Processes && workers > 1 {
				return
			}
			l := data.NewLoader(&noisy{N: 4}, data.Options{Batches: batches, Workers: workers, Kind: k})
			defer l.Close()
			got, err := read(t, l, 0)
			if !errors.Is(err, data.ErrEmptyBatch) || !strings.Contains(err.Error(), "BatchSampler") {
				t.Errorf("%s: %v", name, err)
			}
			if want := len(batches) - 1; len(batches) == 3 && len(batches[2]) > 0 && len(got) != 1 || len(got) > want {
				t.Errorf("%s: %d batches before the error", name, len(got))
			}
		})
	}
}

var makesNothing = data.RegisterCollate("test.nothing", longest2)

var makesNil = data.RegisterCollate("test.nil",
	func(context.Context, []data.Sample) (data.Batch, error) { return data.Batch{nil}, nil })

func TestCollate_ThatMakesNothingIsAnError(t *testing.T) {
	for c, want := range map[*data.Collate]error{makesNothing: data.ErrEmptyBatch, makesNil: data.ErrSample} {
		oneOfEach(func(name string, workers int, k data.Kind) {
			l := data.NewLoader(&noisy{N: 4}, data.Options{BatchSize: 2, Collate: c, Workers: workers, Kind: k})
			defer l.Close()
			if got, err := read(t, l, 0); !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		})
	}
}

// A data set that calls runtime.Goexit costs its worker, and the Loader goes on.
func TestLoader_AGoexitIsTheErrorOfItsSample(t *testing.T) {
	set := &holes{[]string{"", "goexit", "", "goexit", ""}}
	for kind, workers := range map[data.Kind]int{data.Goroutines: 2, data.Processes: 1} {
		var skipped []int
		l := data.NewLoader(set, data.Options{Workers: workers, Kind: kind, Skip: func(e *data.SampleError) bool {
			if !errors.Is(e, shoal.ErrPanic) || !strings.Contains(e.Error(), "runtime.Goexit") {
				t.Errorf("%v: got %v, want an error that names Goexit", kind, e)
			}
			skipped = append(skipped, e.Index)
			return true
		}})
		n := 0
		for b, err := range l.Batches(testutil.Context(t)) {
			testutil.NoError(t, err)
			n += b[0].Dim(0)
		}
		testutil.NoError(t, l.Close())
		if n != 3 || !slices.Equal(skipped, []int{1, 3}) {
			t.Errorf("%v: got %d samples, skipped %v, want 3, and 1 and 3 skipped", kind, n, skipped)
		}
	}
}

// openExits is a data set that cannot be opened.
type openExits struct{ holes }

func (*openExits) Open(context.Context) (any, error) { runtime.Goexit(); return nil, nil }

func TestLoader_AGoexitInOpenIsAnError(t *testing.T) {
	l := data.NewLoader(&openExits{holes{[]string{"", ""}}}, data.Options{Workers: 2, Kind: data.Goroutines})
	defer l.Close()
	var got error
	for _, err := range l.Batches(testutil.Context(t)) {
		got = err
	}
	testutil.ErrorContains(t, got, "runtime.Goexit")
}

// Without workers, the goroutine that ends is the consumer's own, and its deferred calls run.
func TestLoader_AGoexitOfTheConsumerLeavesNothing(t *testing.T) {
	l := data.NewLoader(&holes{[]string{"", "goexit"}}, data.Options{BatchSize: data.Single})
	batches := make(chan int, 1)
	go func() {
		n := 0
		defer func() { batches <- n }()
		for range l.Batches(testutil.Context(t)) {
			n++
		}
	}()
	if n := <-batches; n != 1 {
		t.Errorf("got %d batches, want 1", n)
	}
	testutil.NoError(t, l.Close())
}
