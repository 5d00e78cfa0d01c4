package sys

import (
	"os"
	"strings"
	"unsafe"
)

// hugeFrom is how much memory is asked for in huge pages, as numpy does it.
const hugeFrom = 4 << 20

// HeapBytes returns n zeros on Go's heap. Where they are many they come in huge pages, which the
// heap does not ask for by itself: the faults of small ones cost more than filling them.
func HeapBytes(n int) []byte {
	return inHugePages(make([]byte, n))
}

// unclearedFrom is from how many bytes on clearing memory takes longer than everything else about
// it.
const unclearedFrom = 32 << 10

// UnclearedBytes returns n bytes on Go's heap that hold anything, where they are many. What a
// [strings.Builder] grows by is the one memory that Go does not clear; no string is made of more
// than its first byte.
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

// Ready prepares memory of the heap to be written whole, where it is much, new and not in huge
// pages: all of its pages come at once, which takes half as long as a fault for each.
func Ready(b []byte) {
	if len(b) < readyFrom || len(b) >= hugeFrom {
		return
	}
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	whole := b[skip : skip+(len(b)-skip)/page*page]
	if !resident(whole[len(whole)-page:]) { // what the heap gives out again is there
		Populate(whole)
	}
}

const readyFrom = 256 << 10
