package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// noisy is a set whose samples are random: their number, some noise, and a label of another dtype.
type noisy struct {
	N      int
	Kill   []int  // samples that kill their worker, each once, as long as Dir remembers
	Poison []int  // samples that kill whoever loads them
	Bad    []int  // samples that fail
	Flaky  []int  // samples that fail the first time
	Panic  []int  // samples that panic
	Dir    string // where is remembered what has happened
}

func init() {
	data.Register[*noisy]("test.noisy")
	data.Register[*opener]("test.opener")
	data.Register[*counting]("test.counting")
	data.Register[*deaf]("test.deaf")
}

func (d *noisy) Len() int { return d.N }

// once reports whether it is called for the first time, by any process.
func (d *noisy) once(what string, i int) bool {
	f, err := os.OpenFile(filepath.Join(d.Dir, fmt.Sprint(what, i)), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err == nil
}

func die() {
	p, _ := os.FindProcess(os.Getpid())
	p.Kill()
	select {}
}

func (d *noisy) Get(ctx context.Context, i int) (data.Sample, error) {
	switch {
	case slices.Contains(d.Kill, i) && d.once("kill", i), slices.Contains(d.Poison, i):
		die()
	case slices.Contains(d.Bad, i), slices.Contains(d.Flaky, i) && d.once("flaky", i):
		return nil, errBad
	case slices.Contains(d.Panic, i):
		panic("no such sample")
	}
	rng := data.Rand(ctx)
	return data.Sample{
		tensor.FromSlice([]int64{int64(i), rng.Int64(), data.Rand(ctx).Int64()}, 3),
		tensor.FromSlice([]float32{rng.Float32()}, 1),
		tensor.FromSlice([]uint8{uint8(i)}),
	}, nil
}

// digest is a hash of each batch.
func digest(t testing.TB, b data.Batch) uint64 {
	t.Helper()
	h := fnv.New64a()
	for _, f := range b {
		fmt.Fprint(h, f.DType(), f.Shape())
		h.Write(tensor.Bytes(f))
	}
	runtime.KeepAlive(b)
	return h.Sum64()
}

// digests returns the hashes of an epoch's batches.
func digests(t testing.TB, l *data.Loader, epoch int) (all []uint64) {
	t.Helper()
	for b, err := range l.Epoch(t.Context(), epoch) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, digest(t, b))
	}
	return all
}

// crews are numbers and kinds of workers.
func crews(f func(name string, workers int, kind data.Kind)) {
	for _, n := range []int{0, 1, 2, 7, 16} {
		f(fmt.Sprint(n, " goroutines"), n, data.Goroutines)
	}
	for _, n := range []int{1, 2, 5} {
		f(fmt.Sprint(n, " processes"), n, data.Processes)
	}
}

func TestTheStreamDependsOnSeedEpochAndIndexAlone(t *testing.T) {
	o := data.Options{BatchSize: 8, Shuffle: true, Seed: 3}
	var want [2][]uint64
	crews(func(name string, workers int, kind data.Kind) {
		for _, asReady := range []bool{false, true} {
			o.Workers, o.Kind, o.AsReady = workers, kind, asReady
			l := data.NewLoader(&noisy{N: 100}, o)
			for epoch := range want {
				got := digests(t, l, epoch)
				if want[epoch] == nil {
					want[epoch] = got
				}
				ordered := want[epoch]
				if asReady {
					ordered = slices.Sorted(slices.Values(ordered))
					slices.Sort(got)
				}
				if !slices.Equal(got, ordered) {
					t.Errorf("%s, as ready %v: epoch %d differs", name, asReady, epoch)
				}
			}
			l.Close()
		}
	})
	if slices.Equal(want[0], want[1]) {
		t.Error("the epochs are alike")
	}
	o.Seed, o.Workers = 4, 0
	if slices.Equal(digests(t, data.NewLoader(&noisy{N: 100}, o), 0), want[0]) {
		t.Error("the seeds are alike")
	}
}

func TestAKilledWorkerIsReplacedAndItsBatchComesOnceAndInOrder(t *testing.T) {
	o := data.Options{BatchSize: 6, Shuffle: true, Seed: 1}
	want := digests(t, data.NewLoader(&noisy{N: 90}, o), 0)
	for _, persistent := range []bool{false, true} {
		o.Workers, o.Kind, o.Persistent = 3, data.Processes, persistent
		l := data.NewLoader(&noisy{N: 90, Kill: []int{3, 17, 18, 60}, Dir: t.TempDir()}, o)
		if got := digests(t, l, 0); !slices.Equal(got, want) {
			t.Errorf("persistent %v: %v, want %v", persistent, got, want)
		}
		if n := l.Stats().Deaths; n < 4 {
			t.Errorf("persistent %v: Stats count %d deaths, want at least 4", persistent, n)
		}
		l.Close()
	}
}

