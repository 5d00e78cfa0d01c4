package kernel

// States is how many states of a generator are moved on at once.
const States = 16

// Congruence moves states on, of generators of 128 bits, by a rule: each is multiplied by a factor,
// and an increment is added. to gets a number of each of them, again and again, as PCG XSL RR makes
// it of a state. The upper halves of the states come first, and so do those of factor and
// increment. It returns how many numbers it has written: on a machine with instructions for it all
// but the last few, on others none.
func Congruence(states *[2 * States]uint64, rule *[4]uint64, to []uint64) int {
	n := len(to) &^ (States - 1)
	if current.congruence == nil || n == 0 {
		return 0
	}
	for i, m := range short(n) {
		current.congruence(m, &states[0], &rule[0], &to[i])
	}
	return n
}

// The functions below make numbers of random bits. Their steps are rounded one by one (a conversion
// to float64 keeps the compiler from fusing a product with a sum), so that all machines make the
// same numbers. At a time they are given as few as fit into a cache.

// Fractions overwrites to with lo and width times a fraction: the highest bits of a number, so
// many, behind the point.
func Fractions(bits []uint64, highest int, lo, width float64, to []float64) {
	to = to[:len(bits)]
	part := 1 / float64(uint64(1)<<highest) // a power of two, by which a product is the quotient
	done := 0
	if current.fractions != nil {
		done = eights(len(bits))
		if done > 0 {
			current.fractions(done, &bits[0], uint64(64-highest), width, part, lo, &to[0])
		}
	}
	for i, b := range bits[done:] {
		to[done+i] = lo + float64(float64(width*float64(int64(b>>(64-highest))))*part)
	}
}

// eights is n less what is not a multiple of 8.
func eights(n int) int { return n &^ 7 }

// Points makes points of two numbers each, whose coordinates are from -1 to 1. It writes the
// coordinates of those in the unit disc, without its centre, to x and y and the squares of their
// distances from the centre to s, and returns how many they are. x, y and s have room for all.
func Points(bits []uint64, x, y, s []float64) (n int) {
	points := len(bits) / 2
	x, y, s = x[:points], y[:points], s[:points]
	if done := eights(points); current.points != nil && done > 0 {
		n = current.points(done, &bits[0], &x[0], &y[0], &s[0])
		bits = bits[2*done:]
	}
	for ; len(bits) >= 2; bits = bits[2:] {
		a, b := unit(bits[0]), unit(bits[1])
		square := float64(a*a) + float64(b*b)
		x[n], y[n], s[n] = a, b, square
		n += number(square > 0) & number(square < 1) // a branch would be taken at random
	}
	return n
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unit makes a number from -1 to 1 of random bits.
func unit(bits uint64) float64 { return 2*(float64(int64(bits>>11))/(1<<53)) - 1 }

// Pairs overwrites to with mean and std times the coordinates of points times their factors, x and
// y by turns. The last point may be half of one.
func Pairs(mean, std float64, x, y, factors, to []float64) {
	done := 0
	if current.pairs != nil {
		done = eights(len(to) / 2)
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
