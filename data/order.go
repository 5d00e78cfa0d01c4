package data

import "math/rand/v2"

// An order is what is left of the order of an epoch. It comes to be as it is taken: so the first
// batch does not wait for the last one's samples, however many there are.
type order interface {
	left() int
	take(n int) []int // the next n, of which there are so many; the caller may change them
}

// rest returns the order of an epoch after the first samples, which all ranks have had together.
func rest(s Sampler, epoch, seen int) order {
	if s, ok := s.(shard); ok {
		return s.rest(epoch, seen)
	}
	o := begin(s, epoch)
	o.take(min(seen, o.left()))
	return o
}

// begin returns the order of an epoch.
func begin(s Sampler, epoch int) order {
	switch s := s.(type) {
	case sequential:
		return &counting{end: int(s)}
	case random:
		return &shuffle{end: s.n, moved: make(map[int]int), rng: generator(s.seed, epoch)}
	case shard:
		return s.rest(epoch, 0)
	}
	l := listed(s.Order(epoch))
	return &l
}

// A listed is an order that is there.
type listed []int

func (l *listed) left() int { return len(*l) }

func (l *listed) take(n int) []int {
	next := (*l)[:n:n]
	*l = (*l)[n:]
	return next
}

// A counting is at, at+1, … end-1.
type counting struct{ at, end int }

func (c *counting) left() int { return c.end - c.at }

func (c *counting) take(n int) []int {
	next := make([]int, n)
	for k := range next {
		next[k] = c.at + k
	}
	c.at += n
	return next
}

// A shuffle is 0 … end-1, of which those before at are taken. Each takes its turn with one of those
// that are left, by Fisher and Yates.
//
// At first a map has those that do not stand at their own places: the first batch does not wait
// until all are listed. When so many are taken that a list takes no longer than they did, it is
// made: it is several times as fast.
type shuffle struct {
	at, end int
	moved   map[int]int // by place
	all     []int       // by place, nil as long as there is only moved
	rng     *rand.Rand
}

// fewTaken is the part of a shuffle that is taken without a list: 1 of so many.
const fewTaken = 64

func (s *shuffle) left() int { return s.end - s.at }

func (s *shuffle) take(n int) []int {
	if s.all == nil && s.at+n > s.end/fewTaken {
		s.list()
	}
	if s.all == nil {
		return s.takeFew(n)
	}
	next := s.all[s.at : s.at+n : s.at+n]
	for k := range next {
		other := s.at + s.rng.IntN(s.left())
		next[k], s.all[other] = s.all[other], next[k]
		s.at++
	}
	return next
}

func (s *shuffle) takeFew(n int) []int {
	next := make([]int, n)
	for k := range next {
		other := s.at + s.rng.IntN(s.left())
		here := s.place(s.at)
		next[k] = s.place(other)
		s.moved[other] = here
		delete(s.moved, s.at)
		s.at++
	}
	return next
}

func (s *shuffle) place(i int) int {
	if v, ok := s.moved[i]; ok {
		return v
	}
	return i
}

// list puts all that is left at its place.
func (s *shuffle) list() {
	s.all = make([]int, s.end)
	for i := s.at; i < s.end; i++ {
		s.all[i] = i
	}
	for i, v := range s.moved {
		s.all[i] = v
	}
	s.moved = nil
}

// A dealing is every n-th of what is left of an order, from the rank-th on.
type dealing struct {
	head    listed // what is left, as far as it was taken already,
	tail    order  // and beyond that
	rank, n int
	count   int   // left of this rank
	first   []int // of the whole order: what comes again at its end
	again   int   // how many have, for all ranks together
}

func (d *dealing) left() int { return d.count }

func (d *dealing) take(n int) []int {
	all := d.turns(n * d.n)
	next := make([]int, n)
	for k := range next {
		next[k] = all[k*d.n+d.rank]
	}
	d.count -= n
	return next
}

// turns returns the next n of all ranks.
func (d *dealing) turns(n int) []int {
	all := d.head.take(min(n, d.head.left()))
	all = append(all, d.tail.take(min(n-len(all), d.tail.left()))...)
	for ; len(all) < n; d.again++ {
		all = append(all, d.first[d.again%len(d.first)])
	}
	return all
}
