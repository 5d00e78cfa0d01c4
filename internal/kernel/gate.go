package kernel

import "math"

// GELU overwrites y with x·Φ(x), element by element, where Φ is the cumulative distribution
// function of the normal distribution (Hendrycks and Gimpel, 2016,
// https://arxiv.org/abs/1606.08415). y must be at least as long as x, and may be x. In float32
// assembly the error of Φ is at most 2e-7.
func GELU[F Float](x, y []F) {
	unaryLoop(costly, loopsFor[F]().gelu, x, y)
}

// GELUBackward overwrites dx with dy times the derivative of [GELU] at x. dy and dx must be at
// least as long as x. dx must not overlap x or dy.
func GELUBackward[F Float](x, dy, dx []F) { gradientInPieces(Gate{}, x, dy, dx) }

// Gate is the activation x·σ(A·x + B·x³), where σ is the logistic function: SiLU, or the tanh
// approximation of GELU.
type Gate struct{ A, B float64 }

// PyTorch's gates.
var (
	SiLU     = Gate{A: 1}
	GELUTanh = Gate{A: 2 * math.Sqrt(2/math.Pi), B: 2 * math.Sqrt(2/math.Pi) * 0.044715}
)

// Gated overwrites y with the gate g of x, element by element. y must be at least as long as x,
// and may be x.
func Gated[F Float](g Gate, x, y []F) {
	if workers := elementWorkers(len(x), costly); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { gateAll(g, x[lo:hi], y[lo:hi]) })
	} else {
		gateAll(g, x, y)
	}
}

func gateAll[F Float](g Gate, x, y []F) {
	unaryPieces(func(n int, x, y *F) { loopsFor[F]().gated(n, F(g.A), F(g.B), x, y) }, x, y)
}

// GatedBackward overwrites dx with dy times the derivative of g at x. dy and dx must be at
// least as long as x. dx must not overlap x or dy. g must not be the zero Gate, which stands
// for [GELU] here.
func GatedBackward[F Float](g Gate, x, dy, dx []F) { gradientInPieces(g, x, dy, dx) }

// gradientInPieces overwrites dx with dy times the derivative of g at x. The zero Gate stands for
// GELU.
func gradientInPieces[F Float](g Gate, x, dy, dx []F) {
	if workers := elementWorkers(len(x), costly); workers > 1 {
		runElements(workers, len(x), func(lo, hi int) { gradientPiece(g, x[lo:hi], dy[lo:hi], dx[lo:hi]) })
	} else {
		gradientPiece(g, x, dy, dx)
	}
}

// gradientPiece is gradientInPieces on the calling goroutine. It computes the slopes in pieces
// that fit into the first-level cache.
func gradientPiece[F Float](g Gate, x, dy, dx []F) {
	const sliceOrNil = 1 << 10
	for at := 0; at < len(x); at += sliceOrNil {
		end := min(at+sliceOrNil, len(x))
		if g == (Gate{}) {
			loopsFor[F]().geluSlope(end-at, &x[at], &dx[at])
		} else {
			loopsFor[F]().gatedSlope(end-at, F(g.A), F(g.B), &x[at], &dx[at])
		}
		binaryPieces(loopsFor[F]().mul, dx[at:end], dy[at:end], dx[at:end])
	}
}
