package kernel

// Exp overwrites y with e to the power of x, element by element. The assembly is accurate to
// 1.1 units in the last place of float32 and 2 of float64, including infinities, NaN and
// subnormal results. y must be at least as long as x, and may be x.
func Exp[F Float](x, y []F) { unaryLoop(costly, loopsFor[F]().exp, x, y) }

// Sigmoid overwrites y with 1/(1+exp(-x)), element by element. The error is at most 3 units in
// the last place. y may be x.
func Sigmoid[F Float](x, y []F) { unaryLoop(costly, loopsFor[F]().sigmoid, x, y) }

// Tanh overwrites y with the hyperbolic tangent of x, element by element. The error is at most
// 3 units in the last place. y may be x.
func Tanh[F Float](x, y []F) { unaryLoop(costly, loopsFor[F]().tanh, x, y) }

// unaryLoop calls do for pieces of x and y, on as many goroutines as are worthwhile. cost is
// the number of operations for each element. y must be at least as long as x.
func unaryLoop[F Float](cost int, do func(n int, x, y *F), x, y []F) {
	if workers := elementWorkers(len(x), cost); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { unaryPieces(do, x[lo:hi], y[lo:hi]) })
	} else {
		unaryPieces(do, x, y)
	}
}

func unaryPieces[F Float](do func(n int, x, y *F), x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		do(n, &x[i], &y[i])
	}
}
