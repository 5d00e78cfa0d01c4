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

// fewSummed is up to how many numbers are added up before a kernel could begin.
const fewSummed = 16

// Sum64 is the sum of x in double precision.
func Sum64[F Float](x []F) (sum float64) {
	if len(x) <= fewSummed {
		for _, v := range x {
			sum += float64(v)
		}
		return sum
	}
	for i, n := range short(len(x)) {
		sum += inner[F]().sum64(n, &x[i])
	}
	return sum
}

// ColumnSums adds the columns of rows×cols, whose rows are ld apart, to sums, in double precision.
func ColumnSums[F Float](rows, cols int, x []F, ld int, sums []float64) {
	if rows == 0 || cols == 0 {
		return
	}
	_, sums = x[(rows-1)*ld+cols-1], sums[:cols]
	step := max(longest/cols, 1) // rows of a call
	for r := 0; r < rows; r += step {
		for i, n := range short(cols) {
			inner[F]().columnSums(min(step, rows-r), n, &x[r*ld+i], ld, &sums[i])
		}
	}
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
