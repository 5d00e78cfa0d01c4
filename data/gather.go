package data

import (
	"runtime"

	"github.com/shoal-mp/shoal/tensor"
)

// gather copies rows of src, contiguous, to the first rows of dst, contiguous and of the same dtype. Rows are copied whole.
func gather(dst, src *tensor.Tensor, rows []int) {
	to, from := tensor.Bytes(dst), tensor.Bytes(src)
	n := len(from) / max(1, src.Dim(0))
	for k, i := range rows {
		copy(to[k*n:(k+1)*n], from[i*n:(i+1)*n])
	}
	runtime.KeepAlive(src)
	dst.Touch()
}
