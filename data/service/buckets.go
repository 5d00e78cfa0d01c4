package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/shoal-mp/shoal/data"
)

// Buckets returns a [data.BatchSampler] that makes batches of samples with similar lengths.
// lengths[i] is the length of sample i, for example its number of tokens. bounds divide the lengths
// into buckets: {64, 256} makes three, for lengths up to 64, up to 256, and longer. A batch
// consists of size samples of one bucket. Batches come in groups of world from one bucket, so that
// with Options.Coordinated the batches of all trainers in a step have similar lengths and no
// trainer waits for another one's long samples.
//
// The samples of each bucket and the groups are shuffled in each epoch; the order depends only on
// seed and the epoch. If the number of samples in a bucket is not a multiple of size·world, the
// remainder is left out of the epoch; each epoch leaves out others. Buckets panics if size or world
// is not positive, or if bounds is not sorted.
func Buckets(lengths, bounds []int, size, world int, seed uint64) data.BatchSampler {
	if size < 1 || world < 1 || !slices.IsSorted(bounds) {
		panic(fmt.Sprintf("service: Buckets: bounds %v, batches of %d, world %d", bounds, size, world))
	}
	b := &buckets{size: size, world: world, seed: seed, of: make([][]int, len(bounds)+1)}
	for i, n := range lengths {
		k := sort.SearchInts(bounds, n)
		b.of[k] = append(b.of[k], i)
	}
	return b
}

type buckets struct {
	size, world int
	seed        uint64
	of          [][]int // samples by bucket
}

// Len returns the number of batches in an epoch.
func (b *buckets) Len() (n int) {
	for _, samples := range b.of {
		n += len(samples) / (b.size * b.world) * b.world
	}
	return n
}

// Batches returns the indices of the samples of each batch of an epoch.
func (b *buckets) Batches(epoch int) [][]int {
	rng := rand.New(rand.NewPCG(b.seed, uint64(epoch)))
	var groups [][][]int
	for _, samples := range b.of {
		order := slices.Clone(samples)
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for len(order) >= b.size*b.world {
			group := make([][]int, b.world)
			for k := range group {
				group[k], order = order[:b.size:b.size], order[b.size:]
			}
			groups = append(groups, group)
		}
	}
	rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return slices.Concat(groups...)
}
