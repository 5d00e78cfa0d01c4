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
// A pickle of more than 1 MiB is in Long instead of Pickle, because a message is copied, and
// limited to 64 MiB without its tensors. [Value.SetPickle] and [Value.Bytes] choose the field.
//
// The zero Value has no pickle, and [Value.Decode] refuses it.
type Value struct {
	Pickle  []byte
	Tensors []*tensor.Tensor
	Long    *tensor.Tensor // of Uint8, one-dimensional and contiguous; nil if Pickle is the pickle
}

// maxInline is the maximum length of Value.Pickle that SetPickle sets.
const maxInline = 1 << 20

// SetPickle stores the pickle b in v, in place of the current one. A pickle of at most 1 MiB is
// borrowed: the caller must not change b afterwards. A longer one is copied to shared memory,
// which [Value.Close] closes; the error then wraps shm.ErrNoSpace if the domain is full.
// SetPickle does not close a previous v.Long.
func (v *Value) SetPickle(b []byte) error {
	if len(b) <= maxInline {
		v.Pickle, v.Long = b, nil
		return nil
	}
	long, err := tensor.EmptyShared(tensor.Uint8, len(b))
	if err != nil {
		return fmt.Errorf("pickle of %d bytes: %w", len(b), err)
	}
	copy(tensor.Bytes(long), b)
	v.Pickle, v.Long = nil, long
	return nil
}

// Bytes returns the pickle, from v.Pickle or v.Long. The caller must not modify it, and must not
// use it after v is closed. The error wraps [ErrFormat] if Long has another form than a pickle,
// or tensor.ErrClosed if v is closed.
func (v Value) Bytes() ([]byte, error) {
	if v.Long == nil {
		return v.Pickle, nil
	}
	if err := foreignTensors.Check(v.Long); err != nil {
		return nil, fmt.Errorf("long pickle: %w", err)
	}
	if t := v.Long; !isLine(t) || len(v.Pickle) > 0 {
		return nil,
			malformed("long pickle is a tensor of %v %v beside %d bytes, want one of uint8 with one dimension alone",
				t.DType(), t.Shape(), len(v.Pickle))
	}
	return tensor.Bytes(v.Long), nil
}

// isLine reports whether t is a one-dimensional, contiguous tensor of bytes in host memory, as
// Value.Long must be. t must be open.
func isLine(t *tensor.Tensor) bool {
	return t.DType() == tensor.Uint8 && t.Dims() == 1 && t.IsContiguous() && t.Device() == nil
}

// Close closes the tensors of v, including Long. It is idempotent. A decoded value has the
// tensors of its Value, so the caller must not use them after Close.
func (v Value) Close() error {
	var errs []error
	for i, t := range append(v.Tensors[:len(v.Tensors):len(v.Tensors)], v.Long) {
		if t == nil {
			continue
		}
		if err := t.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close tensor %d of a pickle: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
