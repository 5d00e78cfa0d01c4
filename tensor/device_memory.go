package tensor

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/device"
)

// tensorOver returns a tensor over existing device memory. The first element is offset elements
// after the start. strides are in elements; nil means row-major. tensorOver takes ownership of m: m
// ends with the tensor, or at once if there is an error. The error wraps ErrDType or ErrLayout.
func tensorOver(m device.Memory, dt DType, shape, strides []int, offset int) (*Tensor, error) {
	if strides == nil {
		strides = rowMajor(shape)
	}
	t, err := newUnbacked(dt, shape, strides, offset, m.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tensor on %v: %w", m.Device(), err), m.End())
	}
	s, err := storageOn(m)
	if err != nil {
		return nil, err
	}
	return newTensor(s, dt, t.Shape(), t.Strides(), offset), nil
}
