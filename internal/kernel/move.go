package kernel

import "math/bits"

// Reverse overwrites the first bytes of dst with the last elements of src, of size bytes, the last
// one first. It returns how many bytes it has written: on a machine with instructions for it all
// but the last few, on others none. It leaves the others to its caller, as [Cast.Do] does.
func Reverse(size int, dst, src []byte) int {
	log, n := bits.TrailingZeros(uint(size)), len(dst)&^(vector-1)
	if log >= len(current.reverse) || current.reverse[log] == nil || n == 0 {
		return 0
	}
	src = src[:len(dst)]
	for i, m := range short(n) {
		current.reverse[log](m, &src[len(src)-i-m], &dst[i])
	}
	return n
}

// EveryOther overwrites the first bytes of dst with every other element of src, of size bytes, from
// the first one on, as [Reverse] does.
func EveryOther(size int, dst, src []byte) int {
	log, n := bits.TrailingZeros(uint(size)), min(len(dst), len(src)/2)&^(vector-1)
	if log >= len(current.others) || current.others[log] == nil || n == 0 {
		return 0
	}
	for i, m := range short(n) {
		current.others[log](m, &src[2*i], &dst[i])
	}
	return n
}
