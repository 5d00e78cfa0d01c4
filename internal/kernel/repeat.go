package kernel

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

const (
	// streamed is the minimum size in bytes for non-temporal stores, which clear uses too. Normal
	// stores would evict the beginning of the slice from the caches.
	streamed = 32 << 20
	line     = 128 // bytes per iteration of the streaming loop
	vector   = 32
)

// Repeat fills dst with copies of one, which may be the beginning of dst. The last copy is
// truncated at the end of dst. Repeat panics if one is empty.
func Repeat(dst, one []byte) {
	n := 0
	if len(dst) >= streamed {
		n = streamLines(dst, one)
	}
	n += copy(dst[n:], one)
	if n == len(one) {
		n = fillLine(dst, n)
	}
	block := max(16<<10/len(one), 1) * len(one) // stays in the first-level cache
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, block)])
	}
}

// fillLine fills the first 64 bytes of dst with copies of its first n bytes, if n divides 8 and
// dst is long enough. It returns the number of bytes that are filled: 64, or n.
func fillLine(dst []byte, n int) int {
	const first = 64
	if n > 8 || 8%n != 0 || len(dst) < first {
		return n
	}
	for ; n < 8; n *= 2 {
		copy(dst[n:], dst[:n])
	}
	pattern := binary.NativeEndian.Uint64(dst)
	for at := 8; at < first; at += 8 {
		binary.NativeEndian.PutUint64(dst[at:], pattern)
	}
	return first
}

// streamLines fills the beginning of dst with copies of one, as many whole lines of 128 bytes
// as possible, by non-temporal stores. It returns the number of bytes in complete copies of
// one. This is 0 if there are no such stores, or if the size of a register, 32 bytes, is not a
// multiple of len(one).
func streamLines(dst, one []byte) int {
	if current.stream == nil || len(one) == 0 || vector%len(one) != 0 {
		return 0
	}
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % vector)
	if len(dst) < head+line {
		return 0
	}
	twice := bytes.Repeat(one, 2*vector/len(one))
	n := copy(dst[:head], twice)
	pattern := twice[head:]
	for end := n + (len(dst)-n)/line*line; n < end; {
		piece := min(end-n, 16*longest)
		current.stream(piece, &pattern[0], &dst[n])
		n += piece
	}
	return n / len(one) * len(one)
}
