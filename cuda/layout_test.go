package cuda

import (
	"fmt"
	"slices"
	"testing"
)

// places returns where a walk has its elements, one after the other: the word and the place of
// each, and the words of numbers.
func places(w walk) (all []string) {
	for i := range w.elementCount() {
		at := []uint64{uint64(w.place + i)}
		for _, o := range w.operands {
			rest := i
			for k, n := range w.shape {
				if !o.number {
					o.word += uint64(rest % n * o.strides[k])
				}
				rest /= n
			}
			at = append(at, o.word)
		}
		all = append(all, fmt.Sprint(at))
	}
	return all
}

// No machine here has room for 2³¹ elements, so the limit is another one.
func TestLayout_PartsHaveTheElementsOfTheWhole(t *testing.T) {
	number := operand{word: 77, number: true, size: 4}
	of := func(size int, strides ...int) operand { return operand{word: 1 << 40, size: size, strides: strides} }
	for name, w := range map[string]walk{
		"contiguous": {shape: []int{5, 4, 3},
			operands: []operand{of(4, 4, 20, 80), of(8, 8, 40, 160), number}},
		"turned":              {shape: []int{5, 4, 3}, operands: []operand{of(4, 48, 12, 4), of(4, 4, 20, 80)}},
		"expanded":            {shape: []int{1, 37, 2}, operands: []operand{of(4, 4, 4, 0), of(4, 4, 0, 4)}},
		"one row":             {shape: []int{100}, operands: []operand{of(1, 3)}},
		"one":                 {shape: []int{1, 1}, operands: []operand{of(8, 8, 8), number}},
		"without a dimension": {operands: []operand{of(8), number}},
		"none":                {shape: []int{3, 0, 2}, operands: []operand{of(8, 8, 8, 8)}},
	} {
		want := places(w)
		for _, limit := range []int{1, 2, 7, 16, 50, 1000} {
			var got []string
			for _, part := range w.splitParts(limit) {
				if part.elementCount() > limit {
					t.Errorf("%s: a part of %d, of at most %d", name, part.elementCount(), limit)
				}
				got = append(got, places(part)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, at most %d: %v, want %v", name, limit, got, want)
			}
		}
	}
	long := walk{shape: []int{1 << 33}, operands: []operand{of(4, 4)}}
	for _, part := range long.splitParts(most) {
		if part.elementCount() > most || !part.isDense(4) {
			t.Errorf("%d neighbours at %#x are not dense", part.elementCount(), part.operands[0].word)
		}
	}
}
