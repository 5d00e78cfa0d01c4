package sys

import (
	"os"
	"strings"
	"unsafe"
)

// hugeFrom is the size in bytes from which huge pages are requested, as numpy does.
const hugeFrom = 4 << 20

// HeapBytes returns n zero bytes on Go's heap. Memory of 4 MiB or more is placed in huge pages,
// which the heap does not request by itself: the faults of small pages cost more than filling
// them.
func HeapBytes(n int) []byte {
	return requestHugePages(make([]byte, n))
}

// unclearedFrom is the size in bytes from which clearing memory takes longer than all other steps
// of an allocation.
const unclearedFrom = 32 << 10

// UnclearedBytes returns n bytes on Go's heap. Memory of 32 KiB or more has arbitrary contents,
// and smaller memory is zero. UnclearedBytes uses the memory of a [strings.Builder], the only
// memory that Go does not clear. No string is made of more than its first byte, so the caller
// may change the bytes.
func UnclearedBytes(n int) []byte {
	if n < unclearedFrom {
		return make([]byte, n)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0) // an empty string has no address
	return requestHugePages(unsafe.Slice(unsafe.StringData(b.String()), n))
}

func requestHugePages(b []byte) []byte {
	if len(b) >= hugeFrom {
		wantHugePages(b)
	}
	return b
}

// Ready populates all pages of b at once, which takes half as long as a fault for each. The
// caller should call it before it overwrites new heap memory entirely. Ready does nothing for
// memory below 256 KiB, from 4 MiB on, where huge pages are used, and if the last page is
// resident already.
func Ready(b []byte) {
	if len(b) < readyFrom || len(b) >= hugeFrom {
		return
	}
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	whole := b[skip : skip+(len(b)-skip)/page*page]
	if !isResident(whole[len(whole)-page:]) { // memory that the heap reuses is resident
		Populate(whole)
	}
}

const readyFrom = 256 << 10
