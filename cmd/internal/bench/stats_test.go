package bench_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
)

func TestMedianIsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 1, 1e9}, 1},
	} {
		if got := bench.Median(c.samples); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.samples, got, c.want)
		}
	}
	if !math.IsNaN(bench.Median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestQuantileLeavesTheSamplesInTheirOrder(t *testing.T) {
	samples := []float64{3, 1, 2}
	bench.Quantile(samples, 0.9)
	if samples[0] != 3 || samples[1] != 1 {
		t.Errorf("samples are now %v", samples)
	}
}

func TestSpreadIsTheMiddleFourFifthsOverTheMedian(t *testing.T) {
	var samples []float64
	for i := range 101 {
		samples = append(samples, float64(i)+50) // 50 to 150: p10 60, p90 140
	}
	if got := bench.Spread(samples); math.Abs(got-0.8) > 1e-12 {
		t.Errorf("spread is %v, want 0.8", got)
	}
	if got := bench.Spread([]float64{5}); got != 0 {
		t.Errorf("spread of one sample is %v", got)
	}
	if got := bench.Spread([]float64{0, 0}); got != 0 {
		t.Errorf("spread of zeros is %v", got)
	}
}

func TestQuantityHasAUnitThatPeopleRead(t *testing.T) {
	for _, c := range []struct {
		v    float64
		u    bench.Unit
		want string
	}{
		{0, bench.Nanoseconds, ""},
		{4.812, bench.Nanoseconds, "4.81 ns"},
		{41_800, bench.Nanoseconds, "41.8 µs"},
		{3.2e12, bench.Nanoseconds, "3200 s"},
		{5_400_000, bench.PerSecond, "5.40 M/s"},
		{0.0167, bench.PerSecond, "0.02 /s"},
		{15 << 20, bench.Bytes, "15.0 MiB"},
	} {
		if got := bench.Quantity(c.v, c.u); got != c.want {
			t.Errorf("%v %s reads %q, want %q", c.v, c.u, got, c.want)
		}
	}
}
