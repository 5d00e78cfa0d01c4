package kernel

// Relu overwrites y with the larger of x and zero, element by element; NaN stays NaN. y may be x.
func Relu[F Float](x, y []F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		inner[F]().relu(n, &x[i], &y[i])
	}
}

// ReluBackward overwrites dx with dy where y, the output (or the input) of [Relu], is above zero or
// NaN, and with zero elsewhere. dx may be dy.
func ReluBackward[F Float](y, dy, dx []F) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, n := range short(len(y)) {
		inner[F]().reluBackward(n, &y[i], &dy[i], &dx[i])
	}
}

// Add overwrites z with x+y, element by element; Sub, Mul and Div likewise. z may be x or y.
func Add[F Float](x, y, z []F) { pairwise(inner[F]().add, x, y, z) }

// Sub overwrites z with x-y.
func Sub[F Float](x, y, z []F) { pairwise(inner[F]().sub, x, y, z) }

// Mul overwrites z with x·y.
func Mul[F Float](x, y, z []F) { pairwise(inner[F]().mul, x, y, z) }

// Div overwrites z with x/y.
func Div[F Float](x, y, z []F) { pairwise(inner[F]().div, x, y, z) }

func pairwise[F Float](do func(n int, x, y, z *F), x, y, z []F) {
	y, z = y[:len(x)], z[:len(x)]
	if n := len(x); n <= longest { // rows are mostly short, and there are many
		if n > 0 {
			do(n, &x[0], &y[0], &z[0])
		}
		return
	}
	for i, n := range short(len(x)) {
		do(n, &x[i], &y[i], &z[i])
	}
}

// Axpy adds alpha·x to y.
func Axpy[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		inner[F]().axpy(n, alpha, &x[i], &y[i])
	}
}

// Sum is the sum of x.
func Sum[F Float](x []F) (sum F) {
	for i, n := range short(len(x)) {
		sum += inner[F]().sum(n, &x[i])
	}
	return sum
}

// Dot is the sum of the products of x and y.
func Dot[F Float](x, y []F) (sum F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		sum += inner[F]().dot(n, &x[i], &y[i])
	}
	return sum
}

// Scale multiplies x by alpha in place.
func Scale[F Float](alpha F, x []F) { ScaleTo(alpha, x, x) }

// ScaleTo overwrites y with alpha·x. y may be x.
func ScaleTo[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		inner[F]().scale(n, alpha, &x[i], &y[i])
	}
}

// Shift overwrites y with x+alpha. y may be x.
func Shift[F Float](alpha F, x, y []F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		inner[F]().shift(n, alpha, &x[i], &y[i])
	}
}

// Dropout overwrites y with x, each run of so many elements of it multiplied by factor and by its
// element of kept, which is 1 or 0. y may be x.
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

// AddBias adds b to every row of y (rows×cols).
func AddBias[F Float](rows, cols int, y, b []F) {
	for r := range rows {
		Axpy(1, b[:cols], y[r*cols:][:cols])
	}
}

// ColSum adds the sum of every column of x (rows×cols) to sum: the gradient of what [AddBias]
// added.
func ColSum[F Float](rows, cols int, x, sum []F) {
	for r := range rows {
		Axpy(1, x[r*cols:][:cols], sum[:cols])
	}
}
