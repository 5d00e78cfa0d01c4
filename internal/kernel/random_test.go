package kernel_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A seed means the same numbers on all machines, so what makes numbers of random bits has the same
// bits on all levels, of all lengths.
func TestRandomNumbers_HaveTheSameBitsOnAllLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	bits := make([]uint64, 2*70)
	for i := range bits {
		bits[i] = r.Uint64()
	}
	const middle = 1 << 63
	copy(bits[20:], []uint64{middle, middle, 0, 0, ^uint64(0), ^uint64(0), middle, 0}) // the centre, corners, an edge
	var want [][]float64
	onEachLevel(t, func(t *testing.T) {
		var got [][]float64
		for n := range 71 {
			x, y, s, to := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, 2*n)
			for _, highest := range []int{8, 24, 53} {
				kernel.Fractions(bits[:n], highest, -0.1, 0.3, x)
				got = append(got, slices.Clone(x))
			}
			count := kernel.Points(bits[:2*n], x, y, s)
			got = append(got, slices.Clone(x[:count]), slices.Clone(y[:count]), slices.Clone(s[:count]))
			kernel.Pairs(0.1, 0.3, x[:count], y[:count], s[:count], to[:2*count])
			got = append(got, slices.Clone(to[:2*count]))
			if count > 0 {
				kernel.Pairs(0.1, 0.3, x[:count], y[:count], s[:count], to[:2*count-1])
				got = append(got, to[:2*count-1])
			}
		}
		if want == nil {
			want = got
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Fatalf("list %d is %v, and %v on another level", i, got[i], want[i])
			}
		}
	})
}
