package pickle

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/tensor"
)

// A Value is a message of a Python program: a pickle, and the tensors that it refers to. It crosses
// queues, pipes and names of package ipc as any struct does, so its tensors share memory:
//
//	q, err := ipc.NewQueue[pickle.Value](8)
//
// Pickle is one whole pickle of protocol 2 to 5. Python writes protocol 5. In place of a tensor it
// has a persistent ID, which refers to an element of Tensors:
//
//	i         an int, for a torch.Tensor:             BININT1 i, BINPERSID
//	("g", i)  a tuple of a str and an int, for a torch.Tensor that requires gradients (a leaf)
//	("n", i)  a tuple of a str and an int, for a numpy.ndarray
//
// i is from 0 to len(Tensors)-1. The forms may be mixed in one pickle, and one index may occur
// several times. In the same form it is one object for the receiver, as it was for the sender.
// Tensors that view one memory are separate elements, and still share it after they are sent. A
// Value without tensors has a nil slice.
//
// A pickle must not refer to anything else by a persistent ID. A torch.nn.Parameter is the call
// torch._utils._rebuild_parameter(data, requires_grad, hooks), as PyTorch itself pickles it, with
// the persistent ID of its tensor as data. Other subclasses of Tensor and ndarray, and arrays with
// a dtype that package tensor lacks, are in the pickle itself, as Python's own pickle writes them.
//
// The zero Value has no pickle, and [Value.Decode] refuses it.
type Value struct {
	Pickle  []byte
	Tensors []*tensor.Tensor
}

// Close closes the tensors. It is idempotent. A decoded value has the tensors of its Value, so the
// caller must not use them after Close.
func (v Value) Close() error {
	var errs []error
	for i, t := range v.Tensors {
		if t == nil {
			continue
		}
		if err := t.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close tensor %d of a pickle: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
