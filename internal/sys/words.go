package sys

import (
	"sync/atomic"
	"unsafe"
)

// Words returns mem as 64-bit words that several processes may change at once. mem must begin at a multiple of 8 bytes, as
// every mapping and block does; bytes beyond the last whole word are left out.
func Words(mem []byte) []atomic.Uint64 {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%8 != 0 {
		panic("sys: Words needs memory that begins at a multiple of 8 bytes")
	}
	// atomic.Uint64 is 8 bytes without a pointer, and its methods work on any aligned memory.
	return unsafe.Slice((*atomic.Uint64)(p), len(mem)/8)
}
