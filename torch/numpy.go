package torch

import (
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// TensorOf returns a tensor with a copy of the elements of a numpy array, on the heap.
func TensorOf(a *python.Array) (*tensor.Tensor, error) { return value.TensorOf(a) }

// ArrayOf returns a numpy array with a copy of the elements of a tensor. The error wraps
// ErrUnsupported for bfloat16, which numpy does not have.
func ArrayOf(t *tensor.Tensor) (*python.Array, error) { return value.ArrayOf(t) }

// NumberOf returns a numpy scalar as bool, int64, float64 or complex128; unsigned ones must fit.
func NumberOf(s *python.Scalar) (any, error) { return value.NumberOf(s) }
