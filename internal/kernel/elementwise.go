package kernel

// Relu overwrites y with max(x, 0), element by element; NaN stays NaN. y must be at least as
// long as x, and may be x.
func Relu[F Float](x, y []F) { unaryLoop(cheap, loopsFor[F]().relu, x, y) }

// ReluBackward overwrites dx with dy if y is positive or NaN, and with zero otherwise, element
// by element. y must be the output or the input of [Relu]. dy and dx must be at least as long
// as y. dx may be dy.
func ReluBackward[F Float](y, dy, dx []F) { binaryLoop(loopsFor[F]().reluBackward, y, dy, dx) }

// Add overwrites z with x+y, element by element. y and z must be at least as long as x. z may
// be x or y; this also holds for [Sub], [Mul] and [Div].
func Add[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().add, x, y, z) }

// Sub overwrites z with x-y, element by element, like [Add].
func Sub[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().sub, x, y, z) }

// Mul overwrites z with x·y, element by element, like [Add].
func Mul[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().mul, x, y, z) }

// Div overwrites z with x/y, element by element, like [Add].
func Div[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().div, x, y, z) }

// The cost of an element in operations, for elementWorkers.
const (
	cheap  = 4  // one arithmetic operation, limited by the caches
	costly = 16 // an exponential or a similar function
)

func binaryLoop[F Float](do func(n int, x, y, z *F), x, y, z []F) {
	if workers := elementWorkers(len(x), cheap); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { binaryPieces(do, x[lo:hi], y[lo:hi], z[lo:hi]) })
	} else {
		binaryPieces(do, x, y, z)
	}
}

func binaryPieces[F Float](do func(n int, x, y, z *F), x, y, z []F) {
	y, z = y[:len(x)], z[:len(x)]
	if n := len(x); n <= longest { // most rows are short, so avoid the iterator
		if n > 0 {
			do(n, &x[0], &y[0], &z[0])
		}
		return
	}
	for i, n := range shortPieces(len(x)) {
		do(n, &x[i], &y[i], &z[i])
	}
}

// Axpy adds alpha·x to y, element by element. y must be at least as long as x.
func Axpy[F Float](alpha F, x, y []F) { scalarLoop(loopsFor[F]().axpy, alpha, x, y) }

// copyElements copies x to y, which must not overlap it and must be at least as long.
func copyElements[F Float](y, x []F) {
	if workers := elementWorkers(len(x), cheap); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { copy(y[lo:hi], x[lo:hi]) })
	} else {
		copy(y, x)
	}
}

// scalarLoop calls do, a loop with the same alpha for all elements, on pieces of x and y, on as
// many goroutines as are worthwhile. y must be at least as long as x; both may be empty.
func scalarLoop[F Float](do func(n int, alpha F, x, y *F), alpha F, x, y []F) {
	if workers := elementWorkers(len(x), cheap); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { scalarPieces(do, alpha, x[lo:hi], y[lo:hi]) })
	} else {
		scalarPieces(do, alpha, x, y)
	}
}

func scalarPieces[F Float](do func(n int, alpha F, x, y *F), alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		do(n, alpha, &x[i], &y[i])
	}
}

// Sum returns the sum of x, computed in the precision of F. It is 0 for an empty x.
func Sum[F Float](x []F) (sum F) {
	if len(x) > longest {
		return sumLong(x)
	}
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().sum(n, &x[i])
	}
	return sum
}

// sumLong is [Sum] for more than longest elements. The sums of the pieces are added in their
// order.
func sumLong[F Float](x []F) (sum F) {
	sums := make([]F, (len(x)+longest-1)/longest)
	eachLongPiece(len(x), func(piece, lo, n int) { sums[piece] = loopsFor[F]().sum(n, &x[lo]) })
	for _, s := range sums {
		sum += s
	}
	return sum
}

// eachLongPiece calls do with the number, the offset and the length of each piece of n
// elements. All pieces but the last have longest elements. They are divided between [Threads]
// goroutines, so do may be called concurrently.
func eachLongPiece(n int, do func(piece, lo, n int)) {
	pieces := (n + longest - 1) / longest
	runRanges(workerCount(pieces, n), pieces, func(_, from, to int) {
		for i := from; i < to; i++ {
			do(i, i*longest, min(longest, n-i*longest))
		}
	})
}

// Dot returns the dot product of x and the first len(x) elements of y, computed in the
// precision of F.
func Dot[F Float](x, y []F) (sum F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().dot(n, &x[i], &y[i])
	}
	return sum
}

// Scale multiplies x by alpha in place.
func Scale[F Float](alpha F, x []F) { ScaleTo(alpha, x, x) }

// ScaleTo overwrites y with alpha·x. y must be at least as long as x, and may be x.
func ScaleTo[F Float](alpha F, x, y []F) { scalarLoop(loopsFor[F]().scale, alpha, x, y) }

// Shift overwrites y with x+alpha. y must be at least as long as x, and may be x.
func Shift[F Float](alpha F, x, y []F) { scalarLoop(loopsFor[F]().shift, alpha, x, y) }

// Dropout overwrites y with x·kept·factor. Each element of kept, which must be 0 or 1, applies
// to run consecutive elements of x. x and y must have at least run·len(kept) elements. y may be
// x.
func Dropout[F Float](run int, factor F, kept, x, y []F) {
	if run > 1 {
		if workers := workerCount(len(kept), len(kept)*run*cheap); workers > 1 {
			runRanges(workers, len(kept), func(_, lo, hi int) {
				dropRuns(run, factor, kept[lo:hi], x[lo*run:], y[lo*run:])
			})
		} else {
			dropRuns(run, factor, kept, x, y)
		}
		return
	}
	Mul(kept, x, y)
	Scale(factor, y[:len(kept)])
}

// dropRuns is [Dropout] on the calling goroutine. Each element of kept applies to run elements of
// x; x and y must have at least run·len(kept) elements.
func dropRuns[F Float](run int, factor F, kept, x, y []F) {
	for i, m := range kept {
		scalarPieces(loopsFor[F]().scale, m*factor, x[i*run:][:run], y[i*run:][:run])
	}
}

// AddBias adds b (cols) to each row of y (rows×cols).
func AddBias[F Float](rows, cols int, y, b []F) {
	if workers := workerCount(rows, rows*cols*cheap); workers > 1 {
		runRanges(workers, rows, func(_, lo, hi int) { addBias(hi-lo, cols, y[lo*cols:], b) })
	} else {
		addBias(rows, cols, y, b)
	}
}

func addBias[F Float](rows, cols int, y, b []F) {
	for r := range rows {
		scalarPieces(loopsFor[F]().axpy, 1, b[:cols], y[r*cols:][:cols])
	}
}

// ColSum adds the sum of each column of x (rows×cols) to sum (cols). It computes the gradient
// of b in [AddBias].
func ColSum[F Float](rows, cols int, x, sum []F) {
	if workers := workerCount(cols/block, rows*cols*cheap); workers > 1 {
		runElements(workers, cols, func(lo, hi int) { sumColumns(rows, cols, lo, hi, x, sum) })
	} else {
		sumColumns(rows, cols, 0, cols, x, sum)
	}
}

// sumColumns is [ColSum] for columns lo to hi-1, on the calling goroutine.
func sumColumns[F Float](rows, cols, lo, hi int, x, sum []F) {
	for r := range rows {
		scalarPieces(loopsFor[F]().axpy, 1, x[r*cols:][lo:hi], sum[lo:hi])
	}
}
