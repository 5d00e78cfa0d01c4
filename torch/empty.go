package torch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/shoal-mp/shoal/tensor"
)

// Empty returns an uninitialized tensor in memory that PyTorch can map, so that sending it copies
// nothing. The caller must close the tensor. This process reuses its memory after PyTorch has
// released it too. The error wraps shm.ErrNoSpace if the memory of the machine or of a control
// group is exhausted. Empty panics if shape is invalid.
func Empty(dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	return Options{}.Empty(dt, shape...)
}

// Empty returns an uninitialized tensor in the kind of memory that o.Strategy sends: a named file
// in /dev/shm for [FileSystem], and a file without a name otherwise. The caller must close the
// tensor. The error wraps shm.ErrNoSpace if the memory of the machine, of a control group or of
// /dev/shm is exhausted. Empty panics if shape is invalid.
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
			panic(fmt.Sprintf("torch: Empty: invalid shape %v: want dimensions of 0 or more, and a size that fits "+
				"the address space", shape))
		}
		n = lo
	}
	if n == 0 {
		return tensor.New(dt, shape...), nil
	}
	r, err := regions.allocateRegion(int(n), o.Strategy == FileSystem)
	if err != nil {
		return nil, err
	}
	return regions.occupyRegion(r).View(dt, shape, strides, 0)
}

// Zeros returns a tensor of zeros in memory that PyTorch can map. The caller must close the tensor.
// It fails under the same conditions as [Empty].
func Zeros(dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	t, err := Empty(dt, shape...)
	if err != nil {
		return nil, err
	}
	return t.Zero(), nil
}
