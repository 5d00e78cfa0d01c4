package kernel

// A Short is a kind of floats of two bytes: Half and Brain, as [Cast] has them.
type Short int

// The kinds of short floats.
const (
	Half Short = iota
	Brain

	shorts = iota
)

// An Arithmetic is an operation on two floats.
type Arithmetic int

// The operations on short floats.
const (
	Sums Arithmetic = iota
	Differences
	Products
	Quotients

	arithmetics = iota
)

// Do overwrites elements of z with a of those of x and y, computed in single precision and rounded
// once, and returns how many: on a machine with instructions for it all but the last few, on others
// none. It leaves the others to its caller, as [Cast.Do] does. z may be x or y.
func (s Short) Do(a Arithmetic, x, y, z []byte) int {
	n, do := len(z)/2&^15, current.shorts[a][s]
	if n == 0 || do == nil {
		return 0
	}
	x, y = x[:2*n], y[:2*n]
	for i, m := range short(n) {
		do(m, &x[2*i], &y[2*i], &z[2*i])
	}
	return n
}

// Relu overwrites elements of y with the larger of those of x and 0, and NaN where they are, as
// [Short.Do] does.
func (s Short) Relu(x, y []byte) int {
	n, do := len(y)/2&^15, current.shortRelus[s]
	if n == 0 || do == nil {
		return 0
	}
	x = x[:2*n]
	for i, m := range short(n) {
		do(m, &x[2*i], &y[2*i])
	}
	return n
}

// Sum returns the sum of the first elements of x, as many as instructions take, in double
// precision. Four are added in single precision first, as those of float32 are; so the sum of
// finite numbers may not be finite.
func (s Short) Sum(x []byte) (sum float64, done int) {
	n, do := len(x)/2&^63, current.shortSums[s]
	if n == 0 || do == nil {
		return 0, 0
	}
	for i, m := range short(n) {
		sum += do(m, &x[2*i])
	}
	return sum, n
}
