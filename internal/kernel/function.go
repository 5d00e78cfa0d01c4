package kernel

import "math"

// A Function is one of a number, for [Map].
type Function int

// The functions of Map. Those down to Cube, which multiplies twice, are as IEEE 754 has them, and
// Log is good to a unit in the last place. The others are good to three units.
const (
	Neg Function = iota
	Abs
	Sign // 0 where x is 0 or NaN
	Floor
	Ceil
	Round // halves to even
	Trunc
	Sqrt
	Rsqrt
	Reciprocal
	Cube
	Log
	Log1p
	Expm1
	Sin
	Cos
	Atan
	Erf

	functions = iota
)

// Map overwrites y with f of x, element by element. y may be x.
func Map[F Float](f Function, x, y []F) {
	if f == Sin || f == Cos {
		wave(f, x, y)
		return
	}
	apart(inner[F]().functions[f], x, y)
}

// wave is Map of a sine or a cosine. The loops know numbers up to farthest; others, and NaN, are
// computed by package math one by one, so that no element's result depends on its neighbours.
func wave[F Float](f Function, x, y []F) {
	const piece = 1 << 9
	y = y[:len(x)]
	most, do, one := farthest[F](), inner[F]().functions[f], math.Sin
	if f == Cos {
		one = math.Cos
	}
	for lo := 0; lo < len(x); lo += piece {
		x, y := x[lo:min(lo+piece, len(x))], y[lo:min(lo+piece, len(x))]
		if Largest(x) <= most && Smallest(x) >= -most {
			do(len(x), &x[0], &y[0])
			continue
		}
		var room [piece]F // y may be x
		far := room[:copy(room[:], x)]
		do(len(x), &x[0], &y[0])
		for i := range far {
			if !(far[i] <= most && far[i] >= -most) {
				y[i] = F(one(float64(far[i])))
			}
		}
	}
}

// farthest is how large a number may be for the loops of Sin and Cos: as many times π/2 as half of
// the bits of a number can count.
func farthest[F Float]() F {
	if single[F]() {
		return 1 << 15
	}
	return 1 << 20
}

// Polar overwrites y with √(-2·log(x)/x), for x between 0 and 1: the factor of Marsaglia's polar
// method, by which two numbers of a disc are two of the normal distribution. All machines compute
// the same bits. y may be x.
func Polar(x, y []float64) { apart(inner[float64]().polar, x, y) }

// Max overwrites z with the larger of x and y, element by element, and Min with the smaller; NaN if
// one is. z may be x or y.
func Max[F Float](x, y, z []F) { pairwise(inner[F]().max, x, y, z) }

// Min overwrites z with the smaller of x and y.
func Min[F Float](x, y, z []F) { pairwise(inner[F]().min, x, y, z) }

// Largest is the largest element of x, which has one, and Smallest the smallest; NaN if one is.
func Largest[F Float](x []F) F {
	return extreme(x, inner[F]().largest, func(x, y F) F { return max(x, y) })
}

// Smallest is the smallest element of x.
func Smallest[F Float](x []F) F {
	return extreme(x, inner[F]().smallest, func(x, y F) F { return min(x, y) })
}

func extreme[F Float](x []F, of func(n int, x *F) F, two func(x, y F) F) F {
	best, lanes := x[0], inner[F]().lanes
	if len(x) < lanes {
		for _, v := range x[1:] {
			best = two(best, v)
		}
		return best
	}
	for i, n := range short(len(x)) {
		i = min(i, len(x)-lanes) // a last piece that is too short begins in the one before
		best = two(best, of(max(n, lanes), &x[i]))
	}
	return best
}

// Clamp overwrites y with x, moved up to lo and then down to hi; NaN stays NaN. y may be x.
func Clamp[F Float](lo, hi F, x, y []F) {
	y = y[:len(x)]
	for i, n := range short(len(x)) {
		inner[F]().clamp(n, lo, hi, &x[i], &y[i])
	}
}
