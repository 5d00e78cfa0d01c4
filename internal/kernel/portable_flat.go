package kernel

import (
	"math"
	"unsafe"
)

// The loops over whole slices in plain Go.

func axpy[F Float](n int, alpha F, x, y *F) {
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		to[i] += alpha * v
	}
}

func scale[F Float](n int, alpha F, x, y *F) {
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		to[i] = alpha * v
	}
}

func shift[F Float](n int, alpha F, x, y *F) {
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		to[i] = v + alpha
	}
}

func add[F Float](n int, x, y, z *F) { zip(n, x, y, z, func(x, y F) F { return x + y }) }
func sub[F Float](n int, x, y, z *F) { zip(n, x, y, z, func(x, y F) F { return x - y }) }
func mul[F Float](n int, x, y, z *F) { zip(n, x, y, z, func(x, y F) F { return x * y }) }
func div[F Float](n int, x, y, z *F) { zip(n, x, y, z, func(x, y F) F { return x / y }) }

// zip overwrites n elements of z with f of x and y, and each overwrites n elements of y with f
// of x. Both are small enough to be inlined together with f, which leaves a loop without calls.
func zip[F Float](n int, x, y, z *F, f func(x, y F) F) {
	xs, ys, zs := unsafe.Slice(x, n), unsafe.Slice(y, n), unsafe.Slice(z, n)
	for i := range zs {
		zs[i] = f(xs[i], ys[i])
	}
}

func each[F Float](n int, x, y *F, f func(x float64) float64) {
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		to[i] = F(f(float64(v)))
	}
}

func exp[F Float](n int, x, y *F)  { each(n, x, y, math.Exp) }
func tanh[F Float](n int, x, y *F) { each(n, x, y, math.Tanh) }
func sigmoid[F Float](n int, x, y *F) {
	each(n, x, y, logistic)
}

func logistic(x float64) float64 {
	e := math.Exp(-math.Abs(x)) // at most 1
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

func expSum[F Float](n int, x *F, shift F) F {
	var sum float64
	for _, v := range unsafe.Slice(x, n) {
		sum += math.Exp(float64(v - shift))
	}
	return F(sum)
}

func expEach[F Float](n int, x *F, shift F, y *F) F {
	var sum float64
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		e := math.Exp(float64(v - shift))
		to[i] = F(e)
		sum += e
	}
	return F(sum)
}

func lessExp[F Float](n int, alpha F, x, y, z *F) {
	zip(n, x, y, z, func(x, y F) F { return y - F(math.Exp(float64(x)))*alpha })
}

func relu[F Float](n int, x, y *F) {
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		to[i] = max(v, 0)
	}
}

func reluBackward[F Float](n int, y, dy, dx *F) {
	if isFloat32[F]() {
		passPositive(unsafe.Slice(y, n), unsafe.Slice((*uint32)(unsafe.Pointer(dy)), n),
			unsafe.Slice((*uint32)(unsafe.Pointer(dx)), n))
	} else {
		passPositive(unsafe.Slice(y, n), unsafe.Slice((*uint64)(unsafe.Pointer(dy)), n),
			unsafe.Slice((*uint64)(unsafe.Pointer(dx)), n))
	}
}

// passPositive is reluBackward on the bits of dy and dx, which must be at least as long as y.
// It uses a mask instead of a branch, because the signs of y are unpredictable.
func passPositive[F Float, B uint32 | uint64](y []F, dy, dx []B) {
	for i, v := range y {
		var mask B
		if !(v <= 0) {
			mask = ^B(0)
		}
		dx[i] = dy[i] & mask
	}
}

func sumRow[F Float](n int, x *F) F { return sumFour[F](unsafe.Slice(x, n)) }

func columnSums[F Float](rows, n int, x *F, ld int, y *float64) {
	to := unsafe.Slice(y, n)
	for r := range rows {
		for i, v := range unsafe.Slice(elementPtr(x, r*ld), n) {
			to[i] += float64(v)
		}
	}
}

func sum64[F Float](n int, x *F) float64 { return sumFour[float64](unsafe.Slice(x, n)) }

// sumFour returns the sum of x, computed in type A. It uses four accumulators to shorten the
// dependency chain of additions; dot does too.
func sumFour[A, F Float](x []F) A {
	var a, b, c, d A
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+A(x[0]), b+A(x[1]), c+A(x[2]), d+A(x[3])
	}
	for _, v := range x {
		a += A(v)
	}
	return (a + b) + (c + d)
}

func dot[F Float](n int, x, y *F) F {
	var a, b, c, d F
	xs, ys := unsafe.Slice(x, n), unsafe.Slice(y, n)
	for ; len(xs) >= 4 && len(ys) >= 4; xs, ys = xs[4:], ys[4:] {
		a, b, c, d = a+xs[0]*ys[0], b+xs[1]*ys[1], c+xs[2]*ys[2], d+xs[3]*ys[3]
	}
	for i, v := range xs {
		a += v * ys[i]
	}
	return (a + b) + (c + d)
}

func descend[F Float](n int, p, g, buf *F, lr, decay, keep, take F) {
	ps, gs, bufs := unsafe.Slice(p, n), unsafe.Slice(g, n), unsafe.Slice(buf, n)
	for i, v := range ps {
		bufs[i] = keep*bufs[i] + take*(gs[i]+decay*v)
		ps[i] = v - lr*bufs[i]
	}
}

func adam[F Float](n int, p, grad, mean, square *F, rate, root, fresh1, keep2, fresh2, eps, decay, shrink F) {
	ps, ms, vs := unsafe.Slice(p, n), unsafe.Slice(mean, n), unsafe.Slice(square, n)
	for i, g := range unsafe.Slice(grad, n) {
		g += decay * ps[i]
		ms[i] += fresh1 * (g - ms[i])
		vs[i] = keep2*vs[i] + fresh2*g*g
		ps[i] -= shrink*ps[i] + rate*ms[i]/(F(math.Sqrt(float64(vs[i])))*root+eps)
	}
}

func rmsprop[F Float](n int, p, grad, square *F, rate, kept, fresh, eps, decay F) {
	ps, vs := unsafe.Slice(p, n), unsafe.Slice(square, n)
	for i, g := range unsafe.Slice(grad, n) {
		g += decay * ps[i]
		vs[i] = kept*vs[i] + fresh*g*g
		ps[i] -= rate * g / (F(math.Sqrt(float64(vs[i]))) + eps)
	}
}
