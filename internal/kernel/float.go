package kernel

import "unsafe"

// Float is the constraint of element types that kernels compute with.
type Float interface{ float32 | float64 }

// isFloat32 reports whether F is float32. The compiler evaluates it to a constant in each
// instantiation.
func isFloat32[F Float]() bool {
	var f F
	return unsafe.Sizeof(f) == 4
}
