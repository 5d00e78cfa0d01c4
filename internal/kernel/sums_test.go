package kernel_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// A summed is what sums of numbers are compared with: the exact sum, that of the magnitudes, and by
// how much of the second one the first may be missed.
type summed struct{ sum, magnitude, bound float64 }

// exactly adds numbers without rounding. What is not finite, it adds as it is.
func exactly[F kernel.Float](x []F) summed {
	s := summed{bound: 600 * 0x1p-53}
	var f F
	if _, ok := any(f).(float32); ok {
		s.bound = 0x1.0001p-23
	}
	sum, finite := new(big.Float).SetPrec(2000), true
	for _, v := range x {
		v := float64(v)
		s.magnitude += math.Abs(v)
		if finite = finite && v-v == 0; finite {
			sum.Add(sum, big.NewFloat(v))
		}
		s.sum += v
	}
	if finite {
		s.sum, _ = sum.Float64()
	}
	return s
}

func (s summed) check(t rapid.TB, what string, got float64) {
	t.Helper()
	if got == s.sum || got != got && s.sum != s.sum {
		return
	}
	if !(math.Abs(got-s.sum) <= s.bound*s.magnitude) {
		t.Fatalf("%s is %v, want %v: off by %.3g of the magnitudes, which may be %.3g", what, got, s.sum,
			math.Abs(got-s.sum)/s.magnitude, s.bound)
	}
}

// drawAny draws numbers of all sizes, of which two may be too large together.
func drawAny[F kernel.Float](t *rapid.T, name string, n int) []F {
	x := drawNumbers[F](t, name, n)
	scale := rapid.SampledFrom([]float64{1, 1e-45, 1e-38, 3e38, 1e30}).Draw(t, name+" scale")
	for i := range x {
		if rapid.IntRange(0, 3).Draw(t, "scaled") > 0 {
			x[i] *= F(scale)
		}
	}
	return x
}

func checkSums[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	rows, n := rapid.IntRange(0, 9).Draw(t, "rows"), rapid.IntRange(0, 200).Draw(t, "n")
	x := drawAny[F](t, "x", rows*n)
	exactly(x).check(t, "the sum", kernel.Sum64(x))
	sums := append(noise[float64](1, rows), 7)
	kernel.RowSums(n, x, sums[:rows])
	for r, sum := range sums[:rows] {
		exactly(x[r*n:][:n]).check(t, "the sum of a row", sum)
	}
	if sums[rows] != 7 {
		t.Fatal("RowSums wrote behind the sums")
	}
	if n == 0 {
		return
	}
	cols := rapid.IntRange(1, n).Draw(t, "cols")
	columns := noise[float64](2, cols)
	begin := slices.Clone(columns)
	if kernel.ColumnSums(rows, cols, x, n, columns, false); !kernel.Finite(columns) {
		columns = slices.Clone(begin)
		kernel.ColumnSums(rows, cols, x, n, columns, true)
	}
	for c, sum := range columns {
		column := []F{}
		for r := range rows {
			column = append(column, x[r*n+c])
		}
		want := exactly(column)
		want.sum, want.magnitude = want.sum+begin[c], want.magnitude+1 // 1 for what it began with
		want.check(t, "the sum of a column", sum)
	}
}

func TestSums_AreOffByLessThanTheySay(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkSums[float32]))
	t.Run("float64", rapid.MakeCheck(checkSums[float64]))
}

func checkLongSums[F kernel.Float](t *testing.T) {
	for _, n := range []int{4095, 4096, 4097, 3*4096 + 1, 1<<16 + 17, 1<<19 + 3} {
		x := noise[F](uint64(n), n)
		for i := range x {
			x[i] += 1 // all of one sign, so that what is lost adds up
		}
		want := exactly(x)
		want.check(t, "the sum", kernel.Sum64(x))
		sums := make([]float64, 1)
		kernel.RowSums(n, x, sums)
		want.check(t, "the sum of a row", sums[0])
		columns := make([]float64, 1)
		kernel.ColumnSums(min(n, 4096), 1, x, 1, columns, false)
		short := exactly(x[:min(n, 4096)])
		short.bound = max(short.bound, 4096*0x1p-53) // columns of float64 are added row by row
		short.check(t, "the sum of a column", columns[0])
		wide := make([]float64, n)
		kernel.ColumnSums(1, n, x, n, wide, false)
		for i, sum := range wide {
			if sum != float64(x[i]) {
				t.Fatalf("the sum of column %d, of one number, is %v, want %v", i, sum, x[i])
			}
		}
	}
}

