package data

import (
	"fmt"
	"slices"
)

// Shard visits one of n parts of s: every n-th sample of s's order, beginning with sample rank.
// Together the parts visit each sample once. Their lengths differ by at most one; for parts of
// equal length see [Distributed].
func Shard(s Sampler, rank, n int) Sampler { return newShard("Shard", s, rank, n, uneven) }

// Distributed is Shard with parts of equal length, so that all ranks have the same number of
// batches: torch's DistributedSampler. If world does not divide the number of samples, the first
// samples of s are visited again at the end. With dropLast, the last samples of s are left out
// instead.
func Distributed(s Sampler, rank, world int, dropLast bool) Sampler {
	if dropLast {
		return newShard("Distributed", s, rank, world, dropped)
	}
	return newShard("Distributed", s, rank, world, padded)
}

// An evening is how parts come to one length.
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
		panic(fmt.Sprintf("data: %s for rank %d of %d", what, rank, n))
	}
	return shard{s, rank, n, e}
}

func (s shard) Len() int { return s.part(s.of.Len()) }

// part returns how many of total samples this rank gets.
func (s shard) part(total int) int {
	switch s.evening {
	case padded:
		return (total + s.n - 1) / s.n
	case dropped:
		return total / s.n
	}
	return (total - s.rank + s.n - 1) / s.n
}

func (s shard) Order(epoch int) []int {
	o := s.rest(epoch, 0)
	return o.take(o.left())
}

// rest returns what is left of an order when all ranks together have had so many samples of it.
func (s shard) rest(epoch, seen int) order {
	whole := begin(s.of, epoch)
	total := whole.left()
	seen = min(seen, total)
	head := listed(whole.take(min(max(seen, s.n), total)))
	return &dealing{
		head: head[seen:], tail: whole, rank: s.rank, n: s.n,
		count: s.part(total - seen), first: slices.Clone(head[:min(s.n, total)]),
	}
}

// ranks returns how many processes share the order of s.
func ranks(s Sampler) int {
	if s, ok := s.(shard); ok {
		return s.n
	}
	return 1
}

// total returns the length of the order that they share.
func total(s Sampler) int {
	if s, ok := s.(shard); ok {
		return s.of.Len()
	}
	return s.Len()
}
