package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

var loader = Suite{
	Name:   "loader",
	Doc:    "batches/s with small samples, time to the first batch, and memory of a large set with several processes",
	peer:   "torch_loader.py",
	groups: []func(context.Context, *environment) (group, error){loaderLightRows, imageRows, loaderMemoryRows},
}

const (
	lightItems  = 20_000
	lightBatch  = 128
	lightSide   = 32
	lightPixels = 3 * lightSide * lightSide
)

// A flipped is an in-memory image data set. Each image is mirrored at random while it is copied
// into its batch.
type flipped struct{ Images *tensor.Tensor }

func init() { wire.RegisterType[*flipped]("bench.flipped") }

func (f *flipped) Len() int { return f.Images.Dim(0) }

func (f *flipped) Get(ctx context.Context, i int) (data.Sample, error) {
	one := tensor.New(tensor.Float32, 1, 3, lightSide, lightSide)
	err := f.Gather(ctx, []int{i}, data.Batch{one})
	return data.Sample{one.Select(0, 0)}, err
}

func (f *flipped) Gather(ctx context.Context, indices []int, into data.Batch) error {
	from, to := tensor.Data[float32](f.Images), tensor.Data[float32](into[0])
	for k, i := range indices {
		src, dst := from[i*lightPixels:][:lightPixels], to[k*lightPixels:][:lightPixels]
		if data.SampleSeed(ctx, i)&1 == 0 {
			copy(dst, src)
			continue
		}
		image.Mirror(dst, src, lightSide)
	}
	runtime.KeepAlive(f)
	into[0].Touch()
	return nil
}

func loaderLightRows(_ context.Context, h *environment) (group, error) {
	items := max(h.scaleRounds(lightItems), 2*lightBatch)
	set := &flipped{tensor.Rand(tensor.Float32, tensor.NewGenerator(1), items, 3, lightSide, lightSide)}
	open := func() *data.Loader {
		return data.NewLoader(set, data.Options{BatchSize: lightBatch, Shuffle: true, Seed: 1, Workers: sys.CPUs()})
	}
	return group{rounds: 7, cases: []Case{
		{
			Name: "loader_light", Unit: PerSecond, Target: bothTargets(timesPeer(5), overFloor(2)),
			Ours: &Probe{Measure: func(ctx context.Context) (float64, error) {
				l := open()
				defer l.Close()
				begin := sys.Monotonic()
				n, err := countSamples(l.Batches(ctx))
				return float64(n) / (sys.Monotonic() - begin).Seconds(), err
			}},
			Floor: &Probe{Measure: measureCopiedItems(items)},
			Peer:  &peerWork{op: "light", Size: items, Rounds: lightBatch},
		},
		{
			Name: "loader_first_batch", Unit: Nanoseconds, Target: timesPeer(100),
			Ours: &Probe{Measure: func(ctx context.Context) (float64, error) {
				l := open()
				defer l.Close()
				begin := sys.Monotonic()
				for _, err := range l.Batches(ctx) {
					return float64(sys.Monotonic() - begin), err
				}
				return 0, errors.New("no batch")
			}},
			Peer: &peerWork{op: "first_batch", Size: items, Rounds: lightBatch},
		},
	}}, nil
}

// countSamples ranges over the batches of an epoch, closes them, and returns the number of their
// samples. It stops at the first error.
func countSamples(batches func(func(data.Batch, error) bool)) (n int, err error) {
	for b, err := range batches {
		if err != nil {
			return n, err
		}
		n += b[0].Dim(0)
		b.Close()
	}
	return n, nil
}

// measureCopiedItems returns a function that measures how many items per second all processors
// together can copy in order, which bounds the throughput of a loader.
func measureCopiedItems(items int) func(context.Context) (float64, error) {
	src, dst := make([]float32, items*lightPixels), make([]float32, lightBatch*lightPixels*sys.CPUs())
	for i := range src {
		src[i] = 1
	}
	return func(context.Context) (float64, error) {
		begin := time.Now()
		var wg sync.WaitGroup
		n := sys.CPUs()
		for k := range n {
			wg.Go(func() {
				from, to := src[k*items/n*lightPixels:(k+1)*items/n*lightPixels],
					dst[k*lightBatch*lightPixels:][:lightBatch*lightPixels]
				for len(from) > 0 {
					from = from[copy(to, from):]
				}
			})
		}
		wg.Wait()
		return float64(items) / time.Since(begin).Seconds(), nil
	}
}

// loaderMemoryRows returns rows of the memory cost of each loading process in addition to an
// in-memory data set. The set has 2 GiB, or less if the domain is smaller.
func loaderMemoryRows(_ context.Context, h *environment) (group, error) {
	rows := max(h.scaleRounds(2<<30/(4*lightPixels)), 256)
	images, err := tensor.NewShared(tensor.Float32, rows, lightPixels)
	for errors.Is(err, arena.ErrNoSpace) && rows > 256 {
		rows /= 2
		images, err = tensor.NewShared(tensor.Float32, rows, lightPixels)
	}
	if err != nil {
		return group{}, err
	}
	set := data.NewTensorDataset(images)
	images.Fill(1)
	g := group{rounds: 1, close: set.Close}
	for _, workers := range []int{1, 2, 8} {
		g.cases = append(g.cases, Case{
			Name: fmt.Sprint("loader_memory_", workers), Unit: Bytes, Target: atMost(15<<20, "15 MiB"),
			Ours: &Probe{Once: true, Measure: func(ctx context.Context) (float64,
				error) {
				return loaderMemory(ctx, set, workers)
			}},
			Peer: &peerWork{op: "memory", Size: rows, Rounds: lightBatch, Args: []int{workers}, once: true},
		})
	}
	return g, nil
}

// loaderMemory loads one epoch of set with worker processes and returns the additional memory
// per worker in bytes. Pages that several processes map are counted once.
func loaderMemory(ctx context.Context, set *data.TensorDataset, workers int) (float64, error) {
	before, err := sys.PSS(os.Getpid())
	if err != nil {
		return 0, err
	}
	l := data.NewLoader(set, data.Options{BatchSize: lightBatch, Shuffle: true, Workers: workers,
		Kind: data.Processes, Persistent: true})
	defer l.Close()
	if _, err := countSamples(l.Batches(ctx)); err != nil {
		return 0, err
	}
	all, err := sys.PSS(os.Getpid())
	if err != nil {
		return 0, err
	}
	for _, p := range shoal.ActiveChildren() {
		pss, err := sys.PSS(p.PID())
		if err != nil {
			return 0, err
		}
		all += pss
	}
	return float64(max(0, all-before)) / float64(workers), nil
}
