package kernel

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

const (
	// bytes from which on stores go around the caches, as those of clear do: what is last would
	// push out what is first
	streamed = 32 << 20
	line     = 128 // bytes that are so stored at a time
	vector   = 32
)

// Repeat fills dst with one, which is not empty, again and again; one may be the first part of dst.
// The last copy is cut where dst ends.
func Repeat(dst, one []byte) {
	n := 0
	if len(dst) >= streamed {
		n = stream(dst, one)
	}
	n += copy(dst[n:], one)
	if n == len(one) {
		n = begin(dst, n)
	}
	block := max(16<<10/len(one), 1) * len(one) // stays in the nearest cache
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, block)])
	}
}

// begin fills the first line of dst, as far as there is one, with its first n bytes, eight at a
// time, if as many of these are eight. It returns how many bytes are filled.
func begin(dst []byte, n int) int {
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

// stream fills the begin of dst, as far as whole lines go, past the caches, and returns how many
// copies of one that is, in bytes: 0 where there are no such stores, or where one does not fit into
// a register without a rest.
func stream(dst, one []byte) int {
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
