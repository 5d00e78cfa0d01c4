package tensor

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/device"
)

// overMemory returns a tensor over memory of a device that is there: the first element is
// offset elements from its start; strides are in elements, and nil is row-major. It takes m, which
// ends with the tensor, and at once on an error. That wraps ErrDType or ErrLayout.
func overMemory(m device.Memory, dt DType, shape, strides []int, offset int) (*Tensor, error) {
	if strides == nil {
		strides = rowMajor(shape)
	}
	t, err := layOut(dt, shape, strides, offset, m.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tensor on %v: %w", m.Device(), err), m.End())
	}
	s, err := settleOn(m)
	if err != nil {
		return nil, err
	}
	return newTensor(s, dt, t.Shape(), t.Strides(), offset), nil
}
