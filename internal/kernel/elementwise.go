package kernel

// Relu overwrites y with the larger of x and zero, element by element; NaN stays NaN. y may be x.
func Relu[F Float](x, y []F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = max(v, 0)
	}
}

// ReluBackward overwrites dx with dy where y, the output (or the input) of [Relu], is above zero, and with zero elsewhere.
// dx may be dy.
func ReluBackward[F Float](y, dy, dx []F) {
	if single[F]() {
		passPositive(y, reinterpret[uint32](dy), reinterpret[uint32](dx))
	} else {
		passPositive(y, reinterpret[uint64](dy), reinterpret[uint64](dx))
	}
}

// passPositive is ReluBackward on the bits of dy and dx: the signs of y are random, and a mask needs no branch.
func passPositive[F Float, B uint32 | uint64](y []F, dy, dx []B) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		var mask B
		if v > 0 {
			mask = ^B(0)
		}
		dx[i] = dy[i] & mask
	}
}

// Axpy adds alpha·x to y.
func Axpy[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

// Scale multiplies x by alpha in place.
func Scale[F Float](alpha F, x []F) {
	for i := range x {
		x[i] *= alpha
	}
}

// AddBias adds b to every row of y (rows×cols).
func AddBias[F Float](rows, cols int, y, b []F) {
	for r := range rows {
		Axpy(1, b[:cols], y[r*cols:][:cols])
	}
}

// ColSum adds the sum of every column of x (rows×cols) to sum: the gradient of what [AddBias] added.
func ColSum[F Float](rows, cols int, x, sum []F) {
	for r := range rows {
		Axpy(1, x[r*cols:][:cols], sum[:cols])
	}
}
