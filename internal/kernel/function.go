package kernel

import "math"

// Function is a function of one number, for [Map].
type Function int

// The functions of Map. Neg to Cube are computed by IEEE 754 operations; Cube multiplies, and
// rounds, twice. The error of Log is at most one unit in the last place. The errors of the others
// are at most three units.
const (
	Neg Function = iota
	Abs
	Sign // 0 if x is 0 or NaN
	Floor
	Ceil
	Round // ties to even
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

// Map overwrites y with f(x), element by element. y must be at least as long as x, and may be
// x.
func Map[F Float](f Function, x, y []F) {
	if f == Sin || f == Cos {
		mapSinCos(f, x, y)
		return
	}
	cost := costly
	if f <= Trunc {
		cost = cheap
	}
	unaryLoop(cost, loopsFor[F]().functions[f], x, y)
}

// mapSinCos is [Map] for Sin and Cos. The loops support numbers up to [maxTrigArgument]. Larger
// numbers and NaN are computed one by one by package math, so that no result depends on
// neighbouring elements.
func mapSinCos[F Float](f Function, x, y []F) {
	if workers := elementWorkers(len(x), costly); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { sinCosPieces(f, x[lo:hi], y[lo:hi]) })
	} else {
		sinCosPieces(f, x, y)
	}
}

func sinCosPieces[F Float](f Function, x, y []F) {
	const sliceOrNil = 1 << 9
	y = y[:len(x)]
	most, do, one := maxTrigArgument[F](), loopsFor[F]().functions[f], math.Sin
	if f == Cos {
		one = math.Cos
	}
	for lo := 0; lo < len(x); lo += sliceOrNil {
		x, y := x[lo:min(lo+sliceOrNil, len(x))], y[lo:min(lo+sliceOrNil, len(x))]
		if Largest(x) <= most && Smallest(x) >= -most {
			do(len(x), &x[0], &y[0])
			continue
		}
		var room [sliceOrNil]F // a copy, because y may be x
		far := room[:copy(room[:], x)]
		do(len(x), &x[0], &y[0])
		for i := range far {
			if !(far[i] <= most && far[i] >= -most) {
				y[i] = F(one(float64(far[i])))
			}
		}
	}
}

// maxTrigArgument returns the largest argument that the loops of Sin and Cos support. Up to it, the
// multiple n of π/2 has so few bits that subtracting n times the leading part of π/2 is exact.
func maxTrigArgument[F Float]() F {
	if isFloat32[F]() {
		return 1 << 15
	}
	return 1 << 20
}

// Polar overwrites y with √(-2·log(x)/x), for x between 0 and 1, element by element. This is
// the factor of Marsaglia's polar method (Marsaglia and Bray, 1964), which turns a point in the
// unit disc into two normally distributed numbers. The result is bitwise identical on all
// machines. y may be x.
func Polar(x, y []float64) { unaryLoop(costly, loopsFor[float64]().polar, x, y) }

// Max overwrites z with the larger of x and y, element by element, or NaN if either is NaN. y
// and z must be at least as long as x. z may be x or y.
func Max[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().max, x, y, z) }

// Min overwrites z with the smaller of x and y, element by element, or NaN if either is NaN. y
// and z must be at least as long as x. z may be x or y.
func Min[F Float](x, y, z []F) { binaryLoop(loopsFor[F]().min, x, y, z) }

// Largest returns the largest element of x, or NaN if x contains NaN. It panics if x is empty.
func Largest[F Float](x []F) F {
	return reduceExtreme(x, loopsFor[F]().largest, func(x, y F) F { return max(x, y) })
}

// Smallest returns the smallest element of x, or NaN if x contains NaN. It panics if x is
// empty.
func Smallest[F Float](x []F) F {
	return reduceExtreme(x, loopsFor[F]().smallest, func(x, y F) F { return min(x, y) })
}

func reduceExtreme[F Float](x []F, of func(n int, x *F) F, two func(x, y F) F) F {
	best, lanes := x[0], loopsFor[F]().lanes
	if len(x) < lanes {
		for _, v := range x[1:] {
			best = two(best, v)
		}
		return best
	}
	if len(x) > longest {
		return reduceLongExtreme(x, of, two)
	}
	return two(best, of(len(x), &x[0]))
}

// reduceLongExtreme is reduceExtreme for more than longest elements. It combines the results of
// the pieces in their order.
func reduceLongExtreme[F Float](x []F, of func(n int, x *F) F, two func(x, y F) F) F {
	best, lanes, found := x[0], loopsFor[F]().lanes, make([]F, (len(x)+longest-1)/longest)
	eachLongPiece(len(x), func(piece, lo, n int) {
		lo = min(lo, len(x)-lanes) // let a short last piece overlap with the one before
		found[piece] = of(max(n, lanes), &x[lo])
	})
	for _, v := range found {
		best = two(best, v)
	}
	return best
}

// Clamp overwrites y with x clamped to [lo, hi]; NaN stays NaN. y must be at least as long as
// x, and may be x.
func Clamp[F Float](lo, hi F, x, y []F) {
	y = y[:len(x)]
	for i, n := range shortPieces(len(x)) {
		loopsFor[F]().clamp(n, lo, hi, &x[i], &y[i])
	}
}
