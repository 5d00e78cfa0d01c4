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
	if workers := workerCount(len(x)/sumLength[F](), len(x)); workers > 1 {
		sum = sumParallel(workers, x)
	} else {
		sum = sumPairwise(loopsFor[F]().sum64, x)
	}
	if sum-sum != 0 {
		return sumFour[float64](x)
	}
	return sum
}

// sumParallel is sumPairwise on several goroutines. They compute the sums of disjoint branches
// of the same tree of additions, so the result is the same.
func sumParallel[F Float](workers int, x []F) float64 {
	var branches [][]F
	walkBranches(x, workers*partsPerWorker, func(branch []F) { branches = append(branches, branch) })
	sums := make([]float64, len(branches))
	runParts(workers, len(branches), len(branches), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			sums[i] = sumPairwise(loopsFor[F]().sum64, branches[i])
		}
	})
	sum, _ := joinBranches(x, workers*partsPerWorker, sums)
	return sum
}

// walkBranches divides x like sumPairwise until there are about n branches, and calls do for each
// in their order.
func walkBranches[F Float](x []F, n int, do func(branch []F)) {
	if half := halfOf(x); n > 1 && half < len(x) {
		walkBranches(x[:half], n/2, do)
		walkBranches(x[half:], n/2, do)
	} else {
		do(x)
	}
}

// joinBranches returns the sum of x from the sums of its branches, in the order of
// [walkBranches] with the same n, and the sums that are left.
func joinBranches[F Float](x []F, n int, sums []float64) (sum float64, left []float64) {
	half := halfOf(x)
	if n <= 1 || half == len(x) {
		return sums[0], sums[1:]
	}
	a, left := joinBranches(x[:half], n/2, sums)
	b, left := joinBranches(x[half:], n/2, left)
	return a + b, left
}

// halfOf returns the number of elements of x that sumPairwise adds first, or len(x) if it does not
// divide x.
func halfOf[F Float](x []F) int {
	n := sumLength[F]()
	if len(x) <= n {
		return len(x)
	}
	return (len(x)/2 + n - 1) / n * n
}

func sumPairwise[F Float](sum func(n int, x *F) float64, x []F) float64 {
	half := halfOf(x)
	if half == len(x) {
		return sum(len(x), &x[0])
	}
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

// RowSums overwrites sums with the sums of len(sums) consecutive rows of x of n elements each,
// in double precision.
func RowSums[F Float](n int, x []F, sums []float64) {
	if workers := workerCount(len(sums), n*len(sums)); workers > 1 {
		runParts(workers, min(len(sums), workers*partsPerWorker), len(sums), func(_, lo, hi int) {
			rowSums(n, x[lo*n:hi*n], sums[lo:hi])
		})
	} else {
		rowSums(n, x, sums)
	}
}

func rowSums[F Float](n int, x []F, sums []float64) {
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

// ColumnSums adds the columns of x (rows×cols), with rows ld apart, to sums (cols). If exact is
// set, it adds only in double precision; see [Finite].
func ColumnSums[F Float](rows, cols int, x []F, ld int, sums []float64, exact bool) {
	do := loopsFor[F]().columnSums
	if exact {
		do = columnSums[F]
	}
	eachColumnBlock(rows, cols, x, ld, sums, do)
}

// Finite reports whether all sums are finite. If the results of [ColumnSums] are not, the
// caller should recompute them with exact set, because numbers that are finite in double
// precision may overflow in single precision.
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

// LargestColumns replaces each of the cols elements of best by the maximum of itself and of a
// column of x (rows×cols), with rows ld elements apart, or NaN if one of them is NaN.
func LargestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	eachColumnBlock(rows, cols, x, ld, best, loopsFor[F]().columnsLargest)
}

// SmallestColumns replaces each of the cols elements of best by the minimum of itself and of a
// column of x (rows×cols), with rows ld elements apart, or NaN if one of them is NaN.
func SmallestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	eachColumnBlock(rows, cols, x, ld, best, loopsFor[F]().columnsSmallest)
}

// nearColumns is the number of columns of a block.
const nearColumns = 1024

// eachColumnBlock calls do for blocks of rows and columns of x, and the elements of to that
// belong to the columns. The blocks are narrow enough for the results to stay in the
// first-level cache. do may be called concurrently for different columns.
func eachColumnBlock[F, R Float](rows, cols int, x []F, ld int, to []R, do func(rows, n int, x *F, ld int, to *R)) {
	if rows == 0 || cols == 0 {
		return
	}
	if workers := workerCount(cols/block, rows*cols); workers > 1 {
		// Narrow parts would be slower: each has a short piece of each row.
		blocks, parts := (cols+block-1)/block, min(max(workers, cols/nearColumns), workers*partsPerWorker)
		runParts(workers, parts, blocks, func(_, lo, hi int) {
			columnBlocks(rows, cols, lo*block, min(hi*block, cols), x, ld, to, do)
		})
	} else {
		columnBlocks(rows, cols, 0, cols, x, ld, to, do)
	}
}

// columnBlocks is eachColumnBlock for columns lo to hi-1, on the calling goroutine. The number
// of rows of a call does not depend on them, because the loops may add rows in groups.
func columnBlocks[F, R Float](rows, cols, lo, hi int, x []F, ld int, to []R,
	do func(rows, n int, x *F, ld int, to *R)) {
	_, to = x[(rows-1)*ld+cols-1], to[:cols]
	for c := 0; c < cols; c += nearColumns {
		end := min(c+nearColumns, cols)
		from, n := max(c, lo), min(end, hi)-max(c, lo)
		for r, step := 0, longest/(end-c); r < rows && n > 0; r += step {
			do(min(step, rows-r), n, &x[r*ld+from], ld, &to[from])
		}
	}
}
