package kernel

// States is the number of generator states that [Congruence] advances at once.
const States = 16

// Congruence advances the states of 16 128-bit linear congruential generators and writes one
// output of each of them in turn to to. The output function is PCG XSL RR (O'Neill, 2014,
// https://www.pcg-random.org). states holds the upper halves of all states, then the lower
// halves. rule holds the multiplier and then the increment, each with its upper half first.
// Congruence returns the number of outputs written. With vector instructions this is len(to)
// rounded down to a multiple of 16, otherwise 0. The caller must compute the rest.
func Congruence(states *[2 * States]uint64, rule *[4]uint64, to []uint64) int {
	n := len(to) &^ (States - 1)
	if current.congruence == nil || n == 0 {
		return 0
	}
	for i, m := range shortPieces(n) {
		current.congruence(m, &states[0], &rule[0], &to[i])
	}
	return n
}

// The functions below convert random bits to numbers. Each step is rounded separately, so that all
// machines compute the same numbers: a conversion to float64 prevents the compiler from fusing a
// product and a sum. Callers should pass pieces that fit into a cache.

// Fractions overwrites to with lo + width·f, where f in [0, 1) is the binary fraction formed by the
// given number of highest bits of an element of bits.
func Fractions(bits []uint64, highest int, lo, width float64, to []float64) {
	to = to[:len(bits)]
	part := 1 / float64(uint64(1)<<highest) // a power of two, so multiplying by it is exact
	done := 0
	if current.fractions != nil {
		done = roundDown8(len(bits))
		if done > 0 {
			current.fractions(done, &bits[0], uint64(64-highest), width, part, lo, &to[0])
		}
	}
	for i, b := range bits[done:] {
		to[done+i] = lo + float64(float64(width*float64(int64(b>>(64-highest))))*part)
	}
}

// roundDown8 rounds n down to a multiple of 8.
func roundDown8(n int) int { return n &^ 7 }

// Points computes points with two coordinates in [-1, 1) from pairs of elements of bits. It
// keeps the points inside the unit disc, except its centre. It writes their coordinates to x
// and y and their squared distances from the centre to s, and returns the number of points
// kept. x, y and s must have room for len(bits)/2 points; elements beyond the kept points may
// be overwritten.
func Points(bits []uint64, x, y, s []float64) (n int) {
	points := len(bits) / 2
	x, y, s = x[:points], y[:points], s[:points]
	if done := roundDown8(points); current.points != nil && done > 0 {
		n = current.points(done, &bits[0], &x[0], &y[0], &s[0])
		bits = bits[2*done:]
	}
	for ; len(bits) >= 2; bits = bits[2:] {
		a, b := unitFloat(bits[0]), unitFloat(bits[1])
		square := float64(a*a) + float64(b*b)
		x[n], y[n], s[n] = a, b, square
		n += boolToInt(square > 0) & boolToInt(square < 1) // a branch would be unpredictable
	}
	return n
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unitFloat converts random bits to a number in [-1, 1).
func unitFloat(bits uint64) float64 { return 2*(float64(int64(bits>>11))/(1<<53)) - 1 }

// Pairs overwrites to with mean + std·factor·coordinate, alternating the coordinates x and y of
// each point. factors holds one factor for each point, see [Polar]. If to has odd length, only
// x of the last point is used.
func Pairs(mean, std float64, x, y, factors, to []float64) {
	done := 0
	if current.pairs != nil {
		done = roundDown8(len(to) / 2)
		if done > 0 {
			current.pairs(done, mean, std, &x[0], &y[0], &factors[0], &to[0])
		}
	}
	for i := done; 2*i < len(to); i++ {
		factor := factors[i]
		to[2*i] = mean + float64(std*float64(x[i]*factor))
		if 2*i+1 < len(to) {
			to[2*i+1] = mean + float64(std*float64(y[i]*factor))
		}
	}
}
