package ptx

import "math"

// gates are what package autograd computes with each element by itself, in one kernel where the
// operations of package tensor would be several.
var gates = map[string]opFunc{
	"GELU": gelu, "GELUGradient": geluGradient, "Gated": gated, "GatedGradient": gatedGradient,
	"ReLUGradient": reluGradient,
}

// function computes one of those of inFloat64 in a class.
func function(a *asm, t Type, name string, x string) string {
	if t == Float32 {
		return inFloat32[name](a, t, x)
	}
	return inFloat64[name](a, t, x)
}

// normal is the distribution function of the normal distribution.
func normal(a *asm, t Type, x string) string {
	e := function(a, t, "Erf", a.do(op("mul", t), x, number(t, math.Sqrt2/2)))
	half := number(t, .5)
	return a.do(op("fma", t), e, half, half)
}

func gelu(a *asm, t Type, x ...string) string { return a.do(op("mul", t), x[0], normal(a, t, x[0])) }

// geluGradient is of x and dy.
func geluGradient(a *asm, t Type, x ...string) string {
	squares := a.do(op("mul", t), x[0], x[0])
	density := function(a, t, "Exp", a.do(op("mul", t), squares, number(t, -.5)))
	density = a.do(op("mul", t), density, number(t, 1/math.Sqrt(2*math.Pi)))
	slope := a.do(op("fma", t), density, x[0], normal(a, t, x[0]))
	return a.do(op("mul", t), slope, x[1])
}

// open is the sigmoid of x·(a + b·x²).
func open(a *asm, t Type, x, first, third string) (sigmoid, squares string) {
	squares = a.do(op("mul", t), x, x)
	inner := a.do(op("mul", t), a.do(op("fma", t), squares, third, first), x)
	return function(a, t, "Sigmoid", inner), squares
}

// gated is of x, and the numbers a and b.
func gated(a *asm, t Type, x ...string) string {
	s, _ := open(a, t, x[0], x[1], x[2])
	return a.do(op("mul", t), x[0], s)
}

// gatedGradient is of x and dy, and the numbers: dy·(s + x·s·(1-s)·(a + 3b·x²)).
func gatedGradient(a *asm, t Type, x ...string) string {
	s, squares := open(a, t, x[0], x[2], x[3])
	slope := a.do(op("fma", t), a.do(op("mul", t), squares, number(t, 3)), x[3], x[2])
	rest := a.do(op("mul", t), a.do(op("mul", t), a.do(op("sub", t), number(t, 1), s), s), x[0])
	return a.do(op("mul", t), a.do(op("fma", t), slope, rest, s), x[1])
}

// reluGradient is of y and dy, which is 0 where y is not above 0. NaN passes.
func reluGradient(a *asm, t Type, x ...string) string {
	return a.do("selp."+string(t), number(t, 0), x[1], a.do("setp.le."+string(t), x[0], number(t, 0)))
}
