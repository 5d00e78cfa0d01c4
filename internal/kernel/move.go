package kernel

import "math/bits"

// Reverse copies elements of size bytes from the end of src to the beginning of dst in reverse
// order. It returns the number of bytes written. With vector instructions it processes all but the
// last few elements, otherwise none. The caller must process the rest, as for [Cast.Do].
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

// EveryOther copies every other element of size bytes of src, beginning with the first, to dst. It
// returns the number of bytes written, as [Reverse].
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
