package cudriver

import "unsafe"

// openIPC calls an entry point whose second argument is a struct of 64 bytes by value. C puts that
// on the stack, behind what the six registers have no room for; so the other arguments come first,
// then nothing up to the sixth, and then the struct.
func (l *library) openIPC(e entry, out unsafe.Pointer, h *IPCHandle, flags uintptr) error {
	q := (*[8]uintptr)(unsafe.Pointer(h))
	return l.call(e, uintptr(out), flags, 0, 0, 0, 0, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7])
}
