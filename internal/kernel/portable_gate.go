package kernel

import "math"

func gelu[F Float](n int, x, y *F) {
	each(n, x, y, func(x float64) float64 { return x * phi(x) })
}

func geluSlope[F Float](n int, x, y *F) {
	each(n, x, y, func(x float64) float64 { return phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) })
}

// phi returns Φ(x), the cumulative distribution function of the normal distribution.
func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func gated[F Float](n int, a, b F, x, y *F) {
	each(n, x, y, func(x float64) float64 { return x * gate(x, float64(a), float64(b)) })
}

func gatedSlope[F Float](n int, a, b F, x, y *F) {
	each(n, x, y, func(x float64) float64 {
		s := gate(x, float64(a), float64(b))
		return s + x*s*(1-s)*(float64(a)+3*float64(b)*clampSquare(x*x))
	})
}

// gate returns σ(a·x + b·x³).
func gate(x, a, b float64) float64 { return logistic(x * (a + b*clampSquare(x*x))) }

// clampSquare bounds a square by 1e30, so that 0 times it is not NaN.
func clampSquare(square float64) float64 { return min(square, 1e30) }
