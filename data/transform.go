package data

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A Transform computes one tensor from another, as append does one slice from another: dst is nil or what an earlier call
// returned, and its memory is used again if it fits. dst may be src itself, which is then overwritten. A Transform works on a single
// sample and on a batch, because it leaves dimensions in front alone; several goroutines may call it with different tensors.
type Transform func(dst, src *tensor.Tensor) *tensor.Tensor

// ToTensor makes pixels numbers: (…, H, W) uint8 becomes (…, 1, H, W) float32 from 0 to 1. The new dimension is the one channel
// of a grey image.
func ToTensor(dst, src *tensor.Tensor) *tensor.Tensor {
	if src.DType() != tensor.Uint8 || src.Dims() < 2 {
		panic(fmt.Sprintf("data: ToTensor of a tensor of %v of shape %v: it takes images, (…, H, W) of uint8", src.DType(), src.Shape()))
	}
	shape := slices.Insert(slices.Clone(src.Shape()), src.Dims()-2, 1)
	dst = reuse(dst, tensor.Float32, shape)
	to := tensor.Data[float32](dst)
	for i, v := range tensor.Data[uint8](dense(src)) {
		to[i] = float32(v) / 255
	}
	runtime.KeepAlive(src)
	return dst.Touch()
}

// Normalize returns a Transform that makes x, of float32, (x − mean) / std.
func Normalize(mean, std float64) Transform {
	if std == 0 {
		panic("data: Normalize by a standard deviation of 0")
	}
	m, perStd := float32(mean), float32(1/std)
	return func(dst, src *tensor.Tensor) *tensor.Tensor {
		if src.DType() != tensor.Float32 {
			panic(fmt.Sprintf("data: Normalize of a tensor of %v: it takes float32, which ToTensor makes", src.DType()))
		}
		dst = reuse(dst, tensor.Float32, src.Shape())
		to := tensor.Data[float32](dst)
		for i, v := range tensor.Data[float32](dense(src)) {
			to[i] = (v - m) * perStd
		}
		runtime.KeepAlive(src)
		return dst.Touch()
	}
}

// Compose returns the Transform that applies ts one after the other.
func Compose(ts ...Transform) Transform {
	return func(dst, src *tensor.Tensor) *tensor.Tensor {
		if len(ts) == 0 {
			return src
		}
		dst = ts[0](dst, src)
		for _, t := range ts[1:] {
			dst = t(dst, dst)
		}
		return dst
	}
}

// reuse returns t if it is a contiguous tensor of this dtype and shape, and otherwise a new one.
func reuse(t *tensor.Tensor, dt tensor.DType, shape []int) *tensor.Tensor {
	if t != nil && t.DType() == dt && slices.Equal(t.Shape(), shape) && t.IsContiguous() {
		return t
	}
	return tensor.Empty(dt, shape...)
}

// dense returns t if its elements stand one after another, and otherwise a copy where they do.
func dense(t *tensor.Tensor) *tensor.Tensor {
	if t.IsContiguous() {
		return t
	}
	return t.Clone()
}
