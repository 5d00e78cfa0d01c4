// Package dl loads shared libraries and calls their functions: the only package that may, since a
// program that imports it is no static binary any more.
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
// The trap: a large C library takes signals for itself when it is loaded or initialised, SIGSEGV
// among them, and Go then cannot recover from a nil dereference any more, or dies of its own
// preemption. Open writes back what was taken; code that runs an initialiser does it within
// [Guard].
//
// Linux on amd64 and arm64 only; elsewhere Open returns an error that wraps errors.ErrUnsupported.
package dl
