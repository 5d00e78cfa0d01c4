// Package cudriver defines the part of the CUDA driver API that Shoal needs as a Go interface,
// [Driver]. Each method corresponds to one function. It has the arguments in C's order, returns
// results instead of storing them through pointers, and returns errors with CUDA's names.
//
// [Load] binds NVIDIA's libcuda. Package sim implements a driver that enforces the same rules on
// host memory; [Open] returns it in programs that import package sim. A test compiles a replacement
// of the library in C and calls each binding through it.
//
// Most calls need a context that is current on the calling OS thread, but goroutines move between
// threads. The caller must lock the goroutine to its thread with [runtime.LockOSThread] and set the
// context, as package cuda does.
package cudriver