func TestASampleThatKillsItsWorkersIsFound(t *testing.T) {
	ds := &noisy{N: 40, Poison: []int{21}}
	o := data.Options{BatchSize: 8, Workers: 2, Kind: data.Processes}
	l := data.NewLoader(ds, o)
	n := 0
	var last error
	for _, err := range l.Epoch(t.Context(), 0) {
		if last = err; err == nil {
			n++
		}
	}
	var bad *data.SampleError
	var dead *shoal.ProcessError
	if !errors.As(last, &bad) || bad.Index != 21 || !errors.As(last, &dead) || dead.Signal != os.Kill || n != 2 {
		t.Errorf("%v after %d batches, want the death of sample 21 after 2", last, n)
	}
	var skipped []int
	o.Skip = func(e *data.SampleError) bool { skipped = append(skipped, e.Index); return true }
	got := loadAll(t, data.NewLoader(ds, o))
	want := data.Sequential(40).Order(0)
	if !slices.Equal(skipped, []int{21}) || !slices.Equal(got, slices.Delete(want, 21, 22)) {
		t.Errorf("skipped %v, got %v", skipped, got)
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

func TestPoliciesForBadSamples(t *testing.T) {
	crews(func(name string, workers int, kind data.Kind) {
		o := data.Options{BatchSize: 4, Workers: workers, Kind: kind}
		ds := &noisy{N: 20, Bad: []int{0, 1, 2, 3, 9, 19}, Dir: t.TempDir()}
		if kind == data.Goroutines { // elsewhere it ends the worker, which another test is about
			ds.Panic = []int{10}
		}

		var bad *data.SampleError
		for _, err := range data.NewLoader(ds, o).Batches(t.Context()) {
			if !errors.As(err, &bad) || !errors.Is(err, errBad) && kind == data.Goroutines || bad.Index != 0 || (bad.Worker < 0) != (workers == 0) ||
				!strings.Contains(err.Error(), errBad.Error()) {
				t.Errorf("%s: fail: %v", name, err)
			}
		}

		var left []int
		o.Skip = func(e *data.SampleError) bool { left = append(left, e.Index); return true }
		l := data.NewLoader(ds, o)
		got := loadAll(t, l)
		want := slices.Concat(ds.Bad, ds.Panic)
		slices.Sort(want)
		if !slices.Equal(left, want) || len(got)+len(left) != 20 || slices.ContainsFunc(got, func(i int) bool { return slices.Contains(want, i) }) || !slices.IsSorted(got) {
			t.Errorf("%s: skip: left out %v, got %v", name, left, got)
		}
		if s := l.Stats(); s.Skipped != len(want) || s.Samples != len(got) || s.Batches != 4 {
			t.Errorf("%s: %+v", name, s)
		}

		o.Skip, o.Retries = nil, 1
		if got := loadAll(t, data.NewLoader(&noisy{N: 20, Flaky: []int{0, 7, 8}, Dir: t.TempDir()}, o)); len(got) != 20 {
			t.Errorf("%s: retry: %v", name, got)
		}
	})
}

func TestABatchIsOneBlock(t *testing.T) {
	d, err := shm.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		before := d.Stats().Blocks
		l := data.NewLoader(&noisy{N: 20}, data.Options{BatchSize: 5, Workers: 2, Kind: kind, Shared: true})
		var kept []data.Batch
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range b {
				if !f.IsShared() || !f.SameStorage(b[0]) || f.Dim(0) != 5 {
					t.Errorf("kind %d: a field of shape %v lies elsewhere", kind, f.Shape())
				}
			}
			kept = append(kept, b)
		}
		l.Close()
		if n := d.Stats().Blocks - before; n != len(kept) {
			t.Errorf("kind %d: %d batches are %d blocks", kind, len(kept), n)
		}
		for k, b := range kept {
			if i := tensor.At[int64](b[0], 4, 0); i != int64(5*k+4) {
				t.Errorf("kind %d: sample %d ends batch %d", kind, i, k)
			}
			for _, f := range b {
				f.Close()
			}
		}
		if n := d.Stats().Blocks; n != before {
			t.Errorf("kind %d: %d blocks are left", kind, n-before)
		}
	}
}

// ragged is a set in which neighbours have one length.
type ragged int

func (d ragged) Len() int { return int(d) }

func (d ragged) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 1+i/10)}, nil
}

