package data

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Transform computes a tensor from src and returns it. As append does, Apply may use the memory
// of dst, which is nil or the result of an earlier call. dst may be src itself, which is then
// overwritten. A Transform keeps leading dimensions, so it works on one sample and on a batch.
// Several goroutines may call Apply with different tensors.
//
// For worker processes, register the type of your own Transform by wire.RegisterType.
type Transform interface {
	Apply(dst, src *tensor.Tensor) *tensor.Tensor
}

// A TransformFunc is a function as a Transform. Workers must be goroutines, since a function cannot
// be sent to processes.
type TransformFunc func(dst, src *tensor.Tensor) *tensor.Tensor

// Apply calls f.
func (f TransformFunc) Apply(dst, src *tensor.Tensor) *tensor.Tensor { return f(dst, src) }

func init() {
	codec.RegisterType[rescale]("data.ToTensor")
	codec.RegisterType[normalize]("data.Normalize")
	codec.RegisterType[compose]("data.Compose")
}

// ToTensor makes numbers of pixels: (…, H, W) Uint8 becomes (…, 1, H, W) Float32 from 0 to 1. The
// new dimension is the channel of a grey image.
var ToTensor Transform = rescale{}

type rescale struct{}

func (rescale) Apply(dst, src *tensor.Tensor) *tensor.Tensor {
	if src.DType() != tensor.Uint8 || src.Dims() < 2 {
		panic(fmt.Sprintf("data: ToTensor of a tensor of %v of shape %v: it takes images, (…, H, W) of uint8",
			src.DType(), src.Shape()))
	}
	shape := slices.Insert(slices.Clone(src.Shape()), src.Dims()-2, 1)
	dst = reuse(dst, src, tensor.Float32, shape)
	if src.Device() != nil {
		grey := src.Unsqueeze(-3)
		defer grey.Close()
		return dst.CopyFrom(grey).Div(dst.Number(255))
	}
	to := tensor.Data[float32](dst)
	for i, v := range tensor.Data[uint8](dense(src)) {
		to[i] = float32(v) / 255
	}
	runtime.KeepAlive(src)
	return dst.Touch()
}

// Normalize returns a Transform that replaces each element x of a Float32 tensor by (x − mean) /
// std.
func Normalize(mean, std float64) Transform {
	if std == 0 {
		panic("data: Normalize by a standard deviation of 0")
	}
	return normalize{mean, std}
}

type normalize struct{ Mean, Std float64 }

func (n normalize) Apply(dst, src *tensor.Tensor) *tensor.Tensor {
	if src.DType() != tensor.Float32 {
		panic(fmt.Sprintf("data: Normalize of a tensor of %v: it takes float32, which ToTensor makes", src.DType()))
	}
	m, perStd := float32(n.Mean), float32(1/n.Std)
	dst = reuse(dst, src, tensor.Float32, src.Shape())
	if src.Device() != nil {
		return dst.CopyFrom(src).AddScalar(-n.Mean).MulScalar(1 / n.Std)
	}
	to := tensor.Data[float32](dst)
	for i, v := range tensor.Data[float32](dense(src)) {
		to[i] = (v - m) * perStd
	}
	runtime.KeepAlive(src)
	return dst.Touch()
}

// Compose returns the Transform that applies ts one after the other.
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

// reuse returns t if it is a contiguous tensor of this dtype and shape where src is, and otherwise
// a new one.
func reuse(t, src *tensor.Tensor, dt tensor.DType, shape []int) *tensor.Tensor {
	if t != nil && t.DType() == dt && t.Device() == src.Device() && slices.Equal(t.Shape(), shape) && t.IsContiguous() {
		return t
	}
	return src.NewEmpty(dt, shape...)
}

// dense returns t if its elements stand one after another, and otherwise a copy where they do.
func dense(t *tensor.Tensor) *tensor.Tensor {
	if t.IsContiguous() {
		return t
	}
	return t.Clone()
}
