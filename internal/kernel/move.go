package kernel

import "math/bits"

// Reverse copies elements of size bytes from the end of src to the beginning of dst in reverse
// order, and returns the number of bytes written. src must be at least as long as dst; elements
// beyond len(dst) are ignored. With vector instructions for this size the result is len(dst)
// rounded down to a multiple of 32, otherwise 0. The caller must process the rest, as for
// [Cast.Do].
func Reverse(size int, dst, src []byte) int {
	log, n := bits.TrailingZeros(uint(size)), len(dst)&^(vector-1)
	if log >= len(current.reverse) || current.reverse[log] == nil || n == 0 {
		return 0
	}
	src = src[:len(dst)]
	for i, m := range shortPieces(n) {
		current.reverse[log](m, &src[len(src)-i-m], &dst[i])
	}
	return n
}

// EveryOther copies every other element of size bytes of src, beginning with the first, to dst,
// until dst is full or src ends. It returns the number of bytes written, which is rounded down
// or 0 as in [Reverse].
func EveryOther(size int, dst, src []byte) int {
	log, n := bits.TrailingZeros(uint(size)), min(len(dst), len(src)/2)&^(vector-1)
	if log >= len(current.others) || current.others[log] == nil || n == 0 {
		return 0
	}
	for i, m := range shortPieces(n) {
		current.others[log](m, &src[2*i], &dst[i])
	}
	return n
}
