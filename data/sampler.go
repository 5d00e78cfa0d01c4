package data

import (
	"fmt"
	"math/rand/v2"
)

// A Sampler says which samples an epoch visits, and in which order. The same epoch always gets the same order, in every process. The
// caller may change the result.
type Sampler interface {
	Len() int // of the order of any epoch
	Order(epoch int) []int
}

// Sequential visits 0, 1, … n-1.
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

// Random visits 0 … n-1 once each, shuffled anew for every epoch, by the seed and the epoch's number alone.
func Random(n int, seed uint64) Sampler { return random{n, seed} }

type random struct {
	n    int
	seed uint64
}

func (r random) Len() int { return r.n }

func (r random) Order(epoch int) []int {
	return rand.New(rand.NewPCG(r.seed, uint64(epoch))).Perm(r.n)
}

// Shard visits one part of s: of n workers, the one of this rank gets every n-th sample of s's order. Together they visit
// all, each sample once, and no two parts differ in length by more than one.
func Shard(s Sampler, rank, n int) Sampler {
	if rank < 0 || rank >= n {
		panic(fmt.Sprintf("data: Shard for rank %d of %d", rank, n))
	}
	return shard{s, rank, n}
}

type shard struct {
	of      Sampler
	rank, n int
}

func (s shard) Len() int { return (s.of.Len() - s.rank + s.n - 1) / s.n }

func (s shard) Order(epoch int) []int {
	all := s.of.Order(epoch)
	mine := all[:0]
	for i := s.rank; i < len(all); i += s.n {
		mine = append(mine, all[i])
	}
	return mine
}
