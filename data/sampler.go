package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Sampler defines which samples an epoch visits, and in which order. For the same epoch, Order
// must return the same indices in every process. The caller may modify the slice.
type Sampler interface {
	// Len returns the number of samples in an epoch, which must be the same for all epochs.
	Len() int
	// Order returns the indices of the samples of an epoch, in order.
	Order(epoch int) []int
}

// Sequential visits 0 to n-1 in order.
func Sequential(n int) Sampler { return sequential(n) }

type sequential int

func (n sequential) Len() int { return int(n) }

func (n sequential) Order(int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// An ordered is a Sampler with a fixed length. Its order is a function of a generator seeded for
// the epoch.
type ordered struct {
	n     int
	seed  uint64
	order func(rng *rand.Rand) []int
}

func (o ordered) Len() int { return o.n }

func (o ordered) Order(epoch int) []int { return o.order(generator(o.seed, epoch)) }

func generator(seed uint64, epoch int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(epoch))) }

// Random visits 0 to n-1 once each, in a new order every epoch. The order depends only on the seed
// and the epoch.
func Random(n int, seed uint64) Sampler { return random{n, seed} }

type random struct {
	n    int
	seed uint64
}

func (s random) Len() int { return s.n }

func (s random) Order(epoch int) []int { return wholeOrder(s, epoch).takeNext(s.n) }

// RandomDraws draws count indices from 0 to n-1, anew every epoch, as torch's RandomSampler with
// num_samples does. With replacement the draws are independent. Without replacement each index is
// drawn once before any is repeated. The draws depend only on the arguments and the epoch.
// RandomDraws panics if n < 1 or count < 0.
func RandomDraws(n, count int, replacement bool, seed uint64) Sampler {
	if n < 1 || count < 0 {
		panic(fmt.Sprintf("data: RandomDraws: cannot draw %d samples from %d", count, n))
	}
	return ordered{count, seed, func(rng *rand.Rand) []int {
		order := make([]int, 0, count)
		for len(order) < count {
			if replacement {
				order = append(order, rng.IntN(n))
				continue
			}
			order = append(order, rng.Perm(n)[:min(n, count-len(order))]...)
		}
		return order
	}}
}

// SubsetRandom visits the samples listed in indices once each, in a new order every epoch.
func SubsetRandom(indices []int, seed uint64) Sampler {
	indices = slices.Clone(indices)
	return ordered{len(indices), seed, func(rng *rand.Rand) []int {
		order := slices.Clone(indices)
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		return order
	}}
}

// Weighted draws count samples, sample i with a probability proportional to weights[i], as torch's
// WeightedRandomSampler does. Without replacement no sample is drawn twice. Weighted panics if
// count is negative, if a weight is negative or not finite, if all weights are 0 and count is not,
// and, without replacement, if fewer than count weights are positive.
func Weighted(weights []float64, count int, replacement bool, seed uint64) Sampler {
	sums, positive := make([]float64, len(weights)), 0
	sum := 0.0
	for i, w := range weights {
		if w < 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			panic(fmt.Sprintf("data: Weighted: got weight %v of sample %d, want at least 0 and finite", w, i))
		}
		if w > 0 {
			positive++
		}
		sum += w
		sums[i] = sum
	}
	if count < 0 || count > 0 && positive == 0 || !replacement && count > positive {
		panic(fmt.Sprintf("data: Weighted: got %d samples, but %d with a positive weight", count, positive))
	}
	draw := func(rng *rand.Rand) []int {
		order := make([]int, count)
		for k := range order {
			order[k], _ = slices.BinarySearchFunc(sums, rng.Float64()*sum, func(s, at float64) int {
				if s <= at {
					return -1
				}
				return 1
			})
		}
		return order
	}
	if !replacement {
		weights := slices.Clone(weights)
		draw = func(rng *rand.Rand) []int { return weightedOrder(rng, weights)[:count] }
	}
	return ordered{count, seed, draw}
}

// weightedOrder returns the indices of weights in a random order, sorted by exponential arrival
// times with weights[i] as the rate. The first is i with a probability proportional to weights[i],
// the second likewise among the others, and so on.
func weightedOrder(rng *rand.Rand, weights []float64) []int {
	order, times := make([]int, len(weights)), make([]float64, len(weights))
	for i, w := range weights {
		order[i], times[i] = i, rng.ExpFloat64()/w // +Inf for a weight of 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case times[a] < times[b]:
			return -1
		case times[a] > times[b]:
			return 1
		}
		return 0
	})
	return order
}

// A BatchSampler defines the samples of each batch of an epoch. For the same epoch it must return
// the same batches in every process.
type BatchSampler interface {
	// Len returns the number of batches in an epoch, which must be the same for all epochs.
	Len() int
	// Batches returns the indices of the samples of each batch.
	Batches(epoch int) [][]int
}

// Batched returns a BatchSampler with batches of size samples in the order of s. The last batch may
// be smaller; if dropLast is set, it is dropped then. Batched panics if size < 1.
func Batched(s Sampler, size int, dropLast bool) BatchSampler {
	if size < 1 {
		panic(fmt.Sprintf("data: Batched: got batch size %d, want at least 1", size))
	}
	return batched{s, size, dropLast}
}

type batched struct {
	of   Sampler
	size int
	drop bool
}

func (b batched) Len() int {
	n := b.of.Len()
	if !b.drop {
		n += b.size - 1
	}
	return n / b.size
}

func (b batched) Batches(epoch int) [][]int {
	return slices.Collect(slices.Chunk(b.of.Order(epoch), b.size))[:b.Len()]
}
