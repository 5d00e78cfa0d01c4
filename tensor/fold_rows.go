package tensor

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
)

func complexFolds[T cplx](folds *[reductions]foldFunc) {
	folds[redSum] = rowFold(complexSum[T])
	folds[redProd] = rowFold(func(row []T) complex128 {
		product := complex128(1)
		for _, v := range row {
			product *= complex128(v)
		}
		return product
	})
}

// complexSum returns the sum of row. It uses four accumulators for instruction-level parallelism.
func complexSum[T cplx](row []T) (sum complex128) {
	var a, b, c, d complex128
	for ; len(row) >= 4; row = row[4:] {
		a += complex128(row[0])
		b += complex128(row[1])
		c += complex128(row[2])
		d += complex128(row[3])
	}
	for _, v := range row {
		a += complex128(v)
	}
	return (a + b) + (c + d)
}

func orderedFolds[T ordered, A int64 | float64](folds *[reductions]foldFunc) {
	folds[redSum] = rowFold(sumOf[T, A])
	folds[redProd] = rowFold(productOf[T, A])
	folds[redMax] = rowFold(func(row []T) T { return row[firstIndex(row, isGreater[T])] })
	folds[redMin] = rowFold(func(row []T) T { return row[firstIndex(row, isLess[T])] })
	folds[redArgmax] = rowFold(func(row []T) int64 { return firstIndex(row, isGreater[T]) })
	folds[redArgmin] = rowFold(func(row []T) int64 { return firstIndex(row, isLess[T]) })
}

// sumOf returns the sum of row. It uses four accumulators for instruction-level parallelism.
func sumOf[T ordered, A int64 | float64](row []T) A {
	var a, b, c, d A
	for ; len(row) >= 8; row = row[8:] {
		a += A(row[0]) + A(row[4])
		b += A(row[1]) + A(row[5])
		c += A(row[2]) + A(row[6])
		d += A(row[3]) + A(row[7])
	}
	for _, v := range row {
		a += A(v)
	}
	return (a + b) + (c + d)
}

// productOf returns the product of row. It uses four accumulators for instruction-level
// parallelism.
func productOf[T ordered, A int64 | float64](row []T) A {
	a, b, c, d := A(1), A(1), A(1), A(1)
	for ; len(row) >= 4; row = row[4:] {
		a *= A(row[0])
		b *= A(row[1])
		c *= A(row[2])
		d *= A(row[3])
	}
	for _, v := range row {
		a *= A(v)
	}
	return (a * b) * (c * d)
}

// wholeFolds sets the folds of integers that have kernels: the maximum and the minimum.
func wholeFolds[T integer](folds *[reductions]foldFunc) {
	folds[redMax] = halvingFold(kernel.Larger, func(row []T) T {
		best := row[0]
		for _, v := range row {
			best = max(best, v)
		}
		return best
	})
	folds[redMin] = halvingFold(kernel.Smaller, func(row []T) T {
		best := row[0]
		for _, v := range row {
			best = min(best, v)
		}
		return best
	})
}

// halvingFold returns a fold that combines pieces of each row elementwise with the kernel w, and
// then combines halves of the result. end reduces the few remaining elements, or the whole row if
// there is no kernel.
func halvingFold[T integer](w kernel.Whole, end func(row []T) T) foldFunc {
	const piece, few = 256, 32
	least := 32 / DTypeOf[T]().Size() // elements in a vector register
	return func(out, rows []byte, each int) {
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		room := bytesAs[T](bufs.rows[0][:])[:piece+few]
		sums, x := bytesAs[T](out), bytesAs[T](rows)
		for i := range sums {
			row := x[i*each:][:each]
			for len(row) >= max(2*least, few) {
				n := min(len(row)/2, piece) &^ (least - 1)
				if kernel.Combine(w, row[:n], row[n:2*n], room[:n]) == 0 {
					break
				}
				row = row[2*n:]
				for len(row) >= least {
					m := min(n, len(row)&^(least-1))
					kernel.Combine(w, room[:m], row[:m], room[:m])
					row = row[m:]
				}
				row = room[:n+copy(room[n:], row)]
			}
			sums[i] = end(row)
		}
	}
}

// longFolds sets the folds of 64-bit integers that have kernels of their own: the sum, the
// maximum and the minimum.
func longFolds(folds *[reductions]foldFunc) {
	folds[redSum] = rowFold(kernel.SumLongs)
	folds[redMax], folds[redMin] = rowFold(kernel.LargestLong), rowFold(kernel.SmallestLong)
}

// firstIndex returns the index of the first element that no other element precedes, where before
// orders elements.
func firstIndex[T ordered](row []T, before func(a, b T) bool) int64 {
	best := 0
	for i, v := range row {
		if before(v, row[best]) {
			best = i
		}
	}
	return int64(best)
}

// placeOf returns a function that finds the index of the first extreme element of a row. best
// returns this element, and before orders elements. best must return NaN if and only if the row
// contains NaN. Short rows are scanned once, with before.
func placeOf[T float](best func(row []T) T, before func(a, b T) bool) func(row []T) int64 {
	return func(row []T) int64 {
		if len(row) < wideRow {
			return firstIndex(row, before)
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

// isGreater and isLess report whether a precedes b in the order for the maximum and for the
// minimum. NaN precedes all other values.
func isGreater[T ordered](a, b T) bool { return a > b || a != a && b == b }
func isLess[T ordered](a, b T) bool    { return a < b || a != a && b == b }

// varianceOf returns the variance of row, divided by n-1, or NaN for fewer than two elements. It
// sums the squared deviations from the mean. The sum of deviations, which would be 0 without
// rounding errors, corrects the result (the corrected two-pass algorithm).
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
