package kernel

import "unsafe"

// portable is the level in plain Go.
var portable = level{name: "portable", f32: portableLoops[float32](), f64: portableLoops[float64]()}

func portableLoops[F Float]() loops[F] {
	one := make([]tile[F], 4)
	for i := range one {
		one[i] = portableTile[F](i + 1)
	}
	return loops[F]{
		lanes: 4, tiles: [][]tile[F]{one}, copyRows: copyRows[F], addRows: addRows[F], transpose: transpose[F], columns: 8,
		axpy: axpy[F], scale: scale[F], add: add[F], sub: sub[F], mul: mul[F], div: div[F],
		relu: relu[F], reluBackward: reluBackward[F], sum: sum[F], sum64: sum64[F], dot: dot[F],
		exp: exp[F], sigmoid: sigmoid[F], tanh: tanh[F], expSum: expSum[F], lessExp: lessExp[F], descend: descend[F], adam: adam[F],
		pool: poolPairs[F], poolBackward: unpoolPairs[F],
	}
}

// at is p[i] where p points into an array.
func at[F any](p *F, i int) *F {
	return (*F)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}

// portableTile keeps the sums of 4×4 in variables. With fewer rows the last one is computed again and left out; with fewer columns,
// which cannot be read, each sum is computed alone.
func portableTile[F Float](rows int) tile[F] {
	return func(k int, a *F, rsa, csa int, b *F, off *int, c *F, ldc, n int, alpha F, add bool) {
		if n < 4 {
			for i := range rows {
				for j := range n {
					settle(at(c, i*ldc+j), alpha*element(k, at(a, i*rsa), csa, at(b, j), off), add)
				}
			}
			return
		}
		r1, r2, r3 := min(1, rows-1)*rsa, min(2, rows-1)*rsa, min(3, rows-1)*rsa
		var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 F
		for _, begin := range unsafe.Slice(off, k) {
			row := (*[4]F)(unsafe.Pointer(at(b, begin)))
			b0, b1, b2, b3 := row[0], row[1], row[2], row[3]
			a0, a1, a2, a3 := *a, *at(a, r1), *at(a, r2), *at(a, r3)
			c00, c01, c02, c03 = c00+a0*b0, c01+a0*b1, c02+a0*b2, c03+a0*b3
			c10, c11, c12, c13 = c10+a1*b0, c11+a1*b1, c12+a1*b2, c13+a1*b3
			c20, c21, c22, c23 = c20+a2*b0, c21+a2*b1, c22+a2*b2, c23+a2*b3
			c30, c31, c32, c33 = c30+a3*b0, c31+a3*b1, c32+a3*b2, c33+a3*b3
			k--
			if k > 0 { // no pointer to what is not there
				a = at(a, csa)
			}
		}
		sums := [4][4]F{{c00, c01, c02, c03}, {c10, c11, c12, c13}, {c20, c21, c22, c23}, {c30, c31, c32, c33}}
		for i, row := range sums[:rows] {
			for j, sum := range row {
				settle(at(c, i*ldc+j), alpha*sum, add)
			}
		}
	}
}

// element is one of a product.
func element[F Float](k int, a *F, csa int, b *F, off *int) (sum F) {
	for l, begin := range unsafe.Slice(off, k) {
		sum += *at(a, l*csa) * *at(b, begin)
	}
	return sum
}

// settle is how a sum arrives in the result.
func settle[F Float](c *F, sum F, add bool) {
	if add {
		sum += *c
	}
	*c = sum
}

func copyRows[F Float](rows, n int, src *F, lds int, dst *F, ldd int) {
	for r := range rows {
		copy(unsafe.Slice(at(dst, r*ldd), n), unsafe.Slice(at(src, r*lds), n))
	}
}

func addRows[F Float](rows, n int, src *F, lds int, dst *F, ldd int) {
	for r := range rows {
		to := unsafe.Slice(at(dst, r*ldd), n)
		for i, v := range unsafe.Slice(at(src, r*lds), n) {
			to[i] += v
		}
	}
}

func transpose[F Float](rows, cols int, src *F, off *int, dst *F, ldd int) {
	for i := range rows {
		for j, v := range unsafe.Slice(at(src, *at(off, i)), cols) {
			*at(dst, j*ldd+i) = v
		}
	}
}

// poolPairs selects without branches: which of the four pixels is largest is random.
func poolPairs[F Float](rows, n int, x *F, w int, y *F, idx *int32, base int) {
	for r := range rows {
		window := unsafe.Slice(at(x, 2*r*w), w+2*n)
		dst, where := unsafe.Slice(at(y, r*n), n), unsafe.Slice(at(idx, r*n), n)
		for i := range dst {
			best := 2 * i
			for _, next := range [3]int{2*i + 1, 2*i + w, 2*i + w + 1} {
				v := window[next]
				best += (next - best) & -(bit(v > window[best]) | bit(v != v))
			}
			dst[i], where[i] = window[best], int32(base+2*r*w+best)
		}
	}
}

// bit is 1 for true; the compiler makes an instruction of it, no branch.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unpoolPairs[F Float](rows, n int, dy *F, idx *int32, dx *F, w int, base int) {
	for r := range rows {
		window := unsafe.Slice(at(dx, 2*r*w), w+2*n)
		clear(window[:2*n])
		clear(window[w:])
		for i, v := range unsafe.Slice(at(dy, r*n), n) {
			window[int(*at(idx, r*n+i))-base-2*r*w] = v
		}
	}
}
