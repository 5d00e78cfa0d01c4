//go:build !amd64

package cudriver

import "unsafe"

// openIPC calls an entry point whose second argument is a struct of 64 bytes by value. On arm64 C
// passes the address of a copy.
func (l *library) openIPC(e entry, out unsafe.Pointer, h *IPCHandle, flags uintptr) error {
	copied := *h
	return l.call(e, uintptr(out), uintptr(unsafe.Pointer(&copied)), flags)
}