func TestBatchesMayDifferInShape(t *testing.T) {
	for _, workers := range []int{0, 3} {
		got := loadAll(t, data.NewLoader(ragged(95), data.Options{BatchSize: 5, Workers: workers}))
		if !slices.Equal(got, data.Sequential(95).Order(0)) {
			t.Errorf("%d workers: %v", workers, got)
		}
		_, err := read(t, data.NewLoader(ragged(95), data.Options{BatchSize: 4, Workers: workers}), 0)
		var bad *data.SampleError
		if !errors.As(err, &bad) || bad.Index != 10 || bad.At != 2 || !errors.Is(err, data.ErrShape) {
			t.Errorf("%d workers: %v, want that sample 10 is unlike the others", workers, err)
		}
	}
}

var longest = data.RegisterCollate("test.longest", func(ctx context.Context, samples []data.Sample) (data.Batch, error) {
	n := 0
	for _, s := range samples {
		n = max(n, s[0].Dim(0))
	}
	out := tensor.New(tensor.Int64, len(samples), n)
	for row, s := range samples {
		to := out.Select(0, row)
		to.Narrow(0, 0, s[0].Dim(0)).CopyFrom(s[0])
	}
	return data.Batch{out}, nil
})

func TestCollateMakesBatchesOfItsOwn(t *testing.T) {
	data.RegisterCollate("test.other", longest2)
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		l := data.NewLoader(registeredRagged{30}, data.Options{BatchSize: 4, Workers: 2, Kind: kind, Collate: longest})
		var shapes []string
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			shapes = append(shapes, fmt.Sprint(b[0].Shape()))
		}
		if got := strings.Join(shapes, " "); got != "[4 1] [4 1] [4 2] [4 2] [4 2] [4 3] [4 3] [2 3]" {
			t.Errorf("kind %d: %s", kind, got)
		}
		l.Close()
	}
	defer func() {
		if recover() == nil {
			t.Error("a name was taken twice")
		}
	}()
	data.RegisterCollate("test.longest", longest2)
}

func longest2(context.Context, []data.Sample) (data.Batch, error) { return nil, nil }

type registeredRagged struct{ N int }

func init() { data.Register[registeredRagged]("test.ragged") }

func (d registeredRagged) Len() int { return d.N }
func (d registeredRagged) Get(ctx context.Context, i int) (data.Sample, error) {
	return ragged(d.N).Get(ctx, i)
}

func TestSingleSamplesHaveNoDimensionForTheBatch(t *testing.T) {
	crews(func(name string, workers int, kind data.Kind) {
		n := 0
		for b, err := range data.NewLoader(&noisy{N: 9}, data.Options{BatchSize: data.Single, Workers: workers, Kind: kind}).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b[0].Shape(), []int{3}) || len(b[2].Shape()) != 0 || tensor.At[int64](b[0], 0) != int64(n) {
				t.Errorf("%s: sample %d has shape %v", name, n, b[0].Shape())
			}
			n++
		}
		if n != 9 {
			t.Errorf("%s: %d samples", name, n)
		}
	})
}

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

func TestAStreamIsTheSameForAnyWorkers(t *testing.T) {
	var want []uint64
	crews(func(name string, workers int, kind data.Kind) {
		for _, asReady := range []bool{false, true} {
			c := &counting{N: 203}
			if kind == data.Processes {
				c.Kill, c.Dir = []int{50, 130}, t.TempDir()
			}
			l := data.NewStreamLoader(c, data.Options{BatchSize: 4, Workers: workers, Kind: kind, AsReady: asReady, Seed: 5})
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
				t.Errorf("%s, as ready %v: %d batches, which differ from the first %d", name, asReady, len(got), len(want))
			}
		}
	})
}

