package sys

import (
	"os"
	"strings"
	"unsafe"
)

// hugeFrom is the size from which memory is asked for in huge pages, as numpy does.
const hugeFrom = 4 << 20

// HeapBytes returns n zeros on Go's heap. Large memory comes in huge pages, for which the heap does
// not ask by itself. The faults of small pages cost more than filling them.
func HeapBytes(n int) []byte {
	return inHugePages(make([]byte, n))
}

// unclearedFrom is the size from which clearing memory takes longer than all other steps of an
// allocation.
const unclearedFrom = 32 << 10

// UnclearedBytes returns n bytes on Go's heap. Large memory may hold anything. A [strings.Builder]
// grows by the only memory that Go does not clear. No string is made of more than its first byte.
func UnclearedBytes(n int) []byte {
	if n < unclearedFrom {
		return make([]byte, n)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0) // a string without bytes has no address
	return inHugePages(unsafe.Slice(unsafe.StringData(b.String()), n))
}

func inHugePages(b []byte) []byte {
	if len(b) >= hugeFrom {
		wantHugePages(b)
	}
	return b
}

// Ready prepares memory of the heap to be written whole, if it is large, new and not in huge pages.
// All of its pages come at once, which takes half as long as a fault for each.
func Ready(b []byte) {
	if len(b) < readyFrom || len(b) >= hugeFrom {
		return
	}
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	whole := b[skip : skip+(len(b)-skip)/page*page]
	if !resident(whole[len(whole)-page:]) { // memory that the heap gives out again is there
		Populate(whole)
	}
}

const readyFrom = 256 << 10
