package kernel

import "fmt"

// NLLLoss is the sum over the rows of logp (rows×cols, log-probabilities) of minus the element that
// target names. Divide by rows for the mean.
func NLLLoss[F Float](rows, cols int, logp []F, target []int64) F {
	var sum F
	for r, class := range target[:rows] {
		sum -= logp[r*cols:][:cols][checked(class, cols)]
	}
	return sum
}

// NLLLossBackward overwrites dx (rows×cols) with the gradient of [NLLLoss], multiplied by scale
// (1/rows for the mean).
func NLLLossBackward[F Float](rows, cols int, target []int64, scale F, dx []F) {
	clear(dx[:rows*cols])
	for r, class := range target[:rows] {
		dx[r*cols:][:cols][checked(class, cols)] = -scale
	}
}

// checked is the class as an index.
func checked(class int64, classes int) int {
	if class < 0 || class >= int64(classes) {
		panic(fmt.Sprintf("kernel: a target is class %d, but there are %d classes", class, classes))
	}
	return int(class)
}

// MSELoss is the sum of the squared differences of x and y. Divide by their length for the mean.
func MSELoss[F Float](x, y []F) F {
	var sum F
	y = y[:len(x)]
	for i, v := range x {
		d := v - y[i]
		sum += d * d
	}
	return sum
}

// MSELossBackward overwrites dx with the gradient of [MSELoss] in x, multiplied by scale (1/len(x)
// for the mean).
func MSELossBackward[F Float](x, y []F, scale F, dx []F) {
	y, dx = y[:len(x)], dx[:len(x)]
	for i, v := range x {
		dx[i] = 2 * scale * (v - y[i])
	}
}
