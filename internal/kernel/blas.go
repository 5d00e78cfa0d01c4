package kernel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// multiplier is a matrix product on the calling goroutine, as [Gemm] describes it, with no dimension of 0. It starts no goroutine.
type multiplier interface {
	sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
	dgemm(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int)
}

// product is the multiplier of this machine.
var product multiplier = portable{}

// gemm is Gemm on the calling goroutine.
func gemm[F Float](transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, ldc int) {
	if single[F]() {
		product.sgemm(transA, transB, m, n, k, float32(alpha), reinterpret[float32](a), lda,
			reinterpret[float32](b), ldb, float32(beta), reinterpret[float32](c), ldc)
		return
	}
	product.dgemm(transA, transB, m, n, k, float64(alpha), reinterpret[float64](a), lda,
		reinterpret[float64](b), ldb, float64(beta), reinterpret[float64](c), ldc)
}

// portable is gonum's product. Gonum starts goroutines by itself once c is four of its 64×64 blocks or more, so
// it is fed tiles of at most three.
type portable struct{}

const (
	tileRows = 64
	tileCols = 3 * 64
	tileDeep = 256 // of k: what is read of b for one tile stays in the second-level cache
)

func (portable) sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	for t := range tiles(m, n, k) {
		gonum.Implementation{}.Sgemm(flag(transA), flag(transB), t.m, t.n, t.k, alpha,
			a[corner(transA, t.i, t.l, lda):], lda, b[corner(transB, t.l, t.j, ldb):], ldb, first(t.l, beta), c[t.i*ldc+t.j:], ldc)
	}
}

func (portable) dgemm(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	for t := range tiles(m, n, k) {
		gonum.Implementation{}.Dgemm(flag(transA), flag(transB), t.m, t.n, t.k, alpha,
			a[corner(transA, t.i, t.l, lda):], lda, b[corner(transB, t.l, t.j, ldb):], ldb, first(t.l, beta), c[t.i*ldc+t.j:], ldc)
	}
}

// tile is the part of a product that adds op(a)[i:i+m, l:l+k]·op(b)[l:l+k, j:j+n] to c[i:i+m, j:j+n].
type tile struct{ i, j, l, m, n, k int }

// tiles yields the tiles of a product; those of one part of c follow each other, from l = 0 on.
func tiles(m, n, k int) func(yield func(tile) bool) {
	return func(yield func(tile) bool) {
		for i := 0; i < m; i += tileRows {
			for j := 0; j < n; j += tileCols {
				for l := 0; l < k; l += tileDeep {
					if !yield(tile{i, j, l, min(tileRows, m-i), min(tileCols, n-j), min(tileDeep, k-l)}) {
						return
					}
				}
			}
		}
	}
}

// first is beta for the first tile of a part of c, and 1 for those that add to it.
func first[F Float](l int, beta F) F {
	if l == 0 {
		return beta
	}
	return 1
}

// corner is where element (i, j) of op(x) lies in x.
func corner(trans bool, i, j, ld int) int {
	if trans {
		return j*ld + i
	}
	return i*ld + j
}

func flag(trans bool) blas.Transpose {
	if trans {
		return blas.Trans
	}
	return blas.NoTrans
}
