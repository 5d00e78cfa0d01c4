package data_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// sound fails unless a Sampler says how long its orders are, and repeats them.
func sound(t *testing.T, name string, s data.Sampler) {
	t.Helper()
	a, b, c := s.Order(3), s.Order(3), s.Order(4)
	if len(a) != s.Len() || !slices.Equal(a, b) {
		t.Errorf("%s: Len %d, order %v and then %v", name, s.Len(), a, b)
	}
	if slices.Equal(a, c) {
		t.Errorf("%s: two epochs have the order %v", name, a)
	}
}

func TestSampler_RepeatsAnEpochAndShufflesTheNext(t *testing.T) {
	weights := []float64{0, 1, 2, 3, 0, 10, 1, 1, 1, 1, 1}
	for name, s := range map[string]data.Sampler{
		"random": data.Random(20, 1), "subset": data.SubsetRandom([]int{3, 5, 7, 9, 11, 13, 15, 17}, 1),
		"draws": data.RandomDraws(20, 30, true, 1), "permutations": data.RandomDraws(20, 50, false, 1),
		"weighted": data.Weighted(weights, 40, true, 1), "weighted once": data.Weighted(weights, 9, false, 1),
		"distributed": data.Distributed(data.Random(20, 1), 1, 3, false), "shard": data.Shard(data.Random(20, 1), 1, 3),
	} {
		sound(t, name, s)
	}
}

func TestSampler_VisitsWhatItShould(t *testing.T) {
	sorted := func(s data.Sampler) []int { return slices.Sorted(slices.Values(s.Order(0))) }
	if got := sorted(data.SubsetRandom([]int{9, 4, 4, 2}, 1)); !slices.Equal(got, []int{2, 4, 4, 9}) {
		t.Errorf("subset: %v", got)
	}
	if got := data.RandomDraws(5, 12, false, 1).Order(0); !slices.Equal(slices.Sorted(slices.Values(got[:5])),
		[]int{0, 1, 2, 3, 4}) ||
		!slices.Equal(slices.Sorted(slices.Values(got[5:10])), []int{0, 1, 2, 3, 4}) || len(got) != 12 {
		t.Errorf("12 draws of 5 without replacement: %v", got)
	}
	if got := sorted(data.Weighted([]float64{0, 1, 5, 0, 2}, 3, false, 1)); !slices.Equal(got, []int{1, 2, 4}) {
		t.Errorf("weighted without replacement: %v", got)
	}
}

func TestWeighted_TakesWeightsForProbabilities(t *testing.T) {
	weights := []float64{1, 0, 2, 5}
	const n = 80_000
	count := make([]float64, len(weights))
	for _, i := range data.Weighted(weights, n, true, 1).Order(0) {
		count[i]++
	}
	first := make([]float64, len(weights))
	const races = 8000
	s := data.Weighted(weights, 3, false, 1)
	for epoch := range races {
		first[s.Order(epoch)[0]]++
	}
	for i, w := range weights {
		if math.Abs(count[i]/n-w/8) > 0.01 || math.Abs(first[i]/races-w/8) > 0.03 { // of fixed seeds
			t.Errorf("%d has weight %v of 8, was drawn %v times of %v and came first %v times of %v", i, w,
				count[i], n, first[i], races)
		}
	}
}

// TestDistributed_DividesAsTorchDoes has what DistributedSampler of PyTorch gives, without
// shuffling.
func TestDistributed_DividesAsTorchDoes(t *testing.T) {
	for _, c := range []struct {
		n, rank, world int
		drop           bool
		want           []int
	}{
		{10, 0, 3, false, []int{0, 3, 6, 9}}, {10, 1, 3, false, []int{1, 4, 7, 0}},
		{10, 2, 3, false, []int{2, 5, 8, 1}},
		{10, 0, 3, true, []int{0, 3, 6}}, {10, 2, 3, true, []int{2, 5, 8}},
		{2, 4, 5, false, []int{0}}, {2, 3, 5, false, []int{1}}, {2, 1, 5, true, nil}, {9, 1, 3, false, []int{1, 4, 7}},
	} {
		s := data.Distributed(data.Sequential(c.n), c.rank, c.world, c.drop)
		if got := s.Order(0); !slices.Equal(got, c.want) || s.Len() != len(c.want) {
			t.Errorf("rank %d of %d, of %d samples, drop %v: %v, Len %d; want %v", c.rank, c.world, c.n,
				c.drop, got, s.Len(), c.want)
		}
	}
}

// loadAll returns the numbers of the samples of an epoch.
func loadAll(t testing.TB, l *data.Loader) (all []int) {
	t.Helper()
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		first := b[0].Contiguous()
		each := max(1, first.Numel()/max(1, first.Dim(0)))
		for i, v := range tensor.Data[int64](first) {
			if i%each == 0 {
				all = append(all, int(v))
			}
		}
	}
	return all
}

func TestBatched_MakesBatches(t *testing.T) {
	for _, drop := range []bool{false, true} {
		b := data.Batched(data.Sequential(10), 4, drop)
		got := b.Batches(0)
		if want := 3; len(got) != b.Len() ||
			!drop && (len(got) != want || !slices.Equal(got[2], []int{8, 9})) || drop && len(got) != 2 {
			t.Errorf("drop %v: %v", drop, got)
		}
	}
	if got := loadAll(t, data.NewLoader(upTo(10),
		data.Options{Batches: data.Batched(data.Sequential(10), 4, true)})); len(got) != 8 {
		t.Errorf("%v", got)
	}
}

func TestSampler_RefusesNonsense(t *testing.T) {
	for name, f := range map[string]func(){
		"draws":  func() { data.RandomDraws(0, 1, true, 1) },
		"weight": func() { data.Weighted([]float64{-1}, 1, true, 1) },
		"nan":    func() { data.Weighted([]float64{math.NaN()}, 1, true, 1) },
		"zero":   func() { data.Weighted([]float64{0}, 1, true, 1) },
		"once":   func() { data.Weighted([]float64{1, 0}, 2, false, 1) },
		"size":   func() { data.Batched(data.Sequential(1), 0, false) },
		"rank":   func() { data.Distributed(data.Sequential(1), 2, 2, false) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
