package kernel

import "unsafe"

// portable is the level in plain Go.
var portable = level{name: "portable", f32: portableLoops[float32](), f64: portableLoops[float64]()}

func portableLoops[F Float]() loops[F] {
	return loops[F]{
		lanes: portableLanes, tiles: [][]tile[F]{{portableTile[F]}}, few: 6, tiny: portableTiny,
		copyRows: copyRows[F], addRows: addRows[F], transpose: transpose[F], columns: 8,
		axpy: axpy[F], scale: scale[F], shift: shift[F], add: add[F], sub: sub[F], mul: mul[F], div: div[F],
		max: larger[F], min: smaller[F], largest: largest[F], smallest: smallest[F], clamp: clamp[F],
		functions: portableFunctions[F](), polar: polar[F],
		relu: relu[F], reluBackward: reluBackward[F], sum: sumRow[F], sum64: sum64[F], dot: dot[F],
		columnSums: columnSums[F], columnsLargest: columnsLargest[F], columnsSmallest: columnsSmallest[F],
		exp: exp[F], sigmoid: sigmoid[F], tanh: tanh[F], expSum: expSum[F], expTo: expEach[F],
		lessExp: lessExp[F],
		gelu:    gelu[F], geluSlope: geluSlope[F], gated: gated[F], gatedSlope: gatedSlope[F], lstm: lstm[F],
		lstmBackward: lstmBackward[F], gru: gru[F], gruBackward: gruBackward[F],
		centre: centre[F], affine: scaleAndAdd[F], normSums: normSums[F], normSlope: normSlope[F],
		descend: descend[F], adam: adam[F], rmsprop: rmsprop[F],
		pool: poolPairs[F], poolBackward: unpoolPairs[F],
	}
}

// portableTiny must be the largest tiny of all levels, because it bounds a buffer of addPlainDots.
const portableTiny = 128

// elementPtr returns &p[i], where p points into an array.
func elementPtr[F any](p *F, i int) *F {
	return (*F)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}

// portableLanes is the number of columns of a tile: few enough that a block of the rows it reads
// stays in the first-level cache.
const portableLanes = 64

// portableTile is the [tile] of one row in plain Go. It loads and stores each sum once for four
// products.
func portableTile[F Float](k int, a *F, _, csa int, b *F, off *int, c *F, _, n int, alpha F, add bool) {
	if k == 1 && add {
		axpy(n, alpha**a, elementPtr(b, *off), c)
		return
	}
	if k == 1 {
		scale(n, alpha**a, elementPtr(b, *off), c)
		return
	}
	var room [portableLanes]F
	sums, begin := room[:n], unsafe.Slice(off, k)
	l := k % 4
	for i, row := range begin[:l] {
		factor := *elementPtr(a, i*csa)
		for j, v := range unsafe.Slice(elementPtr(b, row), n) {
			sums[j] += factor * v
		}
	}
	for ; l < k; l += 4 {
		a0, a1, a2, a3 := *elementPtr(a, l*csa), *elementPtr(a, (l+1)*csa), *elementPtr(a, (l+2)*csa),
			*elementPtr(a, (l+3)*csa)
		b0, b1 := unsafe.Slice(elementPtr(b, begin[l]), n), unsafe.Slice(elementPtr(b, begin[l+1]), n)
		b2, b3 := unsafe.Slice(elementPtr(b, begin[l+2]), n), unsafe.Slice(elementPtr(b, begin[l+3]), n)
		for j, sum := range sums {
			sums[j] = sum + a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
		}
	}
	to := unsafe.Slice(c, n)
	for j, sum := range sums {
		if sum *= alpha; add {
			sum += to[j]
		}
		to[j] = sum
	}
}

func copyRows[F Float](rows, n int, src *F, lds int, dst *F, ldd int) {
	for r := range rows {
		copy(unsafe.Slice(elementPtr(dst, r*ldd), n), unsafe.Slice(elementPtr(src, r*lds), n))
	}
}

func addRows[F Float](rows, n int, src *F, lds int, dst *F, ldd int) {
	for r := range rows {
		to := unsafe.Slice(elementPtr(dst, r*ldd), n)
		for i, v := range unsafe.Slice(elementPtr(src, r*lds), n) {
			to[i] += v
		}
	}
}

func transpose[F Float](rows, cols int, src *F, off *int, dst *F, ldd int) {
	for i := range rows {
		for j, v := range unsafe.Slice(elementPtr(src, *elementPtr(off, i)), cols) {
			*elementPtr(dst, j*ldd+i) = v
		}
	}
}

// poolPairs is the loop pool in plain Go. It selects without branches, because the position of
// the maximum is unpredictable.
func poolPairs[F Float](rows, n int, x *F, w int, y *F, idx *int32, base int) {
	for r := range rows {
		window := unsafe.Slice(elementPtr(x, 2*r*w), w+2*n)
		dst, where := unsafe.Slice(elementPtr(y, r*n), n), unsafe.Slice(elementPtr(idx, r*n), n)
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

// bit returns 1 for true and 0 for false. The compiler emits a SETcc instruction instead of a
// branch.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unpoolPairs[F Float](rows, n int, dy *F, idx *int32, dx *F, w int, base int) {
	for r := range rows {
		window := unsafe.Slice(elementPtr(dx, 2*r*w), w+2*n)
		clear(window[:2*n])
		clear(window[w:])
		for i, v := range unsafe.Slice(elementPtr(dy, r*n), n) {
			window[int(*elementPtr(idx, r*n+i))-base-2*r*w] = v
		}
	}
}
