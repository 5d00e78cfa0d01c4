package pickle

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// rebuildParameter is the function that PyTorch's pickles call to create a torch.nn.Parameter.
const rebuildParameter = "torch._utils._rebuild_parameter"

// limits apply to one message.
var limits = pickle.Limits{Bytes: 1 << 30}

// Decode returns the message as a Go value:
//
//	Python                                  Go
//	None                                    nil
//	bool, int, float, complex, str          bool, int64 or *big.Int, float64, complex128, string
//	bytes, bytearray                        []byte, *python.ByteArray
//	list, tuple                             []any, python.Tuple
//	dict, set, frozenset                    *python.Dict, *python.Set
//	torch.Tensor, torch.nn.Parameter        *tensor.Tensor
//	numpy.ndarray, numpy scalar             *[Array], *python.Scalar
//	numpy.ndarray in the pickle itself      *python.Array
//	torch.dtype, torch.Size, torch.device   tensor.DType, python.Size, python.Device
//	a class or a function                   python.Global
//	any other object                        *python.Record
//
// An object that occurs several times in Python is one pointer in Go. The tensors belong to v: the
// caller must not use them after v is closed. Decode may be called several times, and from several
// goroutines.
//
// The error wraps [ErrFormat], [ErrUnsupported], [ErrLimit] or, if v is closed, tensor.ErrClosed.
// The caller must close v in any case.
func (v Value) Decode() (any, error) {
	got, err := v.decode()
	if err != nil {
		return nil, fmt.Errorf("decode a message of Python: %w", convertError(err))
	}
	return got, nil
}

func (v Value) decode() (any, error) {
	b, err := v.Bytes()
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, malformed("the pickle is empty")
	}
	tree, err := pickle.Unmarshal(b, permitName, limits)
	if err != nil {
		return nil, err
	}
	d := &decoder{tensors: v.Tensors, arrays: map[int64]*Array{}}
	d.Lifter = value.Lifter{Object: d.decodeObject, Outside: d.decodePersistent}
	return d.Lift(tree)
}

// permitName returns the constructor for the class or function g that a pickle names, or nil if
// it has none, and true: every name is permitted, because nothing is executed. Only plain values
// have constructors; calls of all other names become records.
func permitName(g python.Global) (pickle.Constructor, bool) { return value.Names()[g], true }

// A decoder converts the parsed pickle of one message to Go values. It is used once.
type decoder struct {
	value.Lifter
	tensors []*tensor.Tensor
	arrays  map[int64]*Array // arrays decoded so far, by the index of their tensor
}

// decodePersistent returns the *tensor.Tensor or the *[Array] for a persistent ID in one of the
// forms that [Value] documents. It returns [ErrFormat] for another form, an [*IndexError] if the
// index is out of range, and tensor.ErrClosed if the tensor is closed.
func (d *decoder) decodePersistent(p *pickle.Persistent) (any, error) {
	switch id := p.ID.(type) {
	case int64:
		return d.tensorAt(id)
	case python.Tuple:
		if len(id) != 2 {
			break
		}
		i, ok := id[1].(int64)
		switch {
		case !ok:
		case id[0] == gradMark:
			return d.tensorAt(i)
		case id[0] == arrayMark:
			return d.arrayAt(i)
		}
	}
	return nil,
		malformed("persistent ID is %T, want an int, or a tuple of %q or %q and an int", p.ID, arrayMark, gradMark)
}

func (d *decoder) tensorAt(i int64) (*tensor.Tensor, error) {
	if i < 0 || i >= int64(len(d.tensors)) {
		return nil, &IndexError{i, len(d.tensors)}
	}
	if err := foreignTensors.Check(d.tensors[i]); err != nil {
		return nil, fmt.Errorf("tensor %d of the message: %w", i, err)
	}
	return d.tensors[i], nil
}

func (d *decoder) arrayAt(i int64) (*Array, error) {
	if a := d.arrays[i]; a != nil {
		return a, nil
	}
	t, err := d.tensorAt(i)
	if err != nil {
		return nil, err
	}
	d.arrays[i] = &Array{t}
	return d.arrays[i], nil
}

// decodeObject converts a call in the pickle: a call that creates a torch.nn.Parameter to the
// parameter's tensor, and any other to a *python.Record.
func (d *decoder) decodeObject(o *pickle.Object) (any, error) {
	if o.Class.String() != rebuildParameter {
		return d.Record(o)
	}
	if len(o.Args) == 0 {
		return nil, malformed("%s has no arguments, want a tensor", rebuildParameter)
	}
	data, err := d.Lift(o.Args[0])
	if err != nil {
		return nil, err
	}
	if _, ok := data.(*tensor.Tensor); !ok {
		return nil, malformed("argument 1 of %s is %T, want a tensor", rebuildParameter, data)
	}
	return data, nil
}
