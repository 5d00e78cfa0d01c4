package cudriver

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// Symbols are the functions that are bound.
func Symbols() []string { return symbols[:] }

// Sizes are those of the structs that C sees.
func Sizes() [3]uintptr {
	return [...]uintptr{unsafe.Sizeof(Location{}), unsafe.Sizeof(AllocationProp{}), unsafe.Sizeof(AccessDesc{})}
}

// CString returns the text that a function of a library without arguments returns.
func CString(fn uintptr) string {
	p := dl.Call(fn)
	return stringAt(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
}

func stringAt(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
