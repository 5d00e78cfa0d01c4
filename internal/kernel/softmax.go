package kernel

import "math"

// LogSoftmax overwrites y with the logarithm of the softmax of each row of x (rows×cols). y may be x.
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

// LogSoftmaxBackward overwrites dx with the gradient of [LogSoftmax], from its output y and the gradient dy of that. dx may be dy.
func LogSoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	for r := range rows {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		sum := Sum(dy)
		for i, n := range short(cols) {
			inner[F]().lessExp(n, sum, &y[i], &dy[i], &dx[i])
		}
	}
}