func TestAllRanksAndWorkersTogetherReadAStreamOnce(t *testing.T) {
	for _, world := range []int{1, 2, 3, 5, 20} {
		for _, workers := range []int{0, 1, 2, 5} {
			for _, n := range []int{0, 1, 3, 100} {
				var all []int
				for rank := range world {
					l := data.NewStreamLoader(&counting{N: n}, data.Options{BatchSize: 3, Workers: workers, Rank: rank, World: world})
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

func TestAStreamThatIgnoresItsPartIsDetected(t *testing.T) {
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
					t.Errorf("%s, as ready %v: stopped after batch %d with %s: %d batches, want %d", name, asReady, k, state, len(got), len(want))
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
		l := data.NewLoader(&noisy{N: n}, data.Options{BatchSize: size, Shuffle: true, Seed: 2, Rank: rank, World: world, Workers: rank % 3})
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
		if want := data.Sequential(n).Order(0); !slices.Equal(slices.Compact(slices.Clone(all)), want) || len(all) > n+worlds[2] {
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
	merged, err := data.MergeStates(states...)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		l := data.NewStreamLoader(&counting{N: n}, data.Options{BatchSize: 3, Rank: rank, World: 2})
		if err := l.Resume(merged); err != nil {
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
		"seed": {Seed: 2}, "negative": {Seed: 1, Samples: -1}, "epoch": {Seed: 1, Epoch: -1}, "parts": {Seed: 1, Count: 1, Parts: []data.PartState{{}}},
		"batches": {Seed: 1, Batches: 3}, "ahead": {Seed: 1, Ahead: []int{1}, Width: 3}, "behind": {Seed: 1, Ahead: []int{-1}, Width: 2},
	} {
		if err := l.Resume(st); !errors.Is(err, data.ErrState) {
			t.Errorf("%s: %v, want ErrState", name, err)
		}
	}
	for name, st := range map[string]data.State{
		"samples": {Seed: 1, Samples: 1}, "count": {Seed: 1, Parts: []data.PartState{{}}}, "index": {Seed: 1, Count: 2, Parts: []data.PartState{{Index: 2}}},
	} {
		if err := s.Resume(st); !errors.Is(err, data.ErrState) {
			t.Errorf("stream, %s: %v, want ErrState", name, err)
		}
	}
	if _, err := data.MergeStates(data.State{Epoch: 1}, data.State{Epoch: 2}); !errors.Is(err, data.ErrState) {
		t.Errorf("merge: %v", err)
	}
	if got := loadAll(t, l); len(got) != 10 {
		t.Errorf("after that %v", got)
	}
}

// opener opens a set that knows its worker.
type opener struct{ N int }

var opened, closedSets atomic.Int32

func (o *opener) Len() int { return o.N }
func (o *opener) Get(context.Context, int) (data.Sample, error) {
	return nil, errors.New("it was not opened")
}

func (o *opener) Open(ctx context.Context) (any, error) {
	opened.Add(1)
	info, ok := data.WorkerInfo(ctx)
	return &place{o.N, info, ok}, nil
}

type place struct {
	n    int
	info data.Info
	ok   bool
}

func (p *place) Len() int     { return p.n }
func (p *place) Close() error { closedSets.Add(1); return nil }
func (p *place) Get(ctx context.Context, i int) (data.Sample, error) {
	if info, ok := data.WorkerInfo(ctx); ok != p.ok || ok && (info.ID != p.info.ID || info.Epoch != 4) {
		return nil, fmt.Errorf("worker %+v, opened in %+v", info, p.info)
	}
	return data.Sample{tensor.FromSlice([]int64{int64(p.info.ID), int64(p.info.Workers), int64(p.info.Seed)}, 3)}, nil
}

func TestEachWorkerOpensASetOfItsOwn(t *testing.T) {
	crews(func(name string, workers int, kind data.Kind) {
		opened.Store(0)
		closedSets.Store(0)
		for b, err := range data.NewLoader(&opener{30}, data.Options{BatchSize: 3, Workers: workers, Kind: kind, Seed: 6}).Epoch(t.Context(), 4) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for row := range 3 {
				id, n, seed := tensor.At[int64](b[0], row, 0), tensor.At[int64](b[0], row, 1), tensor.At[int64](b[0], row, 2)
				if id < 0 || id >= int64(max(1, workers)) || n != int64(workers) || seed != 6 && workers > 0 {
					t.Errorf("%s: worker %d of %d with seed %d", name, id, n, seed)
				}
			}
		}
		if n := opened.Load(); kind == data.Goroutines && (n != int32(max(1, workers)) || closedSets.Load() != n) {
			t.Errorf("%s: %d sets opened, %d closed", name, n, closedSets.Load())
		}
	})
}

func TestWhatCannotGoToProcessesIsRefused(t *testing.T) {
	_, err := read(t, data.NewLoader(upTo(10), data.Options{Workers: 2, Kind: data.Processes}), 0)
	if err == nil || !strings.Contains(err.Error(), "numbers") {
		t.Errorf("%v, want the name of the type that is not registered", err)
	}
	for name, o := range map[string]data.Options{
		"negative": {Workers: -1}, "shuffle": {Shuffle: true, Sampler: data.Sequential(1)}, "batches": {BatchSize: 2, Batches: data.Batched(data.Sequential(1), 1, false)},
		"single": {BatchSize: data.Single, DropLast: true}, "persistent": {Persistent: true}, "transform": {Kind: data.Processes, Transform: data.ToTensor},
		"rank": {Rank: 1}, "timeout": {Timeout: -1}, "kind": {Kind: 9},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: NewLoader did not panic", name)
				}
			}()
			data.NewLoader(upTo(1), o)
		}()
	}
}

// gated is a set in which one sample waits until others say so.
type gated struct {
	n, slow int
	began   chan struct{} // closed when the slow one is being loaded
	gate    chan struct{}
	loaded  atomic.Int32
}

func (g *gated) Len() int { return g.n }
func (g *gated) Get(ctx context.Context, i int) (data.Sample, error) {
	if i == g.slow {
		close(g.began)
		select {
		case <-g.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	g.loaded.Add(1)
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

func TestASlowSampleStallsOnlyItself(t *testing.T) {
	// The slow one is in the batch in front, so that ordered delivery waits; everything else in the window is loaded meanwhile.
	g := &gated{n: 400, slow: 3, began: make(chan struct{}), gate: make(chan struct{})}
	o := data.Options{BatchSize: 10, Workers: 2, Prefetch: 6}
	l := data.NewLoader(g, o)
	defer l.Close()
	go func() {
		<-g.began
		for g.loaded.Load() < 10*6-10 {
			time.Sleep(time.Millisecond)
		}
		close(g.gate)
	}()
	if got := loadAll(t, l); !slices.Equal(got, data.Sequential(400).Order(0)) {
		t.Errorf("%v", got)
	}

	// As ready, batches overtake it.
	g = &gated{n: 400, slow: 3, began: make(chan struct{}), gate: make(chan struct{})}
	o.AsReady = true
	n := 0
	for b, err := range data.NewLoader(g, o).Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 39 {
			close(g.gate)
		}
		if has := slices.Contains(tensor.Data[int64](b[0]), 3); has != (n == 40) {
			t.Errorf("the slow sample is in batch %d", n)
		}
	}
}

func TestPrefetchIsBounded(t *testing.T) {
	for name, o := range map[string]data.Options{
		"count": {Prefetch: 3},
		"bytes": {Prefetch: 1000, PrefetchBytes: 3 * 10 * 64},
	} {
		g := &gated{n: 1000, slow: -1}
		o.BatchSize, o.Workers = 10, 2
		delivered := 0
		for _, err := range data.NewLoader(&row64{g}, o).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			delivered++
			if n := int(g.loaded.Load()); n > 10*(delivered+3)+1 {
				t.Fatalf("%s: %d samples were loaded when %d batches of 10 were delivered", name, n, delivered)
			}
		}
	}
}

// row64 has samples of 64 bytes.
type row64 struct{ *gated }

func (r *row64) Get(ctx context.Context, i int) (data.Sample, error) {
	s, err := r.gated.Get(ctx, i)
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 8)}, errors.Join(err, s[0].Close())
}

func TestABatchThatDoesNotComeIsATimeout(t *testing.T) {
	g := &gated{n: 10, slow: 5, began: make(chan struct{}), gate: make(chan struct{})}
	_, err := read(t, data.NewLoader(g, data.Options{BatchSize: 5, Workers: 2, Timeout: 50 * time.Millisecond}), 0)
	if !errors.Is(err, data.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrTimeout", err)
	}
}

func TestPersistentProcessesStay(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		l := data.NewLoader(&pids{8}, data.Options{Workers: 2, Kind: data.Processes, Persistent: persistent})
		seen := map[int]bool{}
		for range 3 {
			for _, pid := range pidsOf(t, l) {
				if pid == os.Getpid() {
					t.Error("the consumer has loaded a sample")
				}
				seen[pid] = true
			}
		}
		l.Close()
		if persistent && len(seen) > 2 || !persistent && len(seen) < 3 {
			t.Errorf("persistent %v: %d processes", persistent, len(seen))
		}
		for pid := range seen {
			if _, err := os.Stat(fmt.Sprint("/proc/", pid)); err == nil {
				t.Errorf("persistent %v: process %d lives", persistent, pid)
			}
		}
	}
}

// pids is a set whose samples are the numbers of the processes that load them.
type pids struct{ N int }

func init() { data.Register[*pids]("test.pids") }

func (p *pids) Len() int { return p.N }
func (p *pids) Get(context.Context, int) (data.Sample, error) {
	return data.Sample{tensor.Scalar(tensor.Int64, float64(os.Getpid()))}, nil
}

func pidsOf(t *testing.T, l *data.Loader) (all []int) {
	t.Helper()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int(tensor.At[int64](b[0], 0)))
	}
	return all
}
