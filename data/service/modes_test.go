package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func plusOne(_, src *tensor.Tensor) *tensor.Tensor {
	return tensor.FromSlice([]int64{tensor.Data[int64](src)[0] + 1}, 1)
}

// TestLoader_Coordinated: in each step the batches of all trainers are of one bucket, all have the
// same number of steps, and no sample comes twice.
func TestLoader_Coordinated(t *testing.T) {
	const samples, world = 100, 3
	lengths := make([]int, samples)
	for i := range lengths {
		lengths[i] = i * 7 % 31
	}
	bounds := []int{5, 12, 20}
	bucket := func(i int64) int { k, _ := slices.BinarySearch(bounds, lengths[i]); return k }
	h := listen(t, numbers{samples, 0, -1}, service.HostOptions{}, func(o *data.Options) {
		o.BatchSize, o.Shuffle = 0, false
		o.Batches = service.Buckets(lengths, bounds, 4, world, o.Seed)
	})
	var all [world][]got
	for rank := range world {
		l := dial(t, service.Options{Rank: rank, World: world, Coordinated: true}, h.Addr())
		all[rank] = epoch(t, l.Batches(t.Context()), nil)
		if len(all[rank]) != l.Len() || l.Len() != len(all[0]) || l.Len() == 0 {
			t.Errorf("rank %d has %d steps of %d", rank, len(all[rank]), l.Len())
		}
	}
	seen, buckets := make(map[int64]bool), make(map[int]bool)
	for s := range all[0] {
		k := bucket(all[0][s].samples[0])
		buckets[k] = true
		for rank := range world {
			if len(all[rank][s].samples) != 4 {
				t.Errorf("step %d, rank %d: %v", s, rank, all[rank][s].samples)
			}
			for _, i := range all[rank][s].samples {
				if bucket(i) != k {
					t.Errorf("step %d, rank %d: sample %d of length %d is in bucket %d, and others in %d", s, rank, i,
						lengths[i], bucket(i), k)
				}
				if seen[i] {
					t.Errorf("sample %d comes twice", i)
				}
				seen[i] = true
			}
		}
	}
	if len(buckets) < 3 {
		t.Errorf("there were %d buckets", len(buckets))
	}
}

// TestLoader_CoordinatedLeavesOutTheRest: 11 batches are 3 steps of 3 trainers.
func TestLoader_CoordinatedLeavesOutTheRest(t *testing.T) {
	h := listen(t, numbers{44, 0, -1}, service.HostOptions{}, nil)
	for rank := range 3 {
		l := dial(t, service.Options{Rank: rank, World: 3, Coordinated: true}, h.Addr())
		if got := epoch(t, l.Batches(t.Context()), nil); len(got) != 3 || l.Len() != 3 {
			t.Errorf("rank %d: %d steps", rank, len(got))
		}
		if err := l.Resume(data.State{Seed: 7, Batches: 4}); !errors.Is(err, data.ErrState) {
			t.Errorf("a state in the middle of a step: %v", err)
		}
	}
}

func TestBuckets_AreTheSameForASeed(t *testing.T) {
	lengths := make([]int, 97)
	for i := range lengths {
		lengths[i] = i % 10
	}
	a, b := service.Buckets(lengths, []int{3, 6}, 3, 2, 1), service.Buckets(lengths, []int{3, 6}, 3, 2, 1)
	for e := range 3 {
		if n := len(a.Batches(e)); n != a.Len() {
			t.Errorf("%d batches of %d", n, a.Len())
		}
		if !slices.EqualFunc(a.Batches(e), b.Batches(e), slices.Equal) {
			t.Errorf("epoch %d differs", e)
		}
	}
	if slices.EqualFunc(a.Batches(0), a.Batches(1), slices.Equal) {
		t.Error("epochs 0 and 1 have the same order")
	}
}

// TestHost_Cache: two trainers that read the same epoch have each batch made once, as far as the
// cache has room, and a host keeps no more than that.
func TestHost_Cache(t *testing.T) {
	const samples, batch = 200, 4 * 12
	want := local(t, numbers{samples, 0, -1}, 1)[0]
	for _, c := range []struct{ bytes, hits int }{{samples * 12, samples / 4}, {3 * batch, 0}} {
		h := listen(t, numbers{samples, 0, -1}, service.HostOptions{Cache: c.bytes}, nil)
		for range 2 {
			l := dial(t, service.Options{}, h.Addr())
			if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			l.Close()
		}
		if s := h.Stats(); s.Hits != c.hits || s.Cached > c.bytes || s.Cached == 0 {
			t.Errorf("a cache of %d bytes: %+v", c.bytes, s)
		}
	}
}

