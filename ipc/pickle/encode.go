package pickle

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// protocol is the pickle protocol that Encode writes. Every Python since 3.8 reads it.
const protocol = 5

// arrayMark and gradMark are the first elements of the tuples that are persistent IDs: of a
// numpy.ndarray, and of a torch.Tensor that requires gradients.
const (
	arrayMark = "n"
	gradMark  = "g"
)

// Encode returns v as a message for Python:
//
//	Go                                              Python
//	nil                                             None
//	bool, integers, floats, complex numbers, string bool, int, float, complex, str
//	[]byte, *python.ByteArray                       bytes, bytearray
//	slices, arrays and python.Tuple                 list, tuple, tuple
//	maps, structs, *python.Dict                     dict
//	*python.Set                                     set or frozenset
//	*tensor.Tensor, [Array] or *Array               torch.Tensor, numpy.ndarray
//	*python.Array, *python.Scalar                   numpy.ndarray, numpy scalar, with a copy of the elements
//	tensor.DType, python.Size, python.Device        torch.dtype, torch.Size, torch.device
//	python.Global                                   a class or a function
//
// The tag `torch:"name"` of a struct field sets its key in the dict. A pointer that occurs
// several times is one object in Python.
//
// The Value has views of the tensors in v, so the caller must close it, even after it was sent,
// and still owns v. A tensor on the heap is moved to shared memory when the Value is sent; see
// Tensor.Share.
//
// The error wraps [ErrUnsupported], [ErrLimit], tensor.ErrClosed or shm.ErrNoSpace. Encode then
// keeps no views. The Value is then zero.
func Encode(v any) (Value, error) {
	e := &encoder{index: map[*tensor.Tensor]int64{}}
	e.Lowerer.Own = e.encodeOwn
	b, err := e.marshal(v)
	if err == nil {
		err = e.message.SetPickle(b)
	}
	if err != nil {
		e.message.Close()
		return Value{}, fmt.Errorf("encode %T for Python: %w", v, convertError(err))
	}
	return e.message, nil
}

// An encoder encodes one message. It is used once. If it fails, the caller must close message.
type encoder struct {
	value.Lowerer
	message Value
	index   map[*tensor.Tensor]int64 // index in message.Tensors, by the tensor in the user's value
}

func (e *encoder) marshal(v any) ([]byte, error) {
	low, err := e.Lower(v)
	if err != nil {
		return nil, err
	}
	return pickle.Marshal(low, protocol)
}

// encodeOwn encodes tensors and arrays, which the pickle refers to by persistent IDs, as low,
// and returns [ErrUnsupported] for values that cannot be sent to Python. ok is false, and the
// other results are nil, for values of other types, which the caller must encode. A nil pointer
// has a nil low: None.
func (e *encoder) encodeOwn(v any) (low any, ok bool, err error) {
	switch v := v.(type) {
	case *tensor.Tensor:
		if v != nil {
			low, err = e.encodeTensor(v)
		}
	case Array:
		low, err = e.encodeArray(v)
	case *Array:
		if v != nil {
			low, err = e.encodeArray(*v)
		}
	case Value, *Value:
		err = unsupported("%T is encoded already: send it, or the result of its Decode", v)
	case *python.Record, *pickle.Object:
		err = unsupported("%T is an object that only Python can create: send its contents", v)
	default:
		return nil, false, nil
	}
	return low, true, err
}

func (e *encoder) encodeTensor(t *tensor.Tensor) (any, error) {
	i, err := e.indexOf(t)
	return &pickle.Persistent{ID: i}, err
}

func (e *encoder) encodeArray(a Array) (any, error) {
	i, err := e.indexOf(a.Tensor)
	if err == nil {
		err = checkArray(a.Tensor)
	}
	return &pickle.Persistent{ID: python.Tuple{arrayMark, i}}, err
}

// indexOf returns the index of t in the tensors of the message. The first time it adds a view of
// t to the message. It returns tensor.ErrClosed if t is nil or closed, and [ErrUnsupported] if t
// is on a device.
func (e *encoder) indexOf(t *tensor.Tensor) (int64, error) {
	if i, ok := e.index[t]; ok {
		return i, nil
	}
	if err := checkSendable(t); err != nil {
		return 0, err
	}
	i := int64(len(e.message.Tensors))
	e.message.Tensors = append(e.message.Tensors, t.AsStrided(t.Shape(), t.Strides(), t.Offset()))
	e.index[t] = i
	return i, nil
}
