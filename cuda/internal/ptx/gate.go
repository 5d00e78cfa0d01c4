package ptx

import "math"

// gates maps the elementwise operations of package autograd to their functions. Each is a single
// kernel instead of several operations of package tensor.
var gates = map[string]opFunc{
	"GELU": gelu, "GELUGradient": geluGradient, "Gated": gated, "GatedGradient": gatedGradient,
	"ReLUGradient": reluGradient,
}

// function emits the operation with the given name, a key of inFloat32 and inFloat64, in class
// t, and returns the result.
func function(a *asm, t Type, name string, x string) string {
	if t == Float32 {
		return inFloat32[name](a, t, x)
	}
	return inFloat64[name](a, t, x)
}

// normal returns the cumulative distribution function of the standard normal distribution at x.
func normal(a *asm, t Type, x string) string {
	e := function(a, t, "Erf", a.emitResult(op("mul", t), x, formatConst(t, math.Sqrt2/2)))
	half := formatConst(t, .5)
	return a.emitResult(op("fma", t), e, half, half)
}

func gelu(a *asm, t Type, x ...string) string {
	return a.emitResult(op("mul", t), x[0], normal(a, t, x[0]))
}

// geluGradient takes x and dy. It returns dy times the derivative of GELU at x.
func geluGradient(a *asm, t Type, x ...string) string {
	squares := a.emitResult(op("mul", t), x[0], x[0])
	density := function(a, t, "Exp", a.emitResult(op("mul", t), squares, formatConst(t, -.5)))
	density = a.emitResult(op("mul", t), density, formatConst(t, 1/math.Sqrt(2*math.Pi)))
	slope := a.emitResult(op("fma", t), density, x[0], normal(a, t, x[0]))
	return a.emitResult(op("mul", t), slope, x[1])
}

// open returns the sigmoid of x·(first + third·x²), and x².
func open(a *asm, t Type, x, first, third string) (sigmoid, squares string) {
	squares = a.emitResult(op("mul", t), x, x)
	inner := a.emitResult(op("mul", t), a.emitResult(op("fma", t), squares, third, first), x)
	return function(a, t, "Sigmoid", inner), squares
}

// gated takes x and the numbers a and b. It returns x times the sigmoid of x·(a + b·x²).
func gated(a *asm, t Type, x ...string) string {
	s, _ := open(a, t, x[0], x[1], x[2])
	return a.emitResult(op("mul", t), x[0], s)
}

// gatedGradient takes x, dy and the numbers a and b. It returns dy·(s + x·s·(1-s)·(a + 3b·x²)) for
// the sigmoid s.
func gatedGradient(a *asm, t Type, x ...string) string {
	s, squares := open(a, t, x[0], x[2], x[3])
	slope := a.emitResult(op("fma", t), a.emitResult(op("mul", t), squares, formatConst(t, 3)), x[3], x[2])
	rest := a.emitResult(op("mul", t),
		a.emitResult(op("mul", t), a.emitResult(op("sub", t), formatConst(t, 1), s), s), x[0])
	return a.emitResult(op("mul", t), a.emitResult(op("fma", t), slope, rest, s), x[1])
}

// reluGradient takes y and dy. It returns 0 if y ≤ 0, and dy otherwise, including for a NaN in y.
func reluGradient(a *asm, t Type, x ...string) string {
	return a.emitResult("selp."+string(t), formatConst(t, 0), x[1],
		a.emitResult("setp.le."+string(t), x[0], formatConst(t, 0)))
}
