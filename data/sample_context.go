package data

import (
	"context"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/seed"
)

// Info describes a worker of a [Loader], as torch's get_worker_info does.
type Info struct {
	ID      int    // number of the worker, from 0; a replacement keeps the number
	Workers int    // number of workers
	Seed    uint64 // seed of the Loader, see SampleSeed
	Epoch   int    // number of the epoch, from 0
	// Dataset is the set that the worker reads, after [Opener.Open]: a [Dataset], a [Stream], or
	// the argument of [Structured] or [StructuredStream].
	Dataset any
}

// userValue returns the user's value that source was made from by [Structured] or
// [StructuredStream], or source itself.
func userValue(source any) any {
	switch s := source.(type) {
	case *structuredDataset:
		return s.Of.Value
	case *structuredOpener:
		return s.Of.Of.Value
	case *structuredStream:
		return s.Of.Value
	}
	return source
}

// WorkerInfo describes the worker that passed ctx to [Dataset.Get], [Stream.Samples] or
// [Opener.Open]. ok is false if the Loader has no workers, and outside of a Loader.
func WorkerInfo(ctx context.Context) (info Info, ok bool) {
	w, ok := ctx.Value(sampleContextKey{}).(*sampleContext)
	if !ok || w.info.Workers == 0 {
		return Info{}, false
	}
	return w.info, true
}

// SampleSeed returns the seed of sample i in the epoch of ctx. It depends only on the Loader's
// seed, the epoch and i, so a random sample is the same in any worker and at any time. Outside of a
// Loader it is a random number, unless ctx is from [WithSample].
func SampleSeed(ctx context.Context, i int) uint64 {
	if w, ok := ctx.Value(sampleContextKey{}).(*sampleContext); ok {
		return w.seed(i)
	}
	return rand.Uint64()
}

// Rand returns the random generator of the sample that [Dataset.Get] is loading. It is seeded with
// the sample's [SampleSeed], and all calls for one sample return the same generator. It must only
// be used by the goroutine that received ctx, and only until Get returns. Outside of a Loader the
// generator has a random seed, unless ctx is from [WithSample].
func Rand(ctx context.Context) *rand.Rand {
	if w, ok := ctx.Value(sampleContextKey{}).(*sampleContext); ok {
		return w.generator()
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// WithSample returns a context like the one a Loader passes to Get for sample i in the worker info.
// It is for tests of a [Dataset].
func WithSample(ctx context.Context, info Info, i int) context.Context {
	info.Dataset = userValue(info.Dataset)
	w := &sampleContext{info: info}
	w.setSample(i)
	return w.withContext(ctx)
}

type sampleContextKey struct{}

// A sampleContext is the context value of one worker. It is updated for each sample, because a
// new context for each sample would have to be allocated. Only one goroutine may use it at a
// time.
type sampleContext struct {
	info   Info
	sample int
	fresh  bool // rng must be seeded for the sample
	pcg    rand.PCG
	rng    *rand.Rand
}

func (w *sampleContext) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, sampleContextKey{}, w)
}

// setSample sets the current sample. It must be called before each sample.
func (w *sampleContext) setSample(i int) { w.sample, w.fresh = i, true }

func (w *sampleContext) seed(i int) uint64 {
	return seed.Spread(seed.Spread(seed.Spread(w.info.Seed)^uint64(w.info.Epoch)) ^ uint64(i))
}

func (w *sampleContext) generator() *rand.Rand {
	if w.rng == nil {
		w.rng = rand.New(&w.pcg)
	}
	if w.fresh {
		s := w.seed(w.sample)
		w.pcg.Seed(s, seed.Spread(s))
		w.fresh = false
	}
	return w.rng
}
