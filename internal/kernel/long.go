package kernel

import "slices"

// each64 is how many integers the loops over integers of 64 bits take at a time.
const each64 = 32

// SumLongs is the sum of x, which wraps around.
func SumLongs(x []int64) (sum int64) {
	x = foldLongs(current.sumLongs, x, func(v int64) { sum += v })
	var a, b, c, d int64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
	}
	for _, v := range x {
		sum += v
	}
	return sum + (a + b) + (c + d)
}

// LargestLong is the largest element of x, which has one, and SmallestLong the smallest.
func LargestLong(x []int64) int64 {
	best := x[0]
	if x = foldLongs(current.largestLong, x, func(v int64) { best = max(best, v) }); len(x) > 0 {
		return max(best, slices.Max(x))
	}
	return best
}

// SmallestLong is the smallest element of x.
func SmallestLong(x []int64) int64 {
	best := x[0]
	if x = foldLongs(current.smallestLong, x, func(v int64) { best = min(best, v) }); len(x) > 0 {
		return min(best, slices.Min(x))
	}
	return best
}

// foldLongs gives to what do makes of pieces of x, and returns the rest.
func foldLongs(do func(n int, x *int64) int64, x []int64, to func(v int64)) []int64 {
	whole := len(x) &^ (each64 - 1)
	if do == nil || whole == 0 {
		return x
	}
	for i, n := range short(whole) {
		to(do(n, &x[i]))
	}
	return x[whole:]
}

// InRange reports whether all elements of x are from 0 to size-1: no sign of one, or of what is
// left up to the last one, is set.
func InRange(x []int64, size int) bool {
	signs, last := int64(0), size-1
	if whole := len(x) &^ (each64 - 1); current.beyond != nil && whole > 0 {
		for i, n := range short(whole) {
			signs |= current.beyond(n, last, &x[i])
		}
		x = x[whole:]
	}
	for _, k := range x {
		signs |= k | (int64(last) - k)
	}
	return signs >= 0
}
