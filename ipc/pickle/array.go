package pickle

import (
	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/tensor"
)

// An Array is a tensor that Python receives as a numpy.ndarray instead of a torch.Tensor, and a
// numpy.ndarray that Python sent. It shares the memory of its tensor. Python programs without
// PyTorch can receive Arrays, but not tensors. The tensor of an Array from [Value.Decode]
// belongs to the Value, and is closed with it.
type Array struct{ Tensor *tensor.Tensor }

// foreignTensors checks tensors that a user passed.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// checkSendable returns an error if t cannot be sent to Python. The error wraps tensor.ErrClosed if
// t is nil or closed, and [ErrUnsupported] if t is on a device.
func checkSendable(t *tensor.Tensor) error {
	if err := foreignTensors.Check(t); err != nil {
		return err
	}
	if dev := t.Device(); dev != nil {
		return unsupported("tensor is on %v, want the CPU: send the result of Tensor.CPU", dev)
	}
	return nil
}

// checkArray returns an error that wraps [ErrUnsupported] if NumPy has no dtype for the elements
// of t, and nil otherwise. t must be open.
func checkArray(t *tensor.Tensor) error {
	if numpy.Descr(t.DType().String()) == "" {
		return unsupported("numpy.ndarray has no dtype %v: send the tensor itself, or its result of "+
			"Tensor.To", t.DType())
	}
	return nil
}
