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
	largest := F(math.Inf(-1))
	for _, v := range x {
		largest = max(largest, v)
	}
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v - largest))
	}
	logSum := largest + F(math.Log(sum))
	for i, v := range x {
		y[i] = v - logSum
	}
}

// LogSoftmaxBackward overwrites dx with the gradient of [LogSoftmax], from its output y and the gradient dy of that. dx may be dy.
func LogSoftmaxBackward[F Float](rows, cols int, y, dy, dx []F) {
	for r := range rows {
		y, dy, dx := y[r*cols:][:cols], dy[r*cols:][:cols], dx[r*cols:][:cols]
		var sum F
		for _, g := range dy {
			sum += g
		}
		for i, g := range dy {
			dx[i] = g - F(math.Exp(float64(y[i])))*sum
		}
	}
}
