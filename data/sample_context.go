package data

import (
	"context"
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/seed"
)

// Info is what a worker of a Loader knows of itself: torch's get_worker_info.
type Info struct {
	ID      int    // from 0; one that replaces another has its number
	Workers int    // how many there are
	Seed    uint64 // of the Loader, see SampleSeed
	Epoch   int
	// Dataset is what the worker reads, as it was opened: a Dataset, a Stream, or what Structured
	// and StructuredStream were given.
	Dataset any
}

// given returns what the user made a Dataset or a Stream of.
func given(source any) any {
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

// WorkerInfo returns what is known of the worker in which a Dataset's Get, a Stream's Samples or an
// Opener's Open was called with ctx. ok is false in a Loader without workers, and outside of one.
func WorkerInfo(ctx context.Context) (info Info, ok bool) {
	w, ok := ctx.Value(sampleContextKey{}).(*sampleContext)
	if !ok || w.info.Workers == 0 {
		return Info{}, false
	}
	return w.info, true
}

// SampleSeed returns the seed of sample i in the epoch in which ctx is used: a function of the
// Loader's seed, the epoch and i alone, so that what is random in a sample is the same whichever
// worker makes it, and when. Outside of a Loader it is any number.
func SampleSeed(ctx context.Context, i int) uint64 {
	if w, ok := ctx.Value(sampleContextKey{}).(*sampleContext); ok {
		return w.seed(i)
	}
	return rand.Uint64()
}

// Rand returns the generator of the sample that is being made, for a transform that does not know
// its number: it begins with the sample's SampleSeed and goes on from call to call. It is for the
// goroutine that was given ctx, until the sample is returned. Outside of a Loader it begins
// anywhere; see WithSample.
func Rand(ctx context.Context) *rand.Rand {
	if w, ok := ctx.Value(sampleContextKey{}).(*sampleContext); ok {
		return w.rand()
	}
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// WithSample returns a context as a Loader gives it to the Get of sample i in a worker that knows
// info.
func WithSample(ctx context.Context, info Info, i int) context.Context {
	info.Dataset = given(info.Dataset)
	w := &sampleContext{info: info}
	w.begin(i)
	return w.in(ctx)
}

type sampleContextKey struct{}

// A sampleContext is what one worker is at. It is changed from sample to sample, so that no context
// is made for each.
type sampleContext struct {
	info   Info
	sample int
	fresh  bool // rng has not begun with the sample
	pcg    rand.PCG
	rng    *rand.Rand
}

func (w *sampleContext) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, sampleContextKey{}, w)
}

// begin is called before each sample.
func (w *sampleContext) begin(i int) { w.sample, w.fresh = i, true }

func (w *sampleContext) seed(i int) uint64 {
	return seed.Spread(seed.Spread(seed.Spread(w.info.Seed)^uint64(w.info.Epoch)) ^ uint64(i))
}

func (w *sampleContext) rand() *rand.Rand {
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
