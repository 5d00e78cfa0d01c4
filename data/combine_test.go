package data_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// counted is a TensorDataset of the numbers from first on.
func counted(first, n int) *data.TensorDataset {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(first + i)
	}
	return data.NewTensorDataset(tensor.FromSlice(v, n))
}

// plain is a data set that is no Gatherer.
type plain struct{ Of *data.TensorDataset }

func init() { wire.RegisterType[plain]("test.plain") }

func (p plain) Len() int                                            { return p.Of.Len() }
func (p plain) Get(ctx context.Context, i int) (data.Sample, error) { return p.Of.Get(ctx, i) }

// firsts returns the first field of all samples, as a Loader with so many workers of a kind makes
// them.
func firsts(t *testing.T, d data.Dataset, kind data.Kind, workers int) (all []int64) {
	t.Helper()
	l := data.NewLoader(d, data.Options{BatchSize: 4, Workers: workers, Kind: kind})
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for f := range b {
			all = append(all, tensor.Data[int64](b[f])...)
		}
	}
	return all
}

func TestDatasetsOfDatasets(t *testing.T) {
	for name, c := range map[string]struct {
		ds   data.Dataset
		want []int64
	}{
		"concat": {data.NewConcatDataset(counted(0, 3), counted(10, 0), plain{counted(20, 1)},
			counted(30, 2)), []int64{0, 1, 2, 20, 30, 31}},
		"concat none":  {data.NewConcatDataset(), nil},
		"stack":        {data.NewStackDataset(counted(0, 3), plain{counted(10, 3)}), []int64{0, 1, 2, 10, 11, 12}},
		"subset":       {data.NewSubset(counted(0, 9), []int{8, 1, 1, 3}), []int64{8, 1, 1, 3}},
		"subset plain": {data.NewSubset(plain{counted(0, 9)}, []int{8, 1, 1, 3}), []int64{8, 1, 1, 3}},
		"subset concat": {data.NewSubset(data.NewConcatDataset(counted(0, 3), plain{counted(10, 3)}),
			[]int{5, 0, 3, 2}), []int64{12, 0, 10, 2}},
	} {
		for kind, workers := range map[data.Kind]int{data.Goroutines: 0, data.Processes: 2} {
			if got := firsts(t, c.ds, kind, workers); !slices.Equal(got, c.want) {
				t.Errorf("%s with %d workers: %v, want %v", name, workers, got, c.want)
			}
		}
		for _, i := range []int{-1, c.ds.Len()} {
			if _, err := c.ds.Get(t.Context(), i); err == nil {
				t.Errorf("%s: sample %d is no error", name, i)
			}
		}
	}
}

// numbersOf returns the samples of a data set of numbers.
func numbersOf(t *testing.T, ds data.Dataset) (all []int) {
	t.Helper()
	for i := range ds.Len() {
		s, err := ds.Get(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int(tensor.At[int64](s[0])))
	}
	return all
}

func TestRandomSplitDealsOutAll(t *testing.T) {
	for _, c := range []struct {
		n       int
		lengths []float64
		want    []int
	}{
		{10, []float64{3, 7}, []int{3, 7}},
		{10, []float64{0.3, 0.3, 0.4}, []int{3, 3, 4}},
		{11, []float64{0.3, 0.3, 0.4}, []int{4, 3, 4}}, // of 3, 3 and 4, the first gets what is left
		{13, []float64{0.5, 0.5}, []int{7, 6}},
		{1, []float64{1, 0}, []int{1, 0}},
		{0, []float64{0.5, 0.5}, []int{0, 0}},
	} {
		var all []int
		splits := data.RandomSplit(counted(0, c.n), c.lengths, 5)
		for k, s := range splits {
			if s.Len() != c.want[k] {
				t.Errorf("%d in %v: part %d has %d, want %d", c.n, c.lengths, k, s.Len(), c.want[k])
			}
			all = append(all, numbersOf(t, s)...)
		}
		again := data.RandomSplit(counted(0, c.n), c.lengths, 5)
		if !slices.Equal(numbersOf(t, again[0]), numbersOf(t, splits[0])) {
			t.Error("the same seed splits in two ways")
		}
		slices.Sort(all)
		for i := range c.n {
			if i >= len(all) || all[i] != i {
				t.Fatalf("%d in %v: samples %v", c.n, c.lengths, all)
			}
		}
	}
	for _, lengths := range [][]float64{{3, 8}, {0.5, 0.4}, {-1, 11}, {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("10 in %v does not panic", lengths)
				}
			}()
			data.RandomSplit(counted(0, 10), lengths, 5)
		}()
	}
}

// span is a Stream of the numbers from First to below End.
type span struct{ First, End int }

func init() { wire.RegisterType[span]("test.span") }

func (u span) Samples(_ context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := u.First; i < u.End; i++ {
			if p.Has(i) && !yield(data.Sample{tensor.FromSlice([]int64{int64(i)})}, nil) {
				return
			}
		}
		if p.Index == 0 && u.First == 100 {
			yield(nil, errEnd)
		}
	}
}

var errEnd = errors.New("the end")

func TestChainYieldsOneAfterTheOther(t *testing.T) {
	chain := data.NewChainDataset(span{0, 5}, span{50, 53})
	for kind, workers := range map[data.Kind]int{data.Goroutines: 0, data.Processes: 2} {
		l := data.NewStreamLoader(chain, data.Options{BatchSize: 3, Workers: workers, Kind: kind, Parts: 2})
		var all []int64
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tensor.Data[int64](b[0])...)
		}
		l.Close()
		slices.Sort(all)
		if want := []int64{0, 1, 2, 3, 4, 50, 51, 52}; !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	}
	n := 0
	for range chain.Samples(t.Context(), data.Part{Count: 1}) {
		if n++; n == 6 {
			break // in the second Stream
		}
	}
	var last error
	for _, err := range data.NewChainDataset(span{100, 101}).Samples(t.Context(), data.Part{Count: 1}) {
		last = err
	}
	if last != errEnd {
		t.Errorf("the error of a Stream is %v", last)
	}
}
