package kernel

import (
	"cmp"
	"sync"
)

// Gemm computes c = alpha·op(a)·op(b) + beta·c, where op transposes if the flag is set. op(a) is
// m×k, op(b) is k×n and c is m×n; all are row-major, and lda, ldb and ldc are the distances between
// rows. With beta = 0, c is only written, so it may contain NaN. Gemm panics if a slice is too
// short.
//
// c is divided between [Threads] goroutines. The result does not depend on their number.
func Gemm[F Float](transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	requireSize("a", a, transA, m, k, lda)
	requireSize("b", b, transB, k, n, ldb)
	requireSize("c", c, false, m, n, ldc)
	if beta != 1 && (beta != 0 || k == 0) {
		scaleRows(m, n, beta, c, ldc)
	}
	if k == 0 {
		return
	}
	if parts := workerCount(max(m, n), m*n*k); parts > 1 {
		newGemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta != 0, c, ldc).split(parts)
	} else {
		serialGemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta != 0, c, ldc)
	}
}

func newGemm[F Float](transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, add bool,
	c []F, ldc int) gemm[F] {
	down, right := lda, 1 // strides of op(a)
	if transA {
		down, right = 1, lda
	}
	return gemm[F]{loopsFor[F](), transB, k, alpha, operand[F]{data: a, row: down, col: right}, b, ldb, add, c,
		ldc, m, n, factor[F]{}}
}

// serialGemm is [Gemm] on the calling goroutine with beta 0, or 1 if add is set. No dimension
// may be zero. It does not check the sizes of the slices.
func serialGemm[F Float](transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, add bool,
	c []F, ldc int) {
	g := newGemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, add, c, ldc)
	if m*n*k <= g.tiny {
		plainProduct(m, n, k, alpha, a, g.a.row, g.a.col, b, ldb, transB, add, c, ldc)
		return
	}
	g.computeBlock(0, m, 0, n)
}

// requireSize panics if x is too short for op(x) of rows×cols, or if ld is less than the length
// of a row of x. It does not panic if rows or cols is 0. name names x in the message.
func requireSize[F Float](name string, x []F, trans bool, rows, cols, ld int) {
	if trans {
		rows, cols = cols, rows
	}
	if rows > 0 && cols > 0 && (ld < cols || len(x) < (rows-1)*ld+cols) {
		panic("kernel: Gemm: " + name + " is shorter than its dimensions require, or its rows overlap")
	}
}

// scaleRows multiplies the m×n matrix c by beta. If beta is 0, it overwrites c with zeros, even if
// c contains NaN.
func scaleRows[F Float](m, n int, beta F, c []F, ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		if beta == 0 {
			clear(row)
		} else {
			Scale(beta, row)
		}
	}
}

// gemm is a product in progress. Parts of its result may be computed concurrently.
type gemm[F Float] struct {
	*loops[F]
	transB bool
	k      int
	alpha  F
	a      operand[F]
	b      []F
	ldb    int
	add    bool
	c      []F
	ldc    int
	m, n   int // size of the whole result

	ready factor[F] // b in packed form, if it has rows
}

// Block sizes of a large product. A panel of b of blockDeep rows and a tile's width of columns is
// meant to stay in the first-level cache, blockRows rows of a in the second, blockCols columns of b
// in the third. For this scheme see Goto and van de Geijn, Anatomy of High-Performance Matrix
// Multiplication, 2008, https://doi.org/10.1145/1356052.1356053.
const (
	blockDeep = 256
	blockRows = 84
	blockCols = 1024
)

// split computes the whole result on parts goroutines, between which it divides the larger
// dimension.
func (g gemm[F]) split(parts int) {
	if g.m >= g.n {
		runRanges(parts, g.m, func(_, lo, hi int) { g.computeBlock(lo, hi, 0, g.n) })
	} else {
		runRanges(parts, g.n, func(_, lo, hi int) { g.computeBlock(0, g.m, lo, hi) })
	}
}

var spaces = sync.Pool{New: func() any { return new(Scratch) }}

// computeBlock computes rows i0 to i1-1 and columns j0 to j1-1 of the result. It may be called
// concurrently for disjoint blocks.
func (g *gemm[F]) computeBlock(i0, i1, j0, j1 int) {
	if g.ready.k == 0 && g.isNarrow() {
		g.computeDots(i0, i1, j0, j1)
		return
	}
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	off := borrowSlice[int](space, offsets, min(g.k, blockDeep))
	packA, packB := g.packedFactors()
	for j := j0; j < j1; j += blockCols {
		n := min(blockCols, j1-j)
		for l := 0; l < g.k; l += blockDeep {
			k := min(blockDeep, g.k-l)
			width, deep := 0, k // of the panels
			b := g.b[min(l*g.ldb+j, len(g.b)):]
			switch {
			case g.ready.k > 0:
				b, width, deep = g.ready.packedBlock(l, j), g.ready.width, min(blockDeep, g.ready.k-l)
			case packB:
				width = g.panelWidthFor(n, k)
				b = g.packPanels(space, borrowSlice[F](space, seconds, roundUpTo(n, width)*k), width, k, l, j, n)
			}
			fillMultiples(off[:k], cmp.Or(width, g.ldb))
			for i := i0; i < i1; i += blockRows {
				m := min(blockRows, i1-i)
				a := operand[F]{data: g.a.data[i*g.a.row+l*g.a.col:], row: g.a.row, col: g.a.col}
				if packA {
					a = g.packRows(space, &a, m, k)
				}
				g.multiplyPanels(width, deep, m, n, k, &a, b, off[:k], g.add || l > 0, g.c[i*g.ldc+j:])
			}
		}
	}
}

// multiplyPanels overwrites an m×n block of c with the product of a (m×k) and the panels of b,
// or adds to it if add is set. If width is not 0, b is packed into consecutive panels of this
// width and of deep rows, and otherwise row l of b begins at b[off[l]].
func (g *gemm[F]) multiplyPanels(width, deep, m, n, k int, a *operand[F], b []F, off []int, add bool, c []F) {
	if width == 0 {
		g.multiplyPacked(m, n, k, g.alpha, a, b, off, add, c, g.ldc)
		return
	}
	for j := 0; j < n; j += width {
		g.multiplyPacked(m, min(width, n-j), k, g.alpha, a, b[j*deep:], off, add, c[j:], g.ldc)
	}
}
