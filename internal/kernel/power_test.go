package kernel_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The powers of testdata/power.txt were computed with 400 bits by mpmath 1.3.0.
func TestPowerOf_IsWithinAUnitInTheLastPlace(t *testing.T) {
	f, err := os.Open("testdata/power.txt")
	testutil.NoError(t, err)
	defer f.Close()
	worst, lines := int64(0), 0
	for in := bufio.NewScanner(f); in.Scan(); lines++ {
		var text [3]string
		_, err := fmt.Sscan(in.Text(), &text[0], &text[1], &text[2])
		testutil.NoError(t, err)
		var v [3]float64
		for i, s := range text {
			v[i], err = strconv.ParseFloat(s, 64)
			testutil.NoError(t, err)
		}
		off := unitsApart(kernel.PowerOf(v[0], v[1]), v[2])
		if worst = max(worst, off); off > 1 {
			t.Errorf("%v to the power of %v is %v, want %v: %d units off", v[0], v[1],
				kernel.PowerOf(v[0], v[1]), v[2], off)
		}
	}
	if lines < 1000 {
		t.Errorf("%d powers", lines)
	}
	t.Logf("%d powers, at most %d units off", lines, worst)
}

// unitsApart returns how many float64s a is away from b, which has the same sign.
func unitsApart(a, b float64) int64 {
	if a != a || b != b || math.Signbit(a) != math.Signbit(b) {
		return math.MaxInt64
	}
	off := int64(math.Float64bits(a) - math.Float64bits(b))
	return max(off, -off)
}

func TestPowerOf_OfSpecialNumbersIsThatOfPackageMath(t *testing.T) {
	numbers := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e300, -1e300, 1e-300, 5e-324,
		-5e-324, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, x := range numbers {
		for _, y := range numbers {
			got, want := kernel.PowerOf(x, y), math.Pow(x, y)
			if unitsApart(got, want) > 2 && !(got != got && want != want) && (x == 0 || math.Abs(x) > 1e-307) {
				t.Errorf("%v to the power of %v is %v, want %v", x, y, got, want)
			}
		}
	}
}

func BenchmarkPowerOf(b *testing.B) {
	sum, x := 0.0, 1.1
	for range b.N {
		sum += kernel.PowerOf(x, 17.3)
	}
	if sum == 0 {
		b.Fatal(sum)
	}
}

func BenchmarkPowerOf_Math(b *testing.B) {
	sum, x := 0.0, 1.1
	for range b.N {
		sum += math.Pow(x, 17.3)
	}
	if sum == 0 {
		b.Fatal(sum)
	}
}
