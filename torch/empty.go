package torch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/shoal-mp/shoal/tensor"
)

// Empty returns a tensor in memory that PyTorch can map, so that sending it copies nothing. The
// elements have any values. The caller closes the tensor. This process uses its memory again when
// PyTorch has let go of it as well. The error wraps shm.ErrNoSpace if the machine or a control
// group has no room.
func Empty(dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	return Options{}.Empty(dt, shape...)
}

// Empty returns a tensor in memory of the kind that o.Strategy sends: with a name in /dev/shm for
// FileSystem, and without a name otherwise. The elements have any values. The caller closes the
// tensor. The error wraps shm.ErrNoSpace if the machine, a control group or /dev/shm has no room.
func (o Options) Empty(dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	n := uint64(dt.Size())
	strides := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = 1
		if i < len(shape)-1 {
			strides[i] = strides[i+1] * max(shape[i+1], 1)
		}
		hi, lo := bits.Mul64(max(n, 1), uint64(shape[i]))
		if shape[i] < 0 || hi != 0 || lo > math.MaxInt64/2 {
			panic(fmt.Sprintf("torch: no tensor has the shape %v", shape))
		}
		n = lo
	}
	if n == 0 {
		return tensor.New(dt, shape...), nil
	}
	r, err := regions.allocate(int(n), o.Strategy == FileSystem)
	if err != nil {
		return nil, err
	}
	return regions.occupy(r).View(dt, shape, strides, 0)
}

// Zeros returns a tensor of zeros in memory that PyTorch can map. The caller closes the tensor. The
// error wraps shm.ErrNoSpace if the machine or a control group has no room.
func Zeros(dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	t, err := Empty(dt, shape...)
	if err != nil {
		return nil, err
	}
	return t.Zero(), nil
}
