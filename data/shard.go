package data

import (
	"fmt"
	"slices"
)

// Shard visits one of n parts of s: every n-th sample in the order of s, beginning with sample
// rank. Together the parts visit each sample once. Their lengths differ by at most one; see
// [Distributed] for parts of equal length. Shard panics unless 0 <= rank < n.
func Shard(s Sampler, rank, n int) Sampler { return newShard("Shard", s, rank, n, uneven) }

// Distributed is [Shard] with parts of equal length, so that all ranks have the same number of
// batches, as with torch's DistributedSampler. If world does not divide the number of samples, the
// first samples of s are repeated at the end, or, if dropLast is set, the last samples of s are
// left out.
func Distributed(s Sampler, rank, world int, dropLast bool) Sampler {
	if dropLast {
		return newShard("Distributed", s, rank, world, dropped)
	}
	return newShard("Distributed", s, rank, world, padded)
}

// An evening is the method that makes the parts of a shard equal in length.
type evening int

const (
	uneven evening = iota
	padded
	dropped
)

type shard struct {
	of      Sampler
	rank, n int
	evening evening
}

func newShard(what string, s Sampler, rank, n int, e evening) Sampler {
	if rank < 0 || rank >= n {
		panic(fmt.Sprintf("data: %s: got rank %d, want at least 0 and less than world %d", what, rank, n))
	}
	return shard{s, rank, n, e}
}

func (s shard) Len() int { return s.sampleCount(s.of.Len()) }

// sampleCount returns the number of samples, out of total, for this rank.
func (s shard) sampleCount(total int) int {
	switch s.evening {
	case padded:
		return (total + s.n - 1) / s.n
	case dropped:
		return total / s.n
	}
	return (total - s.rank + s.n - 1) / s.n
}

func (s shard) Order(epoch int) []int {
	o := s.remainingOrder(epoch, 0)
	return o.takeNext(o.remaining())
}

// remainingOrder returns the part of this rank in the order of s.of, without the first seen
// samples, which were delivered to all ranks together.
func (s shard) remainingOrder(epoch, seen int) order {
	whole := wholeOrder(s.of, epoch)
	total := whole.remaining()
	seen = min(seen, total)
	head := listed(whole.takeNext(min(max(seen, s.n), total)))
	return &dealing{
		head: head[seen:], tail: whole, rank: s.rank, n: s.n,
		count: s.sampleCount(total - seen), first: slices.Clone(head[:min(s.n, total)]),
	}
}

// rankCount returns the number of processes that share the order of s.
func rankCount(s Sampler) int {
	if s, ok := s.(shard); ok {
		return s.n
	}
	return 1
}

// orderLength returns the number of samples in the order that the ranks share, without padding.
func orderLength(s Sampler) int {
	if s, ok := s.(shard); ok {
		return s.of.Len()
	}
	return s.Len()
}
