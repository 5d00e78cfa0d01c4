package kernel

// Short is a type of two-byte floats: Half or Brain, as defined for [Cast].
type Short int

// The types of two-byte floats.
const (
	Half Short = iota
	Brain

	shorts = iota
)

// Arithmetic is an operation on two floats.
type Arithmetic int

// The operations on two-byte floats.
const (
	Sums Arithmetic = iota
	Differences
	Products
	Quotients

	arithmetics = iota
)

// Do overwrites elements of z with the results of a for x and y, computed in single precision
// and rounded once, and returns the number of computed elements. With vector instructions this
// is the number of elements of z rounded down to a multiple of 16, otherwise 0. The caller must
// compute the rest, as for [Cast.Do]. x and y must be at least as long as z. z may be x or y.
func (s Short) Do(a Arithmetic, x, y, z []byte) int {
	n, do := len(z)/2&^15, current.shorts[a][s]
	if n == 0 || do == nil {
		return 0
	}
	x, y = x[:2*n], y[:2*n]
	for i, m := range shortPieces(n) {
		do(m, &x[2*i], &y[2*i], &z[2*i])
	}
	return n
}

// Relu overwrites elements of y with max(x, 0); NaN stays NaN. It returns the number of computed
// elements, like [Short.Do].
func (s Short) Relu(x, y []byte) int {
	n, do := len(y)/2&^15, current.shortRelus[s]
	if n == 0 || do == nil {
		return 0
	}
	x = x[:2*n]
	for i, m := range shortPieces(n) {
		do(m, &x[2*i], &y[2*i])
	}
	return n
}

// Sum returns the sum of the first done elements of x in double precision. done is the number
// of elements rounded down to a multiple of 64, or 0 without vector instructions. Four elements
// are first added in single precision, as for float32, so the sum of finite numbers may be
// infinite. The caller must add the remaining elements.
func (s Short) Sum(x []byte) (sum float64, done int) {
	n, do := len(x)/2&^63, current.shortSums[s]
	if n == 0 || do == nil {
		return 0, 0
	}
	for i, m := range shortPieces(n) {
		sum += do(m, &x[2*i])
	}
	return sum, n
}
