package kernel

import "unsafe"

// Float is what the kernels compute with.
type Float interface{ float32 | float64 }

// single reports whether F is float32. It is a constant in every instantiation.
func single[F Float]() bool {
	var f F
	return unsafe.Sizeof(f) == 4
}
