package data_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// upToState reads n batches and returns their hashes, and the state as JSON.
func upToState(t *testing.T, l *data.Loader, n int) (got []uint64, state string) {
	t.Helper()
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, digest(t, b)); len(got) == n {
			break
		}
	}
	js, err := json.Marshal(l.State())
	if err != nil || len(js) > 2000 {
		t.Fatalf("a state of %d bytes, %v", len(js), err)
	}
	return got, string(js)
}

func resumed(t *testing.T, l *data.Loader, state string) *data.Loader {
	t.Helper()
	var s data.State
	if err := json.Unmarshal([]byte(state), &s); err != nil {
		t.Fatal(err)
	}
	if err := l.Resume(s); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestResumeGoesOnWithOtherWorkers(t *testing.T) {
	makers := map[string]func(o data.Options) *data.Loader{
		"dataset": func(o data.Options) *data.Loader {
			o.Shuffle = true
			return data.NewLoader(&noisy{N: 50}, o)
		},
		"stream": func(o data.Options) *data.Loader { return data.NewStreamLoader(&counting{N: 60}, o) },
		"batches": func(o data.Options) *data.Loader {
			o.BatchSize, o.Batches = 0, data.Batched(data.Random(50, 8), 7, false)
			return data.NewLoader(&noisy{N: 50}, o)
		},
	}
	for name, maker := range makers {
		o := data.Options{BatchSize: 4, Seed: 9}
		want := digests(t, maker(o), 0)
		for _, asReady := range []bool{false, true} {
			for k := 1; k <= len(want); k++ {
				first, second := o, o
				first.AsReady, first.Workers = asReady, k%4
				second.AsReady, second.Workers = asReady, (k+1)%3
				before, state := upToState(t, maker(first), k)
				l := resumed(t, maker(second), state)
				if again := l.State(); fmt.Sprint(again) == "" {
					t.Error("no state")
				}
				got := before
				for b, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, digest(t, b))
				}
				ordered := slices.Clone(want)
				if asReady {
					slices.Sort(ordered)
					slices.Sort(got)
				}
				if !slices.Equal(got, ordered) {
					t.Errorf("%s, as ready %v: stopped after batch %d with %s: %d batches, want %d", name,
						asReady, k, state, len(got), len(want))
				}
				if next := l.State(); next.Epoch != 1 {
					t.Errorf("%s: after the epoch the state is %+v", name, next)
				}
				l.Close()
			}
		}
	}
}

func TestResumeGoesOnWithOtherRanks(t *testing.T) {
	const n, size = 96, 4
	run := func(rank, world, batches int, state string) (got []int, after string) {
		l := data.NewLoader(&noisy{N: n}, data.Options{BatchSize: size, Shuffle: true, Seed: 2, Rank: rank,
			World: world, Workers: rank % 3})
		defer l.Close()
		if state != "" {
			resumed(t, l, state)
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for row := range b[0].Dim(0) {
				got = append(got, int(tensor.At[int64](b[0], row, 0)))
			}
			if batches--; batches == 0 {
				break
			}
		}
		js, err := json.Marshal(l.State())
		if err != nil {
			t.Fatal(err)
		}
		return got, string(js)
	}
	for _, worlds := range [][3]int{{2, 3, 1}, {1, 4, 2}, {3, 1, 4}} {
		var all []int
		state := ""
		for phase, world := range worlds {
			batches, next := 2, ""
			if phase == len(worlds)-1 {
				batches = -1
			}
			for rank := range world {
				got, after := run(rank, world, batches, state)
				all = append(all, got...)
				if rank > 0 && after != next {
					t.Errorf("rank %d of %d: state %s, of others %s", rank, world, after, next)
				}
				next = after
			}
			state = next
		}
		slices.Sort(all)
		if want := data.Sequential(n).Order(0); !slices.Equal(slices.Compact(slices.Clone(all)), want) ||
			len(all) > n+worlds[2] {
			t.Errorf("ranks %v have read %v", worlds, all)
		}
	}
}

func TestAStreamGoesOnWithOtherRanks(t *testing.T) {
	const n = 100
	var all []int
	var states []data.State
	for rank := range 3 {
		l := data.NewStreamLoader(&counting{N: n}, data.Options{BatchSize: 2, Rank: rank, World: 3, Workers: rank})
		k := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for row := range b[0].Dim(0) {
				all = append(all, int(tensor.At[int64](b[0], row, 0)))
			}
			if k++; k == 5+rank {
				break
			}
		}
		states = append(states, l.State())
	}
	for rank := range 2 {
		l := data.NewStreamLoader(&counting{N: n}, data.Options{BatchSize: 3, Rank: rank, World: 2})
		if err := l.Resume(states...); err != nil {
			t.Fatal(err)
		}
		all = append(all, loadAll(t, l)...)
	}
	slices.Sort(all)
	if !slices.Equal(all, data.Sequential(n).Order(0)) {
		t.Errorf("%v", all)
	}
}

func TestStatesOfOthersAreRefused(t *testing.T) {
	l := data.NewLoader(upTo(10), data.Options{BatchSize: 2, Seed: 1})
	s := data.NewStreamLoader(&counting{N: 10}, data.Options{Seed: 1})
	for name, st := range map[string]data.State{
		"seed": {Seed: 2}, "negative": {Seed: 1, Samples: -1}, "epoch": {Seed: 1, Epoch: -1},
		"parts":   {Seed: 1, Count: 1, Parts: []data.PartState{{}}},
		"batches": {Seed: 1, Batches: 3}, "ahead": {Seed: 1, Ahead: []int{1}, Width: 3},
		"behind": {Seed: 1, Ahead: []int{-1}, Width: 2},
	} {
		if err := l.Resume(st); !errors.Is(err, data.ErrState) {
			t.Errorf("%s: %v, want ErrState", name, err)
		}
	}
	for name, st := range map[string]data.State{
		"samples": {Seed: 1, Samples: 1}, "count": {Seed: 1, Parts: []data.PartState{{}}},
		"index": {Seed: 1, Count: 2, Parts: []data.PartState{{Index: 2}}},
	} {
		if err := s.Resume(st); !errors.Is(err, data.ErrState) {
			t.Errorf("stream, %s: %v, want ErrState", name, err)
		}
	}
	if err := s.Resume(data.State{Seed: 1}, data.State{Seed: 1, Epoch: 2}); !errors.Is(err, data.ErrState) {
		t.Errorf("of two epochs: %v", err)
	}
	if err := s.Resume(); !errors.Is(err, data.ErrState) {
		t.Errorf("of none: %v", err)
	}
	if got := loadAll(t, l); len(got) != 10 {
		t.Errorf("after that %v", got)
	}
}