func TestSums_OfManyNumbers(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		t.Run("float32", checkLongSums[float32])
		t.Run("float64", checkLongSums[float64])
	})
}

// Numbers that are too large together in single precision have a sum all the same.
func TestSums_OfNumbersThatAreTooLargeTogether(t *testing.T) {
	const large = math.MaxFloat32
	onEachLevel(t, func(t *testing.T) {
		for _, n := range []int{4, 64, 100, 5000} {
			x := make([]float32, 4*n)
			for i := range x {
				x[i] = large
				if i/n >= 2 { // the second half of all rows and of all columns
					x[i] = -large
				}
			}
			if got := kernel.Sum64(x); got != 0 {
				t.Errorf("the sum of %d numbers is %v", len(x), got)
			}
			rows := make([]float64, 4)
			kernel.RowSums(n, x, rows)
			for r, got := range rows {
				want := float64(n) * large
				if r >= 2 {
					want = -want
				}
				if math.Abs(got-want) > 1e-9*math.Abs(want) {
					t.Errorf("the sum of row %d of %d is %v, want %v", r, n, got, want)
				}
			}
			columns := make([]float64, n)
			kernel.ColumnSums(2, n, x, n, columns, true)
			kernel.ColumnSums(2, n, x[2*n:], n, columns, true)
			for _, got := range columns {
				if got != 0 {
					t.Fatalf("the sum of a column is %v", got)
				}
			}
		}
	})
}

func TestSums_AreTheSameAgain(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		x := noise[float32](3, 1<<16)
		for skip := range 20 { // whatever the alignment
			y := append(make([]float32, skip), x...)[skip:]
			if a, b := kernel.Sum64(x), kernel.Sum64(y); a != b {
				t.Fatalf("moved by %d, the sum is %v, not %v", skip, b, a)
			}
		}
	})
}

func checkColumnExtremes[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	rows, cols := rapid.IntRange(0, 12).Draw(t, "rows"), rapid.IntRange(0, 150).Draw(t, "cols")
	ld := cols + rapid.IntRange(0, 3).Draw(t, "ld")
	x, least := drawAny[F](t, "x", rows*ld), drawNumbers[F](t, "begin", cols)
	most := slices.Clone(least)
	wantLeast, wantMost := slices.Clone(least), slices.Clone(least)
	for r := range rows {
		for c := range cols {
			wantLeast[c], wantMost[c] = min(wantLeast[c], x[r*ld+c]), max(wantMost[c], x[r*ld+c])
		}
	}
	kernel.LargestColumns(rows, cols, x, ld, most)
	near(t, "LargestColumns", most, widen(wantMost), 0)
	kernel.SmallestColumns(rows, cols, x, ld, least)
	near(t, "SmallestColumns", least, widen(wantLeast), 0)
}

func TestColumnExtremes_AreThoseOfTheColumns(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkColumnExtremes[float32]))
	t.Run("float64", rapid.MakeCheck(checkColumnExtremes[float64]))
}

func checkExtremes[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	x := drawAny[F](t, "x", rapid.IntRange(1, 300).Draw(t, "n"))
	near(t, "Largest", []F{kernel.Largest(x)}, []float64{slices.Max(widen(x))}, 0)
	near(t, "Smallest", []F{kernel.Smallest(x)}, []float64{slices.Min(widen(x))}, 0)
	i := rapid.IntRange(0, len(x)-1).Draw(t, "at")
	x[i] = F(math.NaN()) // wherever it is
	if v, w := kernel.Largest(x), kernel.Smallest(x); v == v || w == w {
		t.Fatalf("with a NaN at %d of %d, the largest is %v and the smallest %v", i, len(x), v, w)
	}
}

func TestExtremes_AreThoseOfAllNumbers(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkExtremes[float32]))
	t.Run("float64", rapid.MakeCheck(checkExtremes[float64]))
}
