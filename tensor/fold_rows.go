package tensor

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
)

func complexFolds[T cplx](folds *[reductions]foldFunc) {
	folds[redSum] = folding(func(row []T) (sum complex128) {
		for _, v := range row {
			sum += complex128(v)
		}
		return sum
	})
	folds[redProd] = folding(func(row []T) complex128 {
		product := complex128(1)
		for _, v := range row {
			product *= complex128(v)
		}
		return product
	})
}

func orderedFolds[T ordered, A int64 | float64](folds *[reductions]foldFunc) {
	folds[redSum] = folding(sumOf[T, A])
	folds[redProd] = folding(func(row []T) A {
		product := A(1)
		for _, v := range row {
			product *= A(v)
		}
		return product
	})
	folds[redMax] = folding(func(row []T) T { return row[first(row, greater[T])] })
	folds[redMin] = folding(func(row []T) T { return row[first(row, less[T])] })
	folds[redArgmax] = folding(func(row []T) int64 { return first(row, greater[T]) })
	folds[redArgmin] = folding(func(row []T) int64 { return first(row, less[T]) })
}

// sumOf adds up in four strands, which a processor works on at once.
func sumOf[T ordered, A int64 | float64](row []T) A {
	var a, b, c, d A
	for ; len(row) >= 4; row = row[4:] {
		a += A(row[0])
		b += A(row[1])
		c += A(row[2])
		d += A(row[3])
	}
	for _, v := range row {
		a += A(v)
	}
	return (a + b) + (c + d)
}

// first returns where the element is that comes before all others, the first of equals.
func first[T ordered](row []T, before func(a, b T) bool) int64 {
	best := 0
	for i, v := range row {
		if before(v, row[best]) {
			best = i
		}
	}
	return int64(best)
}

// placeOf returns what finds the first place of the largest or smallest element of a row, which
// best finds and which comes before others. If best is NaN, and only then, there is a NaN. In a
// short row each element is compared as it comes.
func placeOf[T float](best func(row []T) T, before func(a, b T) bool) func(row []T) int64 {
	return func(row []T) int64 {
		if len(row) < wideRow {
			return first(row, before)
		}
		extreme := best(row)
		for i, v := range row {
			if v == extreme || v != v {
				return int64(i)
			}
		}
		return 0
	}
}

// greater and less let NaN come before everything.
func greater[T ordered](a, b T) bool { return a > b || a != a && b == b }
func less[T ordered](a, b T) bool    { return a < b || a != a && b == b }

// varianceOf adds the squares of what the mean leaves. Their sum, which would be 0 but for
// rounding, corrects that.
func varianceOf[T float](row []T) float64 {
	n := float64(len(row))
	if n < 2 {
		return math.NaN()
	}
	mean := kernel.Sum64(row) / n
	var rest, squares float64
	for _, v := range row {
		d := float64(v) - mean
		rest += d
		squares += d * d
	}
	return (squares - rest*rest/n) / (n - 1)
}
