package tensor

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A keyed is an element of a row: a key, which has the order of the elements, and its index.
type keyed struct {
	key   uint64
	index int64
}

// A keysFunc computes the keys of a row's elements. Equal elements have equal keys, and NaN has the
// largest key. A key uses as many of its high bytes as an element has.
type keysFunc = func(to []keyed, row []byte)

func integerKeys[T integer](to []keyed, row []byte) {
	var zero T
	unused, flip := 64-8*unsafe.Sizeof(zero), uint64(0)
	if zero-1 < 0 {
		flip = 1 << 63
	}
	for i, v := range bytesAs[T](row) {
		to[i] = keyed{uint64(v)<<unused ^ flip, int64(i)}
	}
}

func floatKeys[T float](to []keyed, row []byte) {
	if unsafe.Sizeof(T(0)) == 4 {
		bitKeys(to, bytesAs[uint32](row), 32, 0x7f8<<52)
	} else {
		bitKeys(to, bytesAs[uint64](row), 0, 0x7ff<<52)
	}
}

// bitKeys computes keys from the bits of floats. The order of negative numbers is reversed. Both
// zeros have the same key.
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

// A sorter contains the buffers for sorting rows, one at a time. One goroutine may use it at a
// time.
type sorter struct{ row, scratch []keyed }

var sorters = sync.Pool{New: func() any { return new(sorter) }}

// grow sets the length of the buffers to n.
func (s *sorter) grow(n int) {
	s.row, s.scratch = slices.Grow(s.row[:0], n)[:n], slices.Grow(s.scratch[:0], n)[:n]
}

// fewKeys is the maximum number of elements that are sorted by comparison, because this is faster
// than radix sort.
const fewKeys = 64

// sort sorts s.row stably by the given number of high bytes of the keys.
func (s *sorter) sort(bytes int) {
	if len(s.row) <= fewKeys {
		slices.SortStableFunc(s.row, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
		return
	}
	for shift := 64 - 8*bytes; shift < 64; shift += 8 {
		s.sortDigit(shift)
	}
}

// sortDigit sorts s.row stably by the byte of the keys at bit shift.
func (s *sorter) sortDigit(shift int) {
	var at [256]int
	for i := range s.row {
		at[uint8(s.row[i].key>>shift)]++
	}
	if at[uint8(s.row[0].key>>shift)] == len(s.row) {
		return // all have the same byte
	}
	sum := 0
	for d, n := range at {
		at[d] = sum
		sum += n
	}
	for _, p := range s.row {
		d := uint8(p.key >> shift)
		s.scratch[at[d]] = p
		at[d]++
	}
	s.row, s.scratch = s.scratch, s.row
}

// selectGreatest returns the k largest elements of a row of dtype dt, in descending order. Equal
// elements keep their order. The result is valid until the next use of s, and its keys are
// inverted. k must not exceed fewKeys. Pieces of floats without a larger element than the current
// results are skipped.
func (s *sorter) selectGreatest(k int, row []byte, dt DType, keys keysFunc) []keyed {
	s.grow(chunk)
	best, size := s.scratch[:0], dt.Size()
	for from := 0; k > 0 && from < len(row)/size; from += chunk {
		n := min(chunk, len(row)/size-from)
		piece := row[from*size:][:n*size]
		if len(best) == k && noneGreater(dt, piece, row[int(best[k-1].index)*size:]) {
			continue
		}
		keys(s.row[:n], piece)
		for _, p := range s.row[:n] {
			p.key, p.index = ^p.key, p.index+int64(from)
			if len(best) == k {
				if p.key >= best[k-1].key { // the first of equal elements wins
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
	}
	return best
}

// noneGreater reports whether no element of piece is greater than the first element of bound. It
// returns false if there is no kernel to check this.
func noneGreater(dt DType, piece, bound []byte) bool {
	switch dt {
	case Float32:
		return kernel.Largest(bytesAs[float32](piece)) <= bytesAs[float32](bound[:4])[0]
	case Float64:
		return kernel.Largest(bytesAs[float64](piece)) <= bytesAs[float64](bound[:8])[0]
	}
	return false
}
