package data_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

var longest = data.RegisterCollate("test.longest",
	func(ctx context.Context, samples []data.Sample) (data.Batch, error) {
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

func TestCollate_MakesBatchesOfItsOwn(t *testing.T) {
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

func init() { wire.RegisterType[registeredRagged]("test.ragged") }

func (d registeredRagged) Len() int { return d.N }
func (d registeredRagged) Get(ctx context.Context, i int) (data.Sample, error) {
	return ragged(d.N).Get(ctx, i)
}

func TestSingle_HasNoDimensionForTheBatch(t *testing.T) {
	executors(func(name string, workers int, kind data.Kind) {
		n := 0
		for b, err := range data.NewLoader(&noisy{N: 9},
			data.Options{BatchSize: data.Single, Workers: workers, Kind: kind}).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b[0].Shape(), []int{3}) || len(b[2].Shape()) != 0 ||
				tensor.At[int64](b[0], 0) != int64(n) {
				t.Errorf("%s: sample %d has shape %v", name, n, b[0].Shape())
			}
			n++
		}
		if n != 9 {
			t.Errorf("%s: %d samples", name, n)
		}
	})
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

func TestOpener_OpensASetForEachWorker(t *testing.T) {
	executors(func(name string, workers int, kind data.Kind) {
		opened.Store(0)
		closedSets.Store(0)
		for b, err := range data.NewLoader(&opener{30},
			data.Options{BatchSize: 3, Workers: workers, Kind: kind, Seed: 6}).Epoch(t.Context(), 4) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for row := range 3 {
				id, n, seed := tensor.At[int64](b[0], row, 0), tensor.At[int64](b[0], row, 1),
					tensor.At[int64](b[0], row, 2)
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

func TestOptions_RefuseWhatCannotGoToProcesses(t *testing.T) {
	_, err := read(t, data.NewLoader(upTo(10), data.Options{Workers: 2, Kind: data.Processes}), 0)
	if err == nil || !strings.Contains(err.Error(), "numbers") {
		t.Errorf("%v, want the name of the type that is not registered", err)
	}
	same := data.TransformFunc(func(_, src *tensor.Tensor) *tensor.Tensor { return src })
	_, err = read(t, data.NewLoader(&pids{10}, data.Options{Workers: 2, Kind: data.Processes, Transform: same}), 0)
	if err == nil || !strings.Contains(err.Error(), "TransformFunc") {
		t.Errorf("%v, want the name of the type that does not go there", err)
	}
	for name, o := range map[string]data.Options{
		"negative": {Workers: -1}, "shuffle": {Shuffle: true, Sampler: data.Sequential(1)},
		"batches": {BatchSize: 2, Batches: data.Batched(data.Sequential(1), 1, false)},
		"single":  {BatchSize: data.Single, DropLast: true}, "persistent": {Persistent: true},
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

func TestOptions_PersistentProcessesStay(t *testing.T) {
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

func init() { wire.RegisterType[*pids]("test.pids") }

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

// A fragile set kills the worker that opens it while its file is there.
type fragile struct{ Bad string }

func init() { wire.RegisterType[*fragile]("test.fragile") }

func (f *fragile) Len() int { return 8 }
func (f *fragile) Get(context.Context, int) (data.Sample, error) {
	return data.Sample{tensor.Scalar(tensor.Int64, 1)}, nil
}
func (f *fragile) Open(context.Context) (any, error) {
	if _, err := os.Stat(f.Bad); err == nil {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return f, nil
}

// An epoch in which no worker can be started fails, and not all that follow.
func TestOptions_PersistentProcessesAreStartedAgainAfterAllHaveDied(t *testing.T) {
	f := &fragile{filepath.Join(t.TempDir(), "bad")}
	l := data.NewLoader(f, data.Options{Workers: 2, Kind: data.Processes, Persistent: true})
	defer l.Close()
	epoch := func() (n int, failed error) {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				return n, err
			}
			n++
			for _, t := range b {
				t.Close()
			}
		}
		return n, nil
	}
	if n, err := epoch(); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	if err := os.WriteFile(f.Bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range shoal.ActiveChildren() {
		c.Kill()
		c.Wait(t.Context())
	}
	if _, err := epoch(); !errors.Is(err, pool.ErrBroken) {
		t.Fatalf("no worker can be started, and the epoch says %v", err)
	}
	if err := os.Remove(f.Bad); err != nil {
		t.Fatal(err)
	}
	if n, err := epoch(); n != 8 || err != nil {
		t.Errorf("%d of 8 samples after the workers are well again: %v", n, err)
	}
}
