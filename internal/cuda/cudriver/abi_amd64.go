package cudriver

import "unsafe"

// openIPC calls a function that opens the handle h and stores the result at out. The second
// parameter of the function is a 64-byte struct, passed by value. The System V ABI passes it on
// the stack, after the six integer registers. Therefore openIPC fills the registers with the
// other arguments and padding, and passes the struct's words after them.
func (l *library) openIPC(e entry, out unsafe.Pointer, h *IPCHandle, flags uintptr) error {
	q := (*[8]uintptr)(unsafe.Pointer(h))
	return l.call(e, uintptr(out), flags, 0, 0, 0, 0, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7])
}
