package kernel

import "math"

// Softmax overwrites y with the softmax of each row of x (rows×cols). y may be x. Rows are divided
// between [Threads] goroutines.
func Softmax[F Float](rows, cols int, x, y []F) {
	if parts := rowParts(rows, cols); parts > 1 {
		runRanges(parts, rows, func(_, lo, hi int) { softmax(lo, hi, cols, x, y) })
	} else {
		softmax(0, rows, cols, x, y)
	}
}

func softmax[F Float](lo, hi, cols int, x, y []F) {
	for r := lo; r < hi && cols > 0; r++ {
		x, y := x[r*cols:][:cols], y[r*cols:][:cols]
		Scale(1/expTo(Largest(x), x, y), y)
	}
}

// SoftmaxBackward overwrites dx with the gradient of [Softmax], given its output y and the gradient
// dy of y. dx may be dy.
func SoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	if parts := rowParts(rows, cols); parts > 1 {
		runRanges(parts, rows, func(_, lo, hi int) { softmaxBackward(lo, hi, cols, y, dy, dx) })
	} else {
		softmaxBackward(0, rows, cols, y, dy, dx)
	}
}

func softmaxBackward[F Float](lo, hi, cols int, y, dy, dx []F) {
	for r := lo; r < hi && cols > 0; r++ {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		Shift(-Dot(y, dy), dy, dx)
		Mul(y, dx, dx)
	}
}

// rowParts returns the number of goroutines that are worthwhile for rows×cols numbers, at the
// cost of an exponential each. They divide the rows.
func rowParts(rows, cols int) int {
	const cost = 16
	return workerCount(rows, rows*cols*cost)
}

// expTo overwrites y with exp(x-shift) and returns the sum of y.
func expTo[F Float](shift F, x, y []F) (sum F) {
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().expTo(n, &x[i], shift, &y[i])
	}
	return sum
}

// LogSoftmax overwrites y with the logarithm of the softmax of each row of x (rows×cols). y may be
// x.
func LogSoftmax[F Float](rows, cols int, x, y []F) {
	if parts := rowParts(rows, cols); parts > 1 {
		runRanges(parts, rows, func(_, lo, hi int) { logSoftmaxRows(lo, hi, cols, x, y) })
	} else {
		logSoftmaxRows(0, rows, cols, x, y)
	}
}

func logSoftmaxRows[F Float](lo, hi, cols int, x, y []F) {
	for r := lo; r < hi; r++ {
		logSoftmax(x[r*cols:][:cols], y[r*cols:][:cols])
	}
}

// logSoftmax overwrites y with the logarithm of the softmax of x, one row. It subtracts the
// largest element first, so that no exponential overflows.
func logSoftmax[F Float](x, y []F) {
	if len(x) == 0 {
		return
	}
	largest := Largest(x)
	var sum F
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().expSum(n, &x[i], largest)
	}
	logSum := F(math.Log(float64(sum)))
	// Two subtractions, because the sum of a large element and the logarithm would lose the latter.
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().shift(n, -largest, &x[i], &y[i])
		loopsFor[F]().shift(n, -logSum, &y[i], &y[i])
	}
}

// LogSoftmaxBackward overwrites dx with the gradient of [LogSoftmax], given its output y and the
// gradient dy of y. dx may be dy.
func LogSoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	if parts := rowParts(rows, cols); parts > 1 {
		runRanges(parts, rows, func(_, lo, hi int) { logSoftmaxBackward(lo, hi, cols, y, dy, dx) })
	} else {
		logSoftmaxBackward(0, rows, cols, y, dy, dx)
	}
}

func logSoftmaxBackward[F Float](lo, hi, cols int, y, dy, dx []F) {
	for r := lo; r < hi; r++ {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		sum := Sum(dy)
		for i, n := range shortPieces(cols) {
			loopsFor[F]().lessExp(n, sum, &y[i], &dy[i], &dx[i])
		}
	}
}
