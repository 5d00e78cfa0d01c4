package kernel

import "slices"

// each64 is the number of elements per iteration of the loops over 64-bit integers.
const each64 = 32

// SumLongs returns the sum of x, which wraps around on overflow.
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

// LargestLong returns the largest element of x. It panics if x is empty.
func LargestLong(x []int64) int64 {
	best := x[0]
	if x = foldLongs(current.largestLong, x, func(v int64) { best = max(best, v) }); len(x) > 0 {
		return max(best, slices.Max(x))
	}
	return best
}

// SmallestLong returns the smallest element of x. It panics if x is empty.
func SmallestLong(x []int64) int64 {
	best := x[0]
	if x = foldLongs(current.smallestLong, x, func(v int64) { best = min(best, v) }); len(x) > 0 {
		return min(best, slices.Min(x))
	}
	return best
}

// foldLongs passes the results of do for pieces of x to the function to, and returns the
// remaining elements, at most 31. If do is nil, it returns x.
func foldLongs(do func(n int, x *int64) int64, x []int64, to func(v int64)) []int64 {
	whole := len(x) &^ (each64 - 1)
	if do == nil || whole == 0 {
		return x
	}
	for i, n := range shortPieces(whole) {
		to(do(n, &x[i]))
	}
	return x[whole:]
}

// InRange reports whether all elements of x are from 0 to size-1. It returns true for an empty
// x. It combines the sign bits of the elements and of their distances to the last valid value.
func InRange(x []int64, size int) bool {
	signs, last := int64(0), size-1
	if whole := len(x) &^ (each64 - 1); current.beyond != nil && whole > 0 {
		for i, n := range shortPieces(whole) {
			signs |= current.beyond(n, last, &x[i])
		}
		x = x[whole:]
	}
	for _, k := range x {
		signs |= k | (int64(last) - k)
	}
	return signs >= 0
}
