package kernel

// Sums in double precision. If there are vector instructions, float32 numbers are first added in
// single precision in groups of four, and the group sums in double precision. The error is at most
// 2⁻²³ of the sum of the magnitudes, because a number passes through two additions in single
// precision. If the result is not finite, either because of an element or because a
// single-precision addition overflowed, the sum is computed again in double precision only. A
// float64 number passes through fewer than 150 additions with instructions, and through 600 in
// plain Go, regardless of the number of elements.

// sumLength returns the number of elements that a loop sums sequentially. The sums of parts are
// added pairwise.
func sumLength[F Float]() int {
	if isFloat32[F]() {
		return longest // errors are dominated by the additions in single precision
	}
	return 2048
}

// fewSummed is the largest number of elements for plain Go, which is then faster than calling a
// loop.
const fewSummed = 16

// Sum64 returns the sum of x in double precision.
func Sum64[F Float](x []F) (sum float64) {
	if len(x) <= fewSummed {
		return sumFour[float64](x)
	}
	if sum = sumPairwise(loopsFor[F]().sum64, x); sum-sum != 0 {
		return sumFour[float64](x)
	}
	return sum
}

func sumPairwise[F Float](sum func(n int, x *F) float64, x []F) float64 {
	n := sumLength[F]()
	if len(x) <= n {
		return sum(len(x), &x[0])
	}
	half := (len(x)/2 + n - 1) / n * n
	return sumPairwise(sum, x[:half]) + sumPairwise(sum, x[half:])
}

// Product returns the product of x in double precision.
func Product[F Float](x []F) float64 {
	product := 1.0
	if whole := len(x) &^ (each64 - 1); loopsFor[F]().product != nil {
		for i, n := range shortPieces(whole) {
			product *= loopsFor[F]().product(n, &x[i])
		}
		x = x[whole:]
	}
	a, b, c, d := 1.0, 1.0, 1.0, 1.0
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a*float64(x[0]), b*float64(x[1]), c*float64(x[2]), d*float64(x[3])
	}
	for _, v := range x {
		product *= float64(v)
	}
	return product * (a * b) * (c * d)
}

// RowSums overwrites sums with the sums of len(sums) rows of x of n elements each.
func RowSums[F Float](n int, x []F, sums []float64) {
	x = x[:n*len(sums)]
	do := loopsFor[F]().rowSums
	if do == nil || n == 0 || n > sumLength[F]() {
		for r := range sums {
			sums[r] = Sum64(x[r*n:][:n])
		}
		return
	}
	for r, step := 0, longest/n; r < len(sums); r += step {
		do(min(step, len(sums)-r), n, &x[r*n], &sums[r])
	}
	if Finite(sums) {
		return
	}
	for r, sum := range sums {
		if sum-sum != 0 {
			sums[r] = sumFour[float64](x[r*n:][:n])
		}
	}
}

// ColumnSums adds the columns of x (rows×cols), with rows ld apart, to sums. If exact is set, it
// adds only in double precision; see [Finite].
func ColumnSums[F Float](rows, cols int, x []F, ld int, sums []float64, exact bool) {
	do := loopsFor[F]().columnSums
	if exact {
		do = columnSums[F]
	}
	eachColumnBlock(rows, cols, x, ld, sums, do)
}

// Finite reports whether all sums are finite. If column sums are not, the caller should recompute
// them with exact set, because numbers that are finite in double precision may overflow in single
// precision.
func Finite(sums []float64) bool {
	if all := Sum64(sums); all-all == 0 {
		return true // a finite total implies finite terms
	}
	for _, sum := range sums {
		if sum-sum != 0 {
			return false
		}
	}
	return true
}

// LargestColumns replaces each element of best by the maximum of itself and of a column of x, with
// rows ld apart, or NaN if one of them is NaN.
func LargestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	eachColumnBlock(rows, cols, x, ld, best, loopsFor[F]().columnsLargest)
}

// SmallestColumns replaces each element of best by the minimum of itself and of a column of x, with
// rows ld apart, or NaN if one of them is NaN.
func SmallestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	eachColumnBlock(rows, cols, x, ld, best, loopsFor[F]().columnsSmallest)
}

// eachColumnBlock calls do for blocks of columns that are narrow enough for the results to stay in
// the first-level cache.
func eachColumnBlock[F, R Float](rows, cols int, x []F, ld int, to []R, do func(rows, n int, x *F, ld int, to *R)) {
	const near = 1024
	if rows == 0 || cols == 0 {
		return
	}
	_, to = x[(rows-1)*ld+cols-1], to[:cols]
	for c := 0; c < cols; c += near {
		n := min(near, cols-c)
		for r, step := 0, longest/n; r < rows; r += step {
			do(min(step, rows-r), n, &x[r*ld+c], ld, &to[c])
		}
	}
}
