package autograd

import (
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// dispatch returns the implementation for x: on for devices, or the host kernel for its dtype. It
// panics as kernelByDType does.
func dispatch[F any](op string, x *Var, f32, f64, on F) F {
	if x.isOnDevice() {
		return on
	}
	return kernelByDType(op, x, f32, f64)
}

// kernelByDType returns the kernel for x's dtype. It panics with [tensor.ErrOperand] unless this
// is Float32 or Float64.
func kernelByDType[F any](op string, x *Var, f32, f64 F) F {
	switch x.t.DType() {
	case tensor.Float32:
		return f32
	case tensor.Float64:
		return f64
	}
	misuse(tensor.ErrOperand, "%s: got dtype %v, want float32 or float64: convert with tensor.To", op, x.t.DType())
	return f32
}

// data is tensor.Data for the element types of kernels.
func data[F kernel.Float](t *tensor.Tensor) []F { return tensor.Data[F](t) }

// keepAlive keeps inputs reachable, and with them their shared memory, while a kernel uses their
// slices.
func keepAlive(vs ...*Var) {
	for _, v := range vs {
		runtime.KeepAlive(v)
	}
}

func sameShape(a, b []int) bool { return slices.Equal(a, b) }
