package devicetest_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/test/devicetest"
)

func TestDevice_ComputesAsTheHost(t *testing.T) { devicetest.Conform(t, devicetest.New("test:0")) }

// The numbers are those of the authors' kat_vectors.
func TestPhilox_HasTheNumbersOfItsPaper(t *testing.T) {
	const all = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := devicetest.Philox(c.counter, c.key); got != c.want {
			t.Errorf("%x with key %x: %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

// Of 400,000 numbers the means of what is checked are within five standard deviations of what they
// are for the distribution.
func TestNarrow_HasItsDistribution(t *testing.T) {
	const n = 400_000
	normal := device.Sequence{Kind: device.RandomNormal, Key: 3, B: 1}
	uniform := device.Sequence{Kind: device.RandomUniform, Key: 4, B: 1, Bits: 24}
	kept := device.Sequence{Kind: device.RandomBernoulli, Key: 5, A: 0.3}
	power := func(s device.Sequence, k float64) func(i uint64) float64 {
		return func(i uint64) float64 { return math.Pow(devicetest.Narrow(s, i), k) }
	}
	beside := func(s device.Sequence, d uint64) func(i uint64) float64 {
		return func(i uint64) float64 { return devicetest.Narrow(s, i) * devicetest.Narrow(s, i+d) }
	}
	for _, c := range []struct {
		name           string
		of             func(i uint64) float64
		mean, variance float64
	}{
		{"x", power(normal, 1), 0, 1}, {"x²", power(normal, 2), 1, 2}, {"x³", power(normal, 3), 0, 15},
		{"x⁴", power(normal, 4), 3, 96}, {"x next to x", beside(normal, 1), 0, 1},
		{"x beside x", beside(normal, 2), 0, 1}, {"x a counter on", beside(normal, 4), 0, 1},
		{"u", power(uniform, 1), 1. / 2, 1. / 12}, {"u²", power(uniform, 2), 1. / 3, 4. / 45},
		{"u next to u", beside(uniform, 1), 1. / 4, 7. / 144 * 2}, {"kept", power(kept, 1), 0.3, 0.21},
		{"kept beside kept", beside(kept, 1), 0.09, 0.09 * 0.91 * 2},
	} {
		sum := 0.
		for i := range uint64(n) {
			sum += c.of(i)
		}
		if off := sum/n - c.mean; math.Abs(off) > 5*math.Sqrt(c.variance/n) {
			t.Errorf("the mean of %s is %v, want %v", c.name, sum/n, c.mean)
		}
	}
}
