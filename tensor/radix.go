package tensor

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// A keyed is an element of a row: a key, which is ordered as the elements are, and its index.
type keyed struct {
	key   uint64
	index int64
}

// A keysFunc makes keys of a row's elements. Equal ones have equal keys, and NaN has the greatest.
// A key is as many bytes as an element, from the highest on.
type keysFunc = func(to []keyed, row []byte)

func integerKeys[T integer](to []keyed, row []byte) {
	var zero T
	unused, flip := 64-8*unsafe.Sizeof(zero), uint64(0)
	if zero-1 < 0 {
		flip = 1 << 63
	}
	for i, v := range typed[T](row) {
		to[i] = keyed{uint64(v)<<unused ^ flip, int64(i)}
	}
}

func floatKeys[T float](to []keyed, row []byte) {
	if unsafe.Sizeof(T(0)) == 4 {
		bitKeys(to, typed[uint32](row), 32, 0x7f8<<52)
	} else {
		bitKeys(to, typed[uint64](row), 0, 0x7ff<<52)
	}
}

// bitKeys makes keys of the bits of floats. What is below zero has its order reversed; both zeros
// are one number.
func bitKeys[B uint32 | uint64](to []keyed, row []B, unused int, infinity uint64) {
	const sign = 1 << 63
	for i, b := range row {
		key := uint64(b) << unused
		switch abs := key &^ sign; {
		case abs == 0:
			key = sign
		case abs > infinity:
			key = math.MaxUint64
		default:
			key ^= uint64(int64(key)>>63) | sign
		}
		to[i] = keyed{key, int64(i)}
	}
}

// A sorter sorts one row after another.
type sorter struct{ row, spare []keyed }

var sorters = sync.Pool{New: func() any { return new(sorter) }}

// grow makes room for a row of n.
func (s *sorter) grow(n int) {
	s.row, s.spare = slices.Grow(s.row[:0], n)[:n], slices.Grow(s.spare[:0], n)[:n]
}

// fewKeys is up to how many elements are sorted by comparing them: counting digits takes longer.
const fewKeys = 64

// sort sorts the row by the highest bytes of the keys, so many, and keeps the order of equal ones.
func (s *sorter) sort(bytes int) {
	if len(s.row) <= fewKeys {
		slices.SortStableFunc(s.row, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
		return
	}
	for shift := 64 - 8*bytes; shift < 64; shift += 8 {
		s.digit(shift)
	}
}

// digit sorts by one byte of the keys.
func (s *sorter) digit(shift int) {
	var at [256]int
	for i := range s.row {
		at[uint8(s.row[i].key>>shift)]++
	}
	if at[uint8(s.row[0].key>>shift)] == len(s.row) {
		return // all have the same
	}
	sum := 0
	for d, n := range at {
		at[d] = sum
		sum += n
	}
	for _, p := range s.row {
		d := uint8(p.key >> shift)
		s.spare[at[d]] = p
		at[d]++
	}
	s.row, s.spare = s.spare, s.row
}

// first sorts so many of the row that come first, as sort puts them, to its begin. What follows
// them is no longer the row's.
func (s *sorter) first(k, bytes int) {
	if k > fewKeys || k > len(s.row)/2 {
		s.sort(bytes)
		return
	}
	best := s.spare[:0]
	for _, p := range s.row {
		if len(best) == k {
			if k == 0 || p.key >= best[k-1].key { // of equal ones the first stay
				continue
			}
			best = best[:k-1]
		}
		at := len(best)
		for at > 0 && p.key < best[at-1].key {
			at--
		}
		best = append(best, p)
		copy(best[at+1:], best[at:])
		best[at] = p
	}
	copy(s.row, best)
}
