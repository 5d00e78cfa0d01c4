package data

import (
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/tensor"
)

// gather copies rows of src, contiguous, to the first rows of dst, contiguous and of the same dtype. Rows are copied whole.
func gather(dst, src *tensor.Tensor, rows []int) {
	switch src.DType() {
	case tensor.Bool:
		copyRows[bool](dst, src, rows)
	case tensor.Uint8:
		copyRows[uint8](dst, src, rows)
	case tensor.Int8:
		copyRows[int8](dst, src, rows)
	case tensor.Int16:
		copyRows[int16](dst, src, rows)
	case tensor.Int32:
		copyRows[int32](dst, src, rows)
	case tensor.Int64:
		copyRows[int64](dst, src, rows)
	case tensor.Float16:
		copyRows[tensor.F16](dst, src, rows)
	case tensor.BFloat16:
		copyRows[tensor.BF16](dst, src, rows)
	case tensor.Float32:
		copyRows[float32](dst, src, rows)
	case tensor.Float64:
		copyRows[float64](dst, src, rows)
	case tensor.Complex64:
		copyRows[complex64](dst, src, rows)
	case tensor.Complex128:
		copyRows[complex128](dst, src, rows)
	default:
		panic(fmt.Sprintf("data: rows of dtype %v cannot be copied", src.DType()))
	}
}

func copyRows[T tensor.Elem](dst, src *tensor.Tensor, rows []int) {
	to, from := tensor.Data[T](dst), tensor.Data[T](src)
	n := src.Numel() / max(1, src.Dim(0))
	for k, i := range rows {
		copy(to[k*n:(k+1)*n], from[i*n:(i+1)*n])
	}
	runtime.KeepAlive(src)
	dst.Touch()
}
