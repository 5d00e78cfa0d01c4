package seed

import (
	"context"
	"math/rand/v2"
	"sync"
)

// A Source holds the random seed of a process, or of a worker on a goroutine. All methods may be
// called from several goroutines.
type Source struct {
	mu      sync.Mutex
	initial uint64
	drawn   uint64
	watch   []func(seed uint64)
}

// New returns a Source with the given seed.
func New(seed uint64) *Source { return &Source{initial: seed} }

// Process is the Source of this process. Its initial seed is random. Code with a context should
// call [From] instead, because workers on goroutines have their own Sources.
var Process = New(rand.Uint64())

// Initial returns the seed passed to [New] or to the latest [Source.Set].
func (s *Source) Initial() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial
}

// Set resets s to a new seed and calls all functions registered by [Source.Watch].
func (s *Source) Set(seed uint64) {
	s.mu.Lock()
	s.initial, s.drawn = seed, 0
	watch := s.watch
	s.mu.Unlock()
	for _, f := range watch {
		f(seed)
	}
}

// Watch registers f to be called with the new seed at each Set, by the goroutine that calls Set. It
// also calls f immediately with the current seed. s is not locked during these calls. f cannot be
// unregistered.
func (s *Source) Watch(f func(seed uint64)) {
	s.mu.Lock()
	s.watch = append(s.watch, f)
	initial := s.initial
	s.mu.Unlock()
	f(initial)
}

// Next returns the seed for the next worker. It depends only on the seed of s and the number of
// earlier calls since it was set.
func (s *Source) Next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn++
	return Mix(s.initial, s.drawn)
}

// Mix returns a hash of numbers with the distribution of a random number. The order of the numbers
// matters.
func Mix(numbers ...uint64) uint64 {
	var h uint64
	for _, n := range numbers {
		h = Spread(h ^ Spread(n))
	}
	return h
}

// Spread is a step of SplitMix64. Numbers that differ in few bits become numbers that differ in
// about half of them.
func Spread(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Of returns the seed of a worker, derived from its base seed, function name, rank, and the number
// of its earlier starts.
func Of(base uint64, name string, rank, life int) uint64 {
	h := Mix(base, uint64(rank), uint64(life))
	for i := range len(name) {
		h = Mix(h, uint64(name[i]))
	}
	return h
}

type key struct{}

// With returns a context with the Source s. See [From].
func With(ctx context.Context, s *Source) context.Context { return context.WithValue(ctx, key{}, s) }

// From returns the Source set by [With], which exists in the contexts of workers on goroutines, or
// else [Process].
func From(ctx context.Context) *Source {
	if s, ok := ctx.Value(key{}).(*Source); ok {
		return s
	}
	return Process
}
