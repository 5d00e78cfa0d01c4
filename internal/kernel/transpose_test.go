package kernel_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

func checkTranspose[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	rows, cols := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(0, 70).Draw(t, "cols")
	lds, ldd := cols+rapid.IntRange(0, 3).Draw(t, "lds"), rows+rapid.IntRange(0, 3).Draw(t, "ldd")
	src, dst := drawNumbers[F](t, "src", rows*lds), noise[F](3, cols*ldd)
	before := append([]F{}, dst...)
	kernel.Transpose(rows, cols, src, lds, dst, ldd)
	for j := range cols {
		for i := range ldd {
			want := before[j*ldd+i]
			if i < rows {
				want = src[i*lds+j]
			}
			if got := dst[j*ldd+i]; got != want && !(got != got && want != want) {
				t.Fatalf("(%d, %d) is %v, want %v", j, i, got, want)
			}
		}
	}
}

func TestTranspose_ExchangesRowsAndColumns(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkTranspose[float32]))
	t.Run("float64", rapid.MakeCheck(checkTranspose[float64]))
}

func TestTransposeBytesAndPairs_ExchangeRowsAndColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(0, 40).Draw(t, "cols")
		size, gap := rapid.IntRange(1, 2).Draw(t, "size"), rapid.IntRange(0, 3).Draw(t, "gap")
		lds, ldd := cols+gap, rows+gap
		src, dst := make([]byte, size*rows*lds), make([]byte, size*cols*ldd)
		for i := range src {
			src[i] = byte(i*7919 + i>>8)
		}
		do := kernel.TransposeBytes
		if size == 2 {
			do = kernel.TransposePairs
		}
		do(rows, cols, src, lds, dst, ldd)
		for i := range dst {
			j, k := i/size/ldd, i/size%ldd
			want := byte(0)
			if k < rows {
				want = src[size*(k*lds+j)+i%size]
			}
			if dst[i] != want {
				t.Fatalf("(%d, %d) of %d×%d is %v, want %v", j, k, rows, cols, dst[i], want)
			}
		}
	})
}

func checkByOne[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	n := rapid.IntRange(0, 150).Draw(t, "n")
	x, alpha := drawNumbers[F](t, "x", n), F(rapid.Float64Range(-2, 2).Draw(t, "alpha"))
	sum := widen(drawNumbers[F](t, "sum", n))
	scaled, shifted, sums := make([]float64, n), make([]float64, n), append([]float64{}, sum...)
	for i, v := range x {
		scaled[i], shifted[i] = float64(alpha*v), float64(alpha+v)
		sums[i] += float64(v)
	}
	got := make([]F, n)
	kernel.ScaleTo(alpha, x, got)
	near(t, "ScaleTo", got, scaled, 0)
	kernel.Shift(alpha, x, got)
	near(t, "Shift", got, shifted, 0)
	kernel.ColumnSums(1, n, x, n, sum, false)
	near(t, "ColumnSums", sum, sums, 0)
}

func TestByOne_IsWhatTheElementsSay(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkByOne[float32]))
	t.Run("float64", rapid.MakeCheck(checkByOne[float64]))
}

func TestGather_TakesWhatIsAtThePlaces(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for n := range 40 {
			src, places := noise[float32](5, 1000), make([]int, n)
			for i := range places {
				places[i] = (i*7919 + n) % len(src)
			}
			dst := make([]float32, n+1)
			dst[n] = 7
			kernel.Gather(places, memory(src), memory(dst))
			for i, p := range places {
				if dst[i] != src[p] {
					t.Fatalf("%d of %d is %v, want %v", i, n, dst[i], src[p])
				}
			}
			if dst[n] != 7 {
				t.Fatalf("wrote behind %d", n)
			}
		}
	})
}
