package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/shoal-mp/shoal/data"
)

// Buckets returns a data.BatchSampler of batches of similar lengths. lengths[i] is that of sample
// i, such as its tokens. bounds divide the lengths into buckets: {64, 256} makes three, up to 64,
// up to 256, and longer. Each size samples of a bucket are a batch. Each world batches of one
// bucket follow one another, for trainers that are Coordinated: in each step their batches are of
// one bucket, and none waits for another one's long samples.
//
// Both orders, in the buckets and of the groups of batches, are new in each epoch, by the seed
// alone. A bucket's samples that are fewer than size·world are left out of the epoch, other ones in
// each. Buckets panics if size or world is not positive, or if bounds are not ascending.
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
	of          [][]int // samples of each bucket
}

// Len returns the number of batches.
func (b *buckets) Len() (n int) {
	for _, samples := range b.of {
		n += len(samples) / (b.size * b.world) * b.world
	}
	return n
}

// Batches returns the samples of each batch.
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
