package kernel

import "math"

// Softmax overwrites y with the exponentials of each row of x (rows×cols), divided by their sum. y
// may be x. Rows are divided between Threads goroutines.
func Softmax[F Float](rows, cols int, x, y []F) {
	rowwise(rows, cols, func(r int) {
		x, y := x[r*cols:][:cols], y[r*cols:][:cols]
		Scale(1/expTo(Largest(x), x, y), y)
	})
}

// SoftmaxBackward overwrites dx with the gradient of [Softmax], from its output y and the gradient
// dy of that. dx may be dy.
func SoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	rowwise(rows, cols, func(r int) {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		Shift(-Dot(y, dy), dy, dx)
		Mul(y, dx, dx)
	})
}

// rowwise calls do for rows of so many numbers, with an exponential for each.
func rowwise(rows, cols int, do func(r int)) {
	if cols == 0 {
		return
	}
	const cost = 16
	if parts := workers(rows, rows*cols*cost); parts > 1 {
		fork(parts, rows, func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				do(r)
			}
		})
		return
	}
	for r := range rows {
		do(r)
	}
}

// expTo overwrites y with e to the power of x-shift, and returns the sum.
func expTo[F Float](shift F, x, y []F) (sum F) {
	for i, n := range short(len(x)) {
		sum += inner[F]().expTo(n, &x[i], shift, &y[i])
	}
	return sum
}

// LogSoftmax overwrites y with the logarithm of the softmax of each row of x (rows×cols). y may be
// x.
func LogSoftmax[F Float](rows, cols int, x, y []F) {
	for r := range rows {
		logSoftmax(x[r*cols:][:cols], y[r*cols:][:cols])
	}
}

// logSoftmax subtracts the largest element first, so that no exponential overflows.
func logSoftmax[F Float](x, y []F) {
	if len(x) == 0 {
		return
	}
	largest := Largest(x)
	var sum F
	for i, n := range short(len(x)) {
		sum += inner[F]().expSum(n, &x[i], largest)
	}
	logSum := F(math.Log(float64(sum)))
	for i, n := range short(len(x)) { // one after the other: beside a large element the logarithm would be lost
		inner[F]().shift(n, -largest, &x[i], &y[i])
		inner[F]().shift(n, -logSum, &y[i], &y[i])
	}
}

// LogSoftmaxBackward overwrites dx with the gradient of [LogSoftmax], from its output y and the
// gradient dy of that. dx may be dy.
func LogSoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	for r := range rows {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		sum := Sum(dy)
		for i, n := range short(cols) {
			inner[F]().lessExp(n, sum, &y[i], &dy[i], &dx[i])
		}
	}
}
