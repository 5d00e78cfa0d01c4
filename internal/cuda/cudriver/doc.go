// Package cudriver is the part of CUDA's driver interface that Shoal needs, as one Go interface: a
// method for each call, with its arguments in C's order, results in the place of pointers to them,
// and CUDA's own names for errors.
//
// [Load] binds NVIDIA's libcuda; package sim has a driver that enforces the same rules on memory of
// the host, which [Open] returns in a program that imports it. A test compiles a stand-in for the
// library, in C, and calls every binding through it.
//
// The trap: most calls need a context that is current on the calling thread, and a goroutine has no
// thread of its own. Package cuda locks it for each call.
package cudriver