// TestHost_CacheMakesABatchOnce: trainers that ask for a batch at the same time have it made once.
func TestHost_CacheMakesABatchOnce(t *testing.T) {
	const samples, trainers = 80, 4
	h := listen(t, numbers{samples, 0, -1}, service.HostOptions{Cache: 1 << 20}, nil)
	var all sync.WaitGroup
	for range trainers {
		l := dial(t, service.Options{}, h.Addr())
		all.Go(func() {
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Error(err)
					return
				}
				b.Close()
			}
		})
	}
	all.Wait()
	if s := h.Stats(); s.Hits != (trainers-1)*samples/4 {
		t.Errorf("%d hits", s.Hits)
	}
}

// TestLoader_Resume: a state goes on where it was taken, with another World as well.
func TestLoader_Resume(t *testing.T) {
	const samples = 96
	want := local(t, numbers{samples, 0, -1}, 2)
	h := listen(t, numbers{samples, 0, -1}, service.HostOptions{}, nil)
	a := dial(t, service.Options{Rank: 0, World: 2}, h.Addr())
	var st data.State
	for b, err := range a.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if st = a.State(); st.Batches == 8 {
			break
		}
	}
	l := dial(t, service.Options{}, h.Addr())
	if err := l.Resume(st); err != nil || l.State().Batches != 8 {
		t.Fatal(err, l.State())
	}
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[0][8:]) {
		t.Errorf("%v, want %v", got, want[0][8:])
	}
	if st := l.State(); st.Epoch != 1 || st.Batches != 0 {
		t.Errorf("%+v after the epoch", st)
	}
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[1]) {
		t.Errorf("%v, want %v", got, want[1])
	}
	for _, s := range []data.State{{Seed: 1}, {Seed: 7, Samples: 4}, {Seed: 7, Batches: 25}, {Seed: 7, Epoch: -1}} {
		if err := l.Resume(s); !errors.Is(err, data.ErrState) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestDataset_HasTheSamplesByNumber, for a loader with an order of its own.
func TestDataset_HasTheSamplesByNumber(t *testing.T) {
	const samples = 50
	_, addrs := hosts(t, 2, job{Samples: samples, Seed: 7})
	ds, err := service.OpenDataset(t.Context(), service.Options{Key: key, Patience: patience}, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	read := func(workers int, seed uint64) (all []got) {
		l := data.NewLoader(ds, data.Options{BatchSize: 8, Shuffle: true, Seed: seed, Workers: workers})
		defer l.Close()
		for range 2 {
			all = append(all, epoch(t, l.Batches(t.Context()), nil)...)
		}
		return all
	}
	two, three := read(2, 1), read(3, 1)
	if !same(two, three) {
		t.Errorf("%v with 2 workers, %v with 3", two, three)
	}
	once(t, samples, two[:7])
	once(t, samples, two[7:])
	if two[0].random[0] == read(2, 2)[0].random[0] {
		t.Error("what is random in a sample does not follow from the seed")
	}
	if _, err := ds.Get(t.Context(), samples); err == nil {
		t.Error("there is no such sample")
	}
}

type labelled struct {
	Number int64
	Name   string
}

type labelledBatch struct {
	Number *tensor.Tensor
	Name   []string
}

// TestBatchesOf_HasSamplesOfAnyStructure, over the network as here.
func TestBatchesOf_HasSamplesOfAnyStructure(t *testing.T) {
	local := data.NewLoader(data.Structs(9, structs), data.Options{BatchSize: 3, Workers: 1})
	defer local.Close()
	h, err := service.Listen(local, "127.0.0.1:0", service.HostOptions{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	n := 0
	for b, err := range service.BatchesOf[labelledBatch](t.Context(), dial(t, service.Options{}, h.Addr())) {
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range tensor.Data[int64](b.Number) {
			if i != int64(n) || b.Name[k] != names(int(i)) {
				t.Errorf("sample %d is %d, %q", n, i, b.Name[k])
			}
			n++
		}
		b.Number.Close()
	}
	if n != 9 {
		t.Errorf("%d samples", n)
	}
}

func structs(_ context.Context, i int) (labelled, error) { return labelled{int64(i), names(i)}, nil }

func names(i int) string { return fmt.Sprintf("sample %d", i) }

// A closed data set refuses at once, and does not look for another host.
func TestDataset_IsClosed(t *testing.T) {
	_, addrs := hosts(t, 1, job{Samples: 5, Seed: 7})
	ds, err := service.OpenDataset(t.Context(), service.Options{Key: key, Patience: time.Hour}, addrs...)
	testutil.NoError(t, err)
	testutil.NoError(t, ds.Close())
	_, err = ds.Get(t.Context(), 1)
	testutil.ErrorIs(t, err, data.ErrClosed)
}
