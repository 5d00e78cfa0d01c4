package kernel

// Relu overwrites y with max(x, 0), element by element; NaN stays NaN. y may be x.
func Relu[F Float](x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().relu(n, &x[i], &y[i])
	}
}

// ReluBackward overwrites dx with dy if y is positive or NaN, and with zero otherwise. y must be
// the output or the input of [Relu]. dx may be dy.
func ReluBackward[F Float](y, dy, dx []F) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, n := range shortPieces(len(y)) {
		loopsFor[F]().reluBackward(n, &y[i], &dy[i], &dx[i])
	}
}

// Add overwrites z with x+y, element by element. z may be x or y; this also holds for [Sub], [Mul]
// and [Div].
func Add[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().add, x, y, z) }

// Sub overwrites z with x-y.
func Sub[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().sub, x, y, z) }

// Mul overwrites z with x·y.
func Mul[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().mul, x, y, z) }

// Div overwrites z with x/y.
func Div[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().div, x, y, z) }

func binaryLoop[F Float](do func(n int, x, y, z *F), x, y, z []F) {
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

// Axpy adds alpha·x to y.
func Axpy[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().axpy(n, alpha, &x[i], &y[i])
	}
}

// Sum returns the sum of x.
func Sum[F Float](x []F) (sum F) {
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().sum(n, &x[i])
	}
	return sum
}

// Dot returns the dot product of x and y.
func Dot[F Float](x, y []F) (sum F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		sum += loopsFor[F]().dot(n, &x[i], &y[i])
	}
	return sum
}

// Scale multiplies x by alpha in place.
func Scale[F Float](alpha F, x []F) { ScaleTo(alpha, x, x) }

// ScaleTo overwrites y with alpha·x. y may be x.
func ScaleTo[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().scale(n, alpha, &x[i], &y[i])
	}
}

// Shift overwrites y with x+alpha. y may be x.
func Shift[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().shift(n, alpha, &x[i], &y[i])
	}
}

// Dropout overwrites y with x·kept·factor. Each element of kept, which must be 0 or 1, applies to
// run consecutive elements of x. y may be x.
func Dropout[F Float](run int, factor F, kept, x, y []F) {
	if run > 1 {
		for i, m := range kept {
			ScaleTo(m*factor, x[i*run:][:run], y[i*run:][:run])
		}
		return
	}
	Mul(kept, x, y)
	Scale(factor, y[:len(kept)])
}

// AddBias adds b to each row of y (rows×cols).
func AddBias[F Float](rows, cols int, y, b []F) {
	for r := range rows {
		Axpy(1, b[:cols], y[r*cols:][:cols])
	}
}

// ColSum adds the sum of each column of x (rows×cols) to sum. It computes the gradient of b in
// [AddBias].
func ColSum[F Float](rows, cols int, x, sum []F) {
	for r := range rows {
		Axpy(1, x[r*cols:][:cols], sum[:cols])
	}
}
