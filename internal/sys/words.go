package sys

import (
	"sync/atomic"
	"unsafe"
)

// Counter returns the first 4 bytes of mem as a number that several processes may change
// concurrently. It panics unless mem has 4 bytes and begins at a multiple of 4 bytes. The
// result does not keep a mapping alive.
func Counter(mem []byte) *atomic.Int32 {
	p := unsafe.Pointer(unsafe.SliceData(mem[:4]))
	if uintptr(p)%4 != 0 {
		panic("sys: Counter: memory is not aligned to 4 bytes")
	}
	return (*atomic.Int32)(p)
}

// Words returns mem as 64-bit words that several processes may change concurrently. It omits
// bytes beyond the last whole word. It panics unless mem begins at a multiple of 8 bytes, as
// every mapping does.
func Words(mem []byte) []atomic.Uint64 {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%8 != 0 {
		panic("sys: Words: memory is not aligned to 8 bytes")
	}
	// atomic.Uint64 is 8 bytes without a pointer, and its methods work on any aligned memory.
	return unsafe.Slice((*atomic.Uint64)(p), len(mem)/8)
}

// Contains reports whether addr is in mem.
func Contains(mem []byte, addr uintptr) bool {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return addr >= begin && addr-begin < uintptr(len(mem))
}
