package seed

import (
	"context"
	"math/rand/v2"
	"sync"
)

// A Source is the seed of a process, or of a goroutine that stands for one. Its methods may be
// called by several goroutines.
type Source struct {
	mu      sync.Mutex
	initial uint64
	drawn   uint64
	watch   []func(seed uint64)
}

// New returns a Source that begins with seed.
func New(seed uint64) *Source { return &Source{initial: seed} }

// Process is the Source of this process. It begins with what the system has of entropy.
var Process = New(rand.Uint64())

// Initial returns the seed.
func (s *Source) Initial() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial
}

// Set makes s begin anew with seed, and calls all that watch.
func (s *Source) Set(seed uint64) {
	s.mu.Lock()
	s.initial, s.drawn = seed, 0
	watch := s.watch
	s.mu.Unlock()
	for _, f := range watch {
		f(seed)
	}
}

// Watch has f called with the seed at once, and at each Set.
func (s *Source) Watch(f func(seed uint64)) {
	s.mu.Lock()
	s.watch = append(s.watch, f)
	initial := s.initial
	s.mu.Unlock()
	f(initial)
}

// Next returns the seed of the next thing that is started: a function of the seed and of how many
// there were before.
func (s *Source) Next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn++
	return Mix(s.initial, s.drawn)
}

// Mix returns a number that is as good as random, and always the same for the same numbers in the
// same order.
func Mix(numbers ...uint64) uint64 {
	var h uint64
	for _, n := range numbers {
		h = Spread(h ^ Spread(n))
	}
	return h
}

// Spread is a step of SplitMix64: it makes numbers that differ little differ in all bits.
func Spread(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Of is Mix for a worker: of its base, the name of its function, its rank, and how often it was
// started before.
func Of(base uint64, name string, rank, life int) uint64 {
	h := Mix(base, uint64(rank), uint64(life))
	for i := range len(name) {
		h = Mix(h, uint64(name[i]))
	}
	return h
}

type key struct{}

// With returns a context whose Source is s.
func With(ctx context.Context, s *Source) context.Context { return context.WithValue(ctx, key{}, s) }

// From returns the Source of a context: that of the goroutine which stands for a process, or the
// process's.
func From(ctx context.Context) *Source {
	if s, ok := ctx.Value(key{}).(*Source); ok {
		return s
	}
	return Process
}
