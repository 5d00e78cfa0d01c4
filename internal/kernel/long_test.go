package kernel_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// Folds of integers of 64 bits see each of them, and so do reversals and halves of rows.
func TestLongs_OfAllLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		x := rapid.SliceOfN(rapid.Int64(), 1, 200).Draw(t, "x")
		var sum int64
		for _, v := range x {
			sum += v
		}
		if got := kernel.SumLongs(x); got != sum {
			t.Fatalf("the sum of %v is %d, want %d", x, got, sum)
		}
		if got := kernel.LargestLong(x); got != slices.Max(x) {
			t.Fatalf("the largest of %v is %d", x, got)
		}
		if got := kernel.SmallestLong(x); got != slices.Min(x) {
			t.Fatalf("the smallest of %v is %d", x, got)
		}
		size := rapid.IntRange(1, 1000).Draw(t, "size")
		for i, v := range x {
			x[i] = int64(uint64(v) % uint64(size))
		}
		if !kernel.InRange(x, size) {
			t.Fatalf("%v are from 0 to %d", x, size-1)
		}
		x[rapid.IntRange(0, len(x)-1).Draw(t, "at")] = rapid.SampledFrom([]int64{-1, int64(size), -1 << 63,
			1<<63 - 1}).Draw(t, "wrong")
		if kernel.InRange(x, size) {
			t.Fatalf("not all of %v are from 0 to %d", x, size-1)
		}
	})
}

func TestProduct_IsInDoublePrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		x := rapid.SliceOfN(rapid.Float32Range(0.5, 2), 0, 200).Draw(t, "x")
		if len(x) > 1 { // single precision has no room for what these make on the way
			x[0], x[len(x)-1] = 1e-42, 1e38
		}
		want := 1.0
		for _, v := range x {
			want *= float64(v)
		}
		got := kernel.Product(x)
		if d := got - want; d > 1e-12*want || d < -1e-12*want {
			t.Fatalf("the product of %v is %v, want %v", x, got, want)
		}
		wide := widen(x)
		if got := kernel.Product(wide); got-want > 1e-12*want || want-got > 1e-12*want {
			t.Fatalf("the product of %v is %v, want %v", wide, got, want)
		}
	})
}

func TestReverseAndEveryOther_OfAllSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		size, n := 1<<rapid.IntRange(0, 4).Draw(t, "log"), rapid.IntRange(0, 200).Draw(t, "n")
		src, dst := make([]byte, size*n), make([]byte, size*n)
		for i := range src {
			src[i] = byte(i*7919 + i>>8)
		}
		for i := range kernel.Reverse(size, dst, src) {
			if want := src[size*(n-1-i/size)+i%size]; dst[i] != want {
				t.Fatalf("byte %d of %d elements of %d, the last one first: %d, want %d", i, n, size, dst[i], want)
			}
		}
		for i := range kernel.EveryOther(size, dst[:(n+1)/2*size], src) {
			if want := src[2*(i/size)*size+i%size]; dst[i] != want {
				t.Fatalf("byte %d of every other of %d elements of %d: %d, want %d", i, n, size, dst[i], want)
			}
		}
	})
}
