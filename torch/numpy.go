package torch

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// numpyTypes are numpy's names of the dtypes that it has, without the byte order.
var numpyTypes = map[string]tensor.DType{
	"b1": tensor.Bool, "u1": tensor.Uint8, "i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64, "c8": tensor.Complex64, "c16": tensor.Complex128,
}

// TensorOf returns a tensor with the elements of a numpy array, on the heap. A little-endian array of C's order is not copied.
func TensorOf(a *Array) (*tensor.Tensor, error) {
	size, err := pickle.NumpySize(a.DType)
	if err != nil {
		return nil, unsupported("%v", err)
	}
	dt, ok := numpyTypes[a.DType[1:]]
	if !ok || a.DType[0] == '>' && size > 1 {
		return nil, unsupported("a numpy array of %s; call .astype first", a.DType)
	}
	t := tensor.New(dt, a.Shape...)
	if a.Fortran {
		backward := slices.Clone(a.Shape)
		slices.Reverse(backward)
		t = tensor.New(dt, backward...)
	}
	if len(a.Data) != t.Nbytes() {
		return nil, unsupported("%d bytes for a numpy array of %v", len(a.Data), a.Shape)
	}
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

// ArrayOf returns a numpy array with a copy of the elements of a tensor. The error wraps ErrUnsupported for bfloat16, which numpy
// does not have.
func ArrayOf(t *tensor.Tensor) (*Array, error) {
	for name, dt := range numpyTypes {
		if dt == t.DType() {
			order := "<"
			if dt.Size() == 1 {
				order = "|"
			}
			return &Array{DType: order + name, Shape: slices.Clone(t.Shape()), Data: slices.Clone(tensor.Bytes(t.Contiguous()))}, nil
		}
	}
	return nil, unsupported("numpy has no %v", t.DType())
}

// NumberOf returns a numpy scalar as bool, int64, float64 or complex128; unsigned ones must fit.
func NumberOf(s *Scalar) (any, error) {
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
	return nil, unsupported("a numpy number of %s", s.DType)
}
