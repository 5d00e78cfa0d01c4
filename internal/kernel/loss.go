package kernel

import "fmt"

// NLLLoss returns the negative sum of logp[r, target[r]] over the rows of logp (rows×cols,
// log-probabilities). The caller should divide by rows for the mean. It panics if a target is
// not from 0 to cols-1.
func NLLLoss[F Float](rows, cols int, logp []F, target []int64) F {
	var sum F
	for r, class := range target[:rows] {
		sum -= logp[r*cols:][:cols][checkClass(class, cols)]
	}
	return sum
}

// NLLLossBackward overwrites dx (rows×cols) with the gradient of [NLLLoss], multiplied by
// scale. For the mean, scale must be 1/rows. It panics like NLLLoss.
func NLLLossBackward[F Float](rows, cols int, target []int64, scale F, dx []F) {
	clear(dx[:rows*cols])
	for r, class := range target[:rows] {
		dx[r*cols:][:cols][checkClass(class, cols)] = -scale
	}
}

// checkClass returns the class as an index. It panics if the class is out of range.
func checkClass(class int64, classes int) int {
	if class < 0 || class >= int64(classes) {
		panic(fmt.Sprintf("kernel: target class %d out of range, want less than %d", class, classes))
	}
	return int(class)
}

// MSELoss returns the sum of the squared differences of x and the first len(x) elements of y.
// The caller should divide by len(x) for the mean.
func MSELoss[F Float](x, y []F) F {
	var sum F
	y = y[:len(x)]
	for i, v := range x {
		d := v - y[i]
		sum += d * d
	}
	return sum
}

// MSELossBackward overwrites dx with the gradient of [MSELoss] with respect to x, multiplied by
// scale. For the mean, scale must be 1/len(x).
func MSELossBackward[F Float](x, y []F, scale F, dx []F) {
	if workers := elementWorkers(len(x), cheap); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { mseSlopes(x[lo:hi], y[lo:hi], scale, dx[lo:hi]) })
	} else {
		mseSlopes(x, y, scale, dx)
	}
}

func mseSlopes[F Float](x, y []F, scale F, dx []F) {
	y, dx = y[:len(x)], dx[:len(x)]
	for i, v := range x {
		dx[i] = 2 * scale * (v - y[i])
	}
}
