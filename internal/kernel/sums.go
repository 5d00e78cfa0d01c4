package kernel

// Sums in double precision. Of float32, four numbers are added in single precision where there are
// instructions for it, and such sums in double precision. So a sum is off by 2⁻²³ of the sum of the
// magnitudes at most: a number goes through two additions in single precision. What is not finite
// then, by one number or by an addition that went too far, is added up once more in double
// precision alone. A number of float64 goes through fewer than 150 additions by instructions, and
// through 600 by plain Go, however many there are.

// part returns how many numbers a loop adds up, from beginning to end. Sums of parts are added two
// by two.
func part[F Float]() int {
	if single[F]() {
		return longest // beside the additions in single precision others do not count
	}
	return 2048
}

// fewSummed is up to how many numbers are added up before a kernel could begin.
const fewSummed = 16

// Sum64 is the sum of x in double precision.
func Sum64[F Float](x []F) (sum float64) {
	if len(x) <= fewSummed {
		return total[float64](x)
	}
	if sum = cascade(inner[F]().sum64, x); sum-sum != 0 {
		return total[float64](x)
	}
	return sum
}

func cascade[F Float](sum func(n int, x *F) float64, x []F) float64 {
	n := part[F]()
	if len(x) <= n {
		return sum(len(x), &x[0])
	}
	half := (len(x)/2 + n - 1) / n * n
	return cascade(sum, x[:half]) + cascade(sum, x[half:])
}

// Product is the product of x in double precision.
func Product[F Float](x []F) float64 {
	product := 1.0
	if whole := len(x) &^ (each64 - 1); inner[F]().product != nil {
		for i, n := range short(whole) {
			product *= inner[F]().product(n, &x[i])
		}
		x = x[whole:]
	}
	a, b, c, d := 1.0, 1.0, 1.0, 1.0
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a*float64(x[0]), b*float64(x[1]), c*float64(x[2]), d*float64(x[3])
	}
	for _, v := range x {
		product *= float64(v)
	}
	return product * (a * b) * (c * d)
}

// RowSums overwrites sums with those of as many rows of x, of n numbers each.
func RowSums[F Float](n int, x []F, sums []float64) {
	x = x[:n*len(sums)]
	do := inner[F]().rowSums
	if do == nil || n == 0 || n > part[F]() {
		for r := range sums {
			sums[r] = Sum64(x[r*n:][:n])
		}
		return
	}
	for r, step := 0, longest/n; r < len(sums); r += step {
		do(min(step, len(sums)-r), n, &x[r*n], &sums[r])
	}
	if Finite(sums) {
		return
	}
	for r, sum := range sums {
		if sum-sum != 0 {
			sums[r] = total[float64](x[r*n:][:n])
		}
	}
}

// ColumnSums adds the columns of rows×cols, whose rows are ld apart, to sums. It adds them in
// double precision alone if it is to be exact; see [Finite].
func ColumnSums[F Float](rows, cols int, x []F, ld int, sums []float64, exact bool) {
	do := inner[F]().columnSums
	if exact {
		do = columnSums[F]
	}
	downwards(rows, cols, x, ld, sums, do)
}

// Finite reports whether all sums are finite. If those of columns are not, a program begins anew
// and asks for exact ones, since numbers that are finite in double precision may be infinite in
// single precision.
func Finite(sums []float64) bool {
	if all := Sum64(sums); all-all == 0 {
		return true // each of them is
	}
	for _, sum := range sums {
		if sum-sum != 0 {
			return false
		}
	}
	return true
}

// LargestColumns makes best the larger of itself and of columns, whose rows are ld apart, and NaN
// where one is, and SmallestColumns the smaller.
func LargestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	downwards(rows, cols, x, ld, best, inner[F]().columnsLargest)
}

// SmallestColumns makes best the smaller of itself and of columns.
func SmallestColumns[F Float](rows, cols int, x []F, ld int, best []F) {
	downwards(rows, cols, x, ld, best, inner[F]().columnsSmallest)
}

// downwards has do walk over rows of so few columns that what it makes of them stays in the nearest
// cache.
func downwards[F, R Float](rows, cols int, x []F, ld int, to []R, do func(rows, n int, x *F, ld int, to *R)) {
	const near = 1024
	if rows == 0 || cols == 0 {
		return
	}
	_, to = x[(rows-1)*ld+cols-1], to[:cols]
	for c := 0; c < cols; c += near {
		n := min(near, cols-c)
		for r, step := 0, longest/n; r < rows; r += step {
			do(min(step, rows-r), n, &x[r*ld+c], ld, &to[c])
		}
	}
}
