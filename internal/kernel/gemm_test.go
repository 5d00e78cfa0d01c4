package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"pgregory.net/rapid"
)

// matrix is a matrix inside a larger slice.
type matrix[F kernel.Float] struct {
	trans bool
	ld    int
	data  []F
}

// drawMatrix draws op(x) of rows×cols.
func drawMatrix[F kernel.Float](t *rapid.T, name string, rows, cols int) matrix[F] {
	m := matrix[F]{trans: rapid.Bool().Draw(t, name+" transposed")}
	if m.trans {
		rows, cols = cols, rows
	}
	m.ld = max(1, cols) + rapid.IntRange(0, 3).Draw(t, name+" gap")
	if rows > 0 && cols > 0 {
		m.data = drawNumbers[F](t, name, (rows-1)*m.ld+cols)
	}
	return m
}

func (m matrix[F]) at(i, j int) float64 {
	if m.trans {
		i, j = j, i
	}
	return float64(m.data[i*m.ld+j])
}

func checkGemm[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	size := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(60, 70), rapid.IntRange(190, 260))
	m, n, k := size.Draw(t, "m"), size.Draw(t, "n"),
		rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(250, 260)).Draw(t, "k")
	factor := rapid.SampledFrom([]F{0, 1, -2, 0.5})
	alpha, beta := factor.Draw(t, "alpha"), factor.Draw(t, "beta")
	a, b := drawMatrix[F](t, "a", m, k), drawMatrix[F](t, "b", k, n)
	ldc := max(1, n) + rapid.IntRange(0, 3).Draw(t, "c gap")
	c := noise[F](3, m*ldc)
	want := widen(c)
	for i := range m {
		for j := range n {
			var sum float64
			for l := range k {
				sum += a.at(i, l) * b.at(l, j)
			}
			want[i*ldc+j] = float64(alpha)*sum + float64(beta)*want[i*ldc+j]
		}
	}
	kernel.Gemm(a.trans, b.trans, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, c, ldc)
	near(t, "c", c, want, 20)
}

func TestGemmIsTheSumOfProductsForEveryLayout(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkGemm[float32]))
	t.Run("float64", rapid.MakeCheck(checkGemm[float64]))
}

// Large products, in blocks, against gonum's.
func TestGemmIsGonums(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for _, s := range []struct{ m, n, k int }{
			{1, 500, 300}, {500, 1, 300}, {1, 1, kernel.Deepest + 5}, {3, 40, 2 * kernel.BlockDeep},
			{170, 33, kernel.BlockDeep + 1}, {350, 1100, 70},
		} {
			for layout := range 4 {
				transA, transB := layout&1 == 1, layout&2 == 2
				a, b := noise[float64](1, s.m*s.k), noise[float64](2, s.k*s.n)
				lda, ldb, flagA, flagB := s.k, s.n, blas.NoTrans, blas.NoTrans
				if transA {
					lda, flagA = s.m, blas.Trans
				}
				if transB {
					ldb, flagB = s.k, blas.Trans
				}
				got, want := noise[float64](3, s.m*s.n), noise[float64](3, s.m*s.n)
				kernel.Gemm(transA, transB, s.m, s.n, s.k, 0.5, a, lda, b, ldb, -2, got, s.n)
				gonum.Implementation{}.Dgemm(flagA, flagB, s.m, s.n, s.k, 0.5, a, lda, b, ldb, -2, want, s.n)
				near(t, "c", got, want, 500)
				single := narrow(noise[float64](3, s.m*s.n))
				kernel.Gemm(transA, transB, s.m, s.n, s.k, 0.5, narrow(a), lda, narrow(b), ldb, -2, single, s.n)
				near(t, "c in float32", single, want, 200)
			}
		}
	})
}

// narrow is x in single precision.
func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func TestGemmWithBetaZeroDoesNotReadTheResult(t *testing.T) {
	c := []float64{math.NaN(), math.Inf(1)}
	kernel.Gemm(false, false, 1, 2, 1, 1, []float64{2}, 1, []float64{3, 4}, 2, 0, c, 2)
	if c[0] != 6 || c[1] != 8 {
		t.Fatalf("c = %v, want [6 8]", c)
	}
}

func TestGemmOfAShortSlicePanics(t *testing.T) {
	if panics(func() {
		kernel.Gemm(false, false, 2, 2, 2, 1, make([]float32, 3), 2, make([]float32, 4), 2, 0, make([]float32, 4), 2)
	}) == nil {
		t.Fatal("a matrix that is too short was accepted")
	}
}
