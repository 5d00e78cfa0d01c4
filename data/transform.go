package data

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Transform computes a tensor from src. Apply may write to the memory of dst and return it, as
// append does; dst is nil or the result of an earlier call. dst may be src, which is then
// overwritten. Apply must keep leading dimensions, so that it works on a sample and on a batch.
// Apply must be safe for concurrent calls with different tensors.
//
// To use a Transform in worker processes, register its type with wire.RegisterType.
type Transform interface {
	Apply(dst, src *tensor.Tensor) *tensor.Tensor
}

// A TransformFunc is a function as a [Transform]. Workers must be goroutines, because a function
// cannot be sent to processes.
type TransformFunc func(dst, src *tensor.Tensor) *tensor.Tensor

// Apply calls f.
func (f TransformFunc) Apply(dst, src *tensor.Tensor) *tensor.Tensor { return f(dst, src) }

func init() {
	codec.RegisterType[rescale]("data.ToTensor")
	codec.RegisterType[normalize]("data.Normalize")
	codec.RegisterType[compose]("data.Compose")
}

// ToTensor converts grey images to floats: (…, H, W) Uint8 becomes (…, 1, H, W) Float32 with values
// from 0 to 1. The new dimension is the channel. Its Apply panics for other tensors.
var ToTensor Transform = rescale{}

type rescale struct{}

func (rescale) Apply(dst, src *tensor.Tensor) *tensor.Tensor {
	if src.DType() != tensor.Uint8 || src.Dims() < 2 {
		panic(fmt.Sprintf("data: ToTensor: got %v of shape %v, want images (…, H, W) of uint8",
			src.DType(), src.Shape()))
	}
	shape := slices.Insert(slices.Clone(src.Shape()), src.Dims()-2, 1)
	dst = reuseTensor(dst, src, tensor.Float32, shape)
	if src.Device() != nil {
		grey := src.Unsqueeze(-3)
		defer grey.Close()
		return dst.CopyFrom(grey).DivInPlace(dst.Number(255))
	}
	to := tensor.Data[float32](dst)
	for i, v := range tensor.Data[uint8](contiguousTensor(src)) {
		to[i] = float32(v) / 255
	}
	runtime.KeepAlive(src)
	return dst.Touch()
}

// Normalize returns a [Transform] that maps each element x of a Float32 tensor to (x − mean) / std.
// It panics if std is 0.
func Normalize(mean, std float64) Transform {
	if std == 0 {
		panic("data: Normalize: got standard deviation 0, want another value")
	}
	return normalize{mean, std}
}

type normalize struct{ Mean, Std float64 }

func (n normalize) Apply(dst, src *tensor.Tensor) *tensor.Tensor {
	if src.DType() != tensor.Float32 {
		panic(fmt.Sprintf("data: Normalize: got %v, want float32, as returned by ToTensor", src.DType()))
	}
	m, perStd := float32(n.Mean), float32(1/n.Std)
	dst = reuseTensor(dst, src, tensor.Float32, src.Shape())
	if src.Device() != nil {
		return dst.CopyFrom(src).AddScalarInPlace(-n.Mean).MulScalarInPlace(1 / n.Std)
	}
	to := tensor.Data[float32](dst)
	for i, v := range tensor.Data[float32](contiguousTensor(src)) {
		to[i] = (v - m) * perStd
	}
	runtime.KeepAlive(src)
	return dst.Touch()
}

// Compose returns the [Transform] that applies ts in order.
func Compose(ts ...Transform) Transform {
	steps := make([]Any[Transform], len(ts))
	for i, t := range ts {
		steps[i].Value = t
	}
	return compose{steps}
}

type compose struct{ Steps []Any[Transform] }

func (c compose) Apply(dst, src *tensor.Tensor) *tensor.Tensor {
	for i, s := range c.Steps {
		if i > 0 {
			src = dst
		}
		dst = s.Value.Apply(dst, src)
	}
	if len(c.Steps) == 0 {
		return src
	}
	return dst
}

// reuseTensor returns t if it is a contiguous tensor of the given dtype and shape on the device of
// src, and otherwise a new tensor.
func reuseTensor(t, src *tensor.Tensor, dt tensor.DType, shape []int) *tensor.Tensor {
	if t != nil && t.DType() == dt && t.Device() == src.Device() && slices.Equal(t.Shape(), shape) && t.IsContiguous() {
		return t
	}
	return src.NewEmpty(dt, shape...)
}

// contiguousTensor returns t if it is contiguous, and otherwise a contiguous copy. The caller
// must not close the result if it is t.
func contiguousTensor(t *tensor.Tensor) *tensor.Tensor {
	if t.IsContiguous() {
		return t
	}
	return t.Clone()
}
