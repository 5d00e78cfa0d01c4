package kernel

import "math"

// GELU overwrites y with x·Φ(x), element by element, where Φ is the distribution function of the
// normal distribution. y may be x. In assembly Φ is within 2e-7 in float32.
func GELU[F Float](x, y []F) {
	divide(len(x), func(lo, hi int) { apart(inner[F]().gelu, x[lo:hi], y[lo:hi]) })
}

// GELUBackward overwrites dx with dy times the derivative of [GELU] at x. dx is neither x nor dy.
func GELUBackward[F Float](x, dy, dx []F) {
	slopes(x, dy, dx, inner[F]().geluSlope)
}

// A Gate is the activation x·σ(A·x + B·x³): SiLU, and the approximation of GELU by a hyperbolic
// tangent.
type Gate struct{ A, B float64 }

// The gates of PyTorch.
var (
	SiLU     = Gate{A: 1}
	GELUTanh = Gate{A: 2 * math.Sqrt(2/math.Pi), B: 2 * math.Sqrt(2/math.Pi) * 0.044715}
)

// Gated overwrites y with what g makes of x, element by element. y may be x.
func Gated[F Float](g Gate, x, y []F) {
	divide(len(x), func(lo, hi int) {
		apart(func(n int, x, y *F) { inner[F]().gated(n, F(g.A), F(g.B), x, y) }, x[lo:hi], y[lo:hi])
	})
}

// GatedBackward overwrites dx with dy times the derivative of g at x. dx is neither x nor dy.
func GatedBackward[F Float](g Gate, x, dy, dx []F) {
	slopes(x, dy, dx, func(n int, x, y *F) { inner[F]().gatedSlope(n, F(g.A), F(g.B), x, y) })
}

// slopes overwrites dx with dy times what slope makes of x, in pieces that stay in the first-level
// cache.
func slopes[F Float](x, dy, dx []F, slope func(n int, x, y *F)) {
	const piece = 1 << 10
	divide(len(x), func(lo, hi int) {
		for at := lo; at < hi; at += piece {
			end := min(at+piece, hi)
			slope(end-at, &x[at], &dx[at])
			Mul(dx[at:end], dy[at:end], dx[at:end])
		}
	})
}

// divide calls do for parts of n elements, each of which costs some ten operations, on as many
// goroutines as that is worth.
func divide(n int, do func(lo, hi int)) {
	const cost = 16
	if parts := workers(n, n*cost); parts > 1 {
		fork(parts, n, func(_, lo, hi int) { do(lo, hi) })
	} else {
		do(0, n)
	}
}
