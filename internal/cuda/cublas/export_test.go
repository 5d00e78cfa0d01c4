package cublas

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
)

// CString returns the text that a function of a library without arguments returns.
func CString(fn uintptr) string {
	p := dl.Call(fn)
	text := (*[4096]byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
	n := 0
	for text[n] != 0 {
		n++
	}
	return string(text[:n])
}
