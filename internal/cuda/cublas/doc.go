// Package cublas is the part of cuBLAS that Shoal needs: products of many matrices of floats, in
// column-major order as BLAS has it.
//
// [Load] binds NVIDIA's library where there is one; package sim has a [BLAS] on its simulated
// devices. A test compiles a stand-in for the library, in C, and calls every binding through it.
//
// As with the driver, a call needs a context that is current on its thread; and a handle serves one
// call at a time.
package cublas
