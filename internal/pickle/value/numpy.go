package value

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// TensorOf copies a NumPy array to a new tensor on the heap, which the caller must close. An
// array in Fortran order becomes a tensor with column-major strides. The error wraps
// [ErrUnsupported] if package tensor lacks the dtype, if the array is big-endian, or if its data
// does not have the size of its shape.
func TensorOf(a *pickle.Array) (*tensor.Tensor, error) {
	name, swapped := numpy.Parse(a.DType)
	dt, err := tensor.ParseDType(name)
	if err != nil || swapped {
		return nil, Unsupported("numpy array has dtype %s: call .astype first", a.DType)
	}
	shape := slices.Clone(a.Shape)
	if a.Fortran {
		slices.Reverse(shape)
	}
	if n, err := dt.SizeOf(shape...); err != nil || n != len(a.Data) {
		return nil, Unsupported("got %d bytes for a numpy array of shape %v", len(a.Data), a.Shape)
	}
	t := tensor.Empty(dt, shape...)
	copy(tensor.Bytes(t), a.Data)
	if a.Fortran {
		order := make([]int, t.Dims())
		for i := range order {
			order[i] = t.Dims() - 1 - i
		}
		t = t.Permute(order...)
	}
	return t, nil
}

// ArrayOf copies a tensor to a new NumPy array in row-major order. The error wraps
// [ErrUnsupported] for a dtype that NumPy lacks, such as bfloat16.
func ArrayOf(t *tensor.Tensor) (*pickle.Array, error) {
	name := numpy.Descr(t.DType().String())
	if name == "" {
		return nil, Unsupported("numpy does not support %v", t.DType())
	}
	return &pickle.Array{DType: name, Shape: slices.Clone(t.Shape()),
		Data: slices.Clone(tensor.Bytes(t.Contiguous()))}, nil
}

// NumberOf converts a NumPy scalar to bool, int64 or float64. The error wraps [ErrUnsupported] for
// a scalar of another kind, and for an unsigned value that exceeds int64.
func NumberOf(s *pickle.Scalar) (any, error) {
	b := slices.Clone(s.Data)
	if s.DType[0] == '>' {
		slices.Reverse(b)
	}
	u := binary.LittleEndian.Uint64(append(slices.Clone(b), make([]byte, 8)...))
	switch s.DType[1:] {
	case "b1":
		return u != 0, nil
	case "i1":
		return int64(int8(u)), nil
	case "i2":
		return int64(int16(u)), nil
	case "i4":
		return int64(int32(u)), nil
	case "i8", "u1", "u2", "u4":
		return int64(u), nil
	case "u8":
		if u <= math.MaxInt64 {
			return int64(u), nil
		}
	case "f4":
		return float64(math.Float32frombits(uint32(u))), nil
	case "f8":
		return math.Float64frombits(u), nil
	}
	return nil, Unsupported("numpy number has unsupported dtype %s", s.DType)
}
