package data_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/wire"
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
	wire.RegisterType[*noisy]("test.noisy")
	wire.RegisterType[*opener]("test.opener")
	wire.RegisterType[*counting]("test.counting")
	wire.RegisterType[*told]("test.told")
	wire.RegisterType[*deaf]("test.deaf")
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

// executors are numbers and kinds of workers.
func executors(f func(name string, workers int, kind data.Kind)) {
	for _, n := range []int{0, 1, 2, 7, 16} {
		f(fmt.Sprint(n, " goroutines"), n, data.Goroutines)
	}
	for _, n := range []int{1, 2, 5} {
		f(fmt.Sprint(n, " processes"), n, data.Processes)
	}
}

// oneOfEach is the consumer alone, and two workers of each kind.
func oneOfEach(f func(name string, workers int, kind data.Kind)) {
	f("no workers", 0, data.Goroutines)
	f("2 goroutines", 2, data.Goroutines)
	f("2 processes", 2, data.Processes)
}

func TestLoader_DependsOnSeedEpochAndIndexAlone(t *testing.T) {
	o := data.Options{BatchSize: 8, Shuffle: true, Seed: 3}
	var want [2][]uint64
	executors(func(name string, workers int, kind data.Kind) {
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

func TestLoader_ReplacesAKilledWorkerWhoseBatchComesOnceAndInOrder(t *testing.T) {
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

func TestLoader_FindsASampleThatKillsItsWorkers(t *testing.T) {
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

// The first samples are those that tell what a batch is like.
func TestLoader_LosesNoOtherSampleToOneThatKillsItsWorkers(t *testing.T) {
	var skipped []int
	l := data.NewLoader(&noisy{N: 10, Poison: []int{0, 1}}, data.Options{BatchSize: 4, Workers: 2, Kind: data.Processes,
		Skip: func(e *data.SampleError) bool { skipped = append(skipped, e.Index); return true }})
	if got := loadAll(t, l); !slices.Equal(skipped, []int{0, 1}) || !slices.Equal(got, []int{2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("skipped %v, got %v", skipped, got)
	}
}

func TestOptions_RetriesAndSkipAreForBadSamples(t *testing.T) {
	executors(func(name string, workers int, kind data.Kind) {
		o := data.Options{BatchSize: 4, Workers: workers, Kind: kind}
		ds := &noisy{N: 20, Bad: []int{0, 1, 2, 3, 9, 19}, Dir: t.TempDir()}
		if kind == data.Goroutines { // elsewhere it ends the worker, which another test is about
			ds.Panic = []int{10}
		}

		var bad *data.SampleError
		for _, err := range data.NewLoader(ds, o).Batches(t.Context()) {
			if !errors.As(err, &bad) || !errors.Is(err, errBad) && kind == data.Goroutines ||
				bad.Index != 0 || (bad.Worker < 0) != (workers == 0) ||
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
		if !slices.Equal(left, want) || len(got)+len(left) != 20 ||
			slices.ContainsFunc(got, func(i int) bool { return slices.Contains(want, i) }) || !slices.IsSorted(got) {
			t.Errorf("%s: skip: left out %v, got %v", name, left, got)
		}
		if s := l.Stats(); s.Skipped != len(want) || s.Samples != len(got) || s.Batches != 4 {
			t.Errorf("%s: %+v", name, s)
		}

		o.Skip, o.Retries = nil, 1
		if got := loadAll(t, data.NewLoader(&noisy{N: 20, Flaky: []int{0, 7, 8}, Dir: t.TempDir()},
			o)); len(got) != 20 {
			t.Errorf("%s: retry: %v", name, got)
		}
	})
}

// fewBlocks fails unless there are soon no more blocks than that. There may be fewer: the garbage
// collector finds what other tests have left. And those of a process that has ended may still be on
// their way back.
func fewBlocks(t *testing.T, d *arena.Domain, most int) {
	t.Helper()
	testutil.EventuallyNoError(t, func() error {
		if n := d.Stats().Blocks; n > most {
			d.Reap()
			return fmt.Errorf("%d blocks, want at most %d", n, most)
		}
		return nil
	})
}

func TestStack_MakesOneBlock(t *testing.T) {
	d, err := arena.Default()
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
		fewBlocks(t, d, before+len(kept))
		for k, b := range kept {
			if i := tensor.At[int64](b[0], 4, 0); i != int64(5*k+4) {
				t.Errorf("kind %d: sample %d ends batch %d", kind, i, k)
			}
			for _, f := range b {
				f.Close()
			}
		}
		fewBlocks(t, d, before)
	}
}

// Both functions make the same batch, one on the heap and one where other processes see it.
func TestStackShared_IsStackInSharedMemory(t *testing.T) {
	samples := []data.Sample{{tensor.Full(tensor.Float32, 1, 2), tensor.Scalar(tensor.Int64, 3)},
		{tensor.Full(tensor.Float32, 2, 2), tensor.Scalar(tensor.Int64, 4)}}
	heap, err := data.Stack(samples)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := data.StackShared(samples)
	if err != nil {
		t.Fatal(err)
	}
	for k := range heap {
		if heap[k].IsShared() || !shared[k].IsShared() || !tensor.Equal(heap[k], shared[k]) {
			t.Errorf("field %d: shared %v and %v, %v and %v", k, heap[k].IsShared(), shared[k].IsShared(), heap[k],
				shared[k])
		}
		if err := errors.Join(heap[k].Close(), shared[k].Close()); err != nil {
			t.Error(err)
		}
	}
}

// ragged is a set in which neighbours have one length.
type ragged int

func (d ragged) Len() int { return int(d) }

func (d ragged) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 1+i/10)}, nil
}

func TestLoader_TakesBatchesOfDifferentShapes(t *testing.T) {
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
