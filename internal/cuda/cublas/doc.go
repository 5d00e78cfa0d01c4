// Package cublas binds the part of cuBLAS that Shoal needs: batched products of matrices of floats,
// in column-major order.
//
// [Load] binds NVIDIA's library if it is installed; package sim implements [BLAS] for simulated
// devices. A test compiles a C stub of the library and calls every binding through it.
//
// As with the driver, a context must be current on the calling thread, and a [Handle] must not be
// used by several calls at the same time.
package cublas
