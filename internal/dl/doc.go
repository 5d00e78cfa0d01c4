// Package dl loads shared libraries and calls their functions. It must be the only package to do
// so, because a program that imports it is not statically linked.
//
//	lib, err := dl.Open("libcuda.so.1")
//	if err != nil {
//		return err // no driver on this machine
//	}
//	init, err := lib.Symbol("cuInit")
//	if err != nil {
//		return err
//	}
//	result := int32(dl.Call(init, 0))
//
// The trap: a large C library may install signal handlers when it is loaded or initialized,
// including one for SIGSEGV. Then Go can no longer recover from a nil dereference, or crashes by
// its own preemption signal. [Open] restores the handlers. Callers must run other initialization
// functions within [Guard].
//
// The package supports Linux on amd64 and arm64. On other systems Open returns an error that wraps
// [errors.ErrUnsupported].
package dl
