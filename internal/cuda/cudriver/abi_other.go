//go:build !amd64

package cudriver

import "unsafe"

// openIPC calls a function that opens the handle h and stores the result at out. The second
// parameter of the function is a 64-byte struct, passed by value. On arm64 such a struct is
// passed as the address of a copy, which openIPC makes.
func (l *library) openIPC(e entry, out unsafe.Pointer, h *IPCHandle, flags uintptr) error {
	copied := *h
	return l.call(e, uintptr(out), uintptr(unsafe.Pointer(&copied)), flags)
}
