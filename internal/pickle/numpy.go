package pickle

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// numpyKinds maps the kinds of numeric dtypes to their sizes in bytes.
var numpyKinds = map[byte][]int{
	'b': {1}, 'i': {1, 2, 4, 8}, 'u': {1, 2, 4, 8}, 'f': {2, 4, 8}, 'c': {8, 16},
}

// numpyType is a numeric numpy.dtype. newNumpyType makes one while a pickle is decoded, and
// BUILD may set its byte order.
type numpyType struct {
	code  string // kind and size: "f4"
	order byte   // '<', '>' or '|'
}

func (t *numpyType) String() string { return string(t.order) + t.code }

// NumpySize returns the element size in bytes of a numpy dtype such as "<f4". The error wraps
// [ErrValue] if it is not a numeric dtype.
func NumpySize(dtype string) (int, error) {
	if len(dtype) < 3 || strings.IndexByte("<>|=", dtype[0]) < 0 {
		return 0, fmt.Errorf("%w: numpy dtype %q", ErrValue, dtype)
	}
	size, err := strconv.Atoi(dtype[2:])
	for _, n := range numpyKinds[dtype[1]] {
		if n == size && err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: numpy dtype %q is not a plain number", ErrValue, dtype)
}

func newNumpyType(args Tuple) (any, error) {
	if err := checkArity(args, 1, 3); err != nil {
		return nil, err
	}
	code, err := argumentAt[string](args, 0)
	if err != nil {
		return nil, err
	}
	if _, err := NumpySize("|" + code); err != nil {
		return nil, fmt.Errorf("%w: numpy dtype %.40q", ErrForm, code)
	}
	return &numpyType{code, '|'}, nil
}

// build sets the byte order from the state (3, order, subdtype, names, fields, itemsize,
// alignment, flags). It returns an error if the dtype is not a plain number.
func (t *numpyType) build(state any) error {
	s, _ := state.(Tuple)
	order, err := argumentAt[string](s, 1)
	if err != nil {
		return err
	}
	if len(order) != 1 || strings.IndexByte("<>|=", order[0]) < 0 {
		return fmt.Errorf("unknown byte order %q", order)
	}
	for i := 2; i <= 4 && i < len(s); i++ {
		if s[i] != nil {
			return fmt.Errorf("dtype has fields or subarrays: %w", ErrValue)
		}
	}
	t.order = order[0]
	return nil
}

func newScalar(args Tuple) (any, error) {
	t, err := argumentAt[*numpyType](args, 0)
	if err != nil {
		return nil, err
	}
	b, err := argumentAt[[]byte](args, 1)
	if err != nil {
		return nil, err
	}
	if size, err := NumpySize(t.String()); err != nil || len(b) != size {
		return nil, fmt.Errorf("got %d bytes for a number of %s", len(b), t)
	}
	return &Scalar{DType: t.String(), Data: b}, nil
}

// newArray is the constructor of an empty *[Array], which BUILD fills. A numpy.memmap is pickled
// with its elements, so it is treated as an array. Any other class is an error.
func newArray(args Tuple) (any, error) {
	g, err := argumentAt[Global](args, 0)
	if err != nil || g != (Global{Module: "numpy", Name: "ndarray"}) && g != (Global{Module: "numpy", Name: "memmap"}) {
		return nil, fmt.Errorf("%v is not numpy.ndarray", g)
	}
	return new(Array), nil
}

// buildArray sets a to the state (1, shape, dtype, fortran, data), and shares the memory of
// data. It returns an error if the state has another form.
func buildArray(a *Array, state any) error {
	s, _ := state.(Tuple)
	shape, err := argumentAt[Tuple](s, 1)
	if err != nil {
		return err
	}
	t, err := argumentAt[*numpyType](s, 2)
	if err != nil {
		return err
	}
	fortran, err := argumentAt[bool](s, 3)
	if err != nil {
		return err
	}
	data, err := argumentAt[[]byte](s, 4)
	if err != nil {
		return err
	}
	return fill(a, t, shape, fortran, data)
}

// newArrayFromBuffer is the constructor for _frombuffer(data, dtype, shape, order), and returns
// an *[Array], which shares the memory of data.
func newArrayFromBuffer(args Tuple) (any, error) {
	if err := checkArity(args, 4, 4); err != nil {
		return nil, err
	}
	data, ok := args[0].([]byte)
	if b, is := args[0].(*ByteArray); is {
		data, ok = b.Bytes, true
	}
	if !ok {
		return nil, fmt.Errorf("elements are %T, want bytes or a list", args[0])
	}
	t, err := argumentAt[*numpyType](args, 1)
	if err != nil {
		return nil, err
	}
	shape, err := argumentAt[Tuple](args, 2)
	if err != nil {
		return nil, err
	}
	order, err := argumentAt[string](args, 3)
	if err == nil && order != "C" && order != "F" {
		err = fmt.Errorf("order %q", order)
	}
	if err != nil {
		return nil, err
	}
	a := new(Array)
	return a, fill(a, t, shape, order == "F", data)
}

// fill sets a to an array that shares the memory of data. fortran means column-major order. It
// returns an error unless data has exactly the size that the shape and the dtype require.
func fill(a *Array, t *numpyType, shape Tuple, fortran bool, data []byte) error {
	size, err := NumpySize(t.String())
	if err != nil {
		return err
	}
	want, empty := uint64(size), false
	dims := make([]int, len(shape))
	for i := range shape {
		n, err := argumentAt[int64](shape, i)
		if err != nil {
			return err
		}
		if n < 0 {
			return fmt.Errorf("shape %v", shape)
		}
		empty = empty || n == 0
		hi, lo := bits.Mul64(want, uint64(max(n, 1)))
		if hi != 0 || lo > 1<<62 {
			return fmt.Errorf("shape %v exceeds the address space", shape)
		}
		want, dims[i] = lo, int(n)
	}
	if empty {
		want = 0
	}
	if uint64(len(data)) != want {
		return fmt.Errorf("got %d bytes for shape %v of %s", len(data), dims, t)
	}
	*a = Array{DType: t.String(), Shape: dims, Fortran: fortran, Data: data}
	return nil
}

// object returns the call that numpy uses to pickle a dtype.
func (t *numpyType) object() *Object {
	return &Object{Class: Global{Module: "numpy", Name: "dtype"}, Args: Tuple{t.code, false, true},
		HasState: true, State: Tuple{3, string(t.order), nil, nil, nil, -1, -1, 0}}
}

// parseNumpyType is the inverse of numpyType.String. The error wraps [ErrValue] if dtype is not
// a numeric dtype.
func parseNumpyType(dtype string) (*numpyType, error) {
	if _, err := NumpySize(dtype); err != nil {
		return nil, err
	}
	return &numpyType{dtype[1:], dtype[0]}, nil
}

// Arrays are written with the names of numpy 1, which numpy 2 still supports.
var (
	reconstruct = Global{Module: "numpy.core.multiarray", Name: "_reconstruct"}
	scalarOf    = Global{Module: "numpy.core.multiarray", Name: "scalar"}
)

// arrayObject returns the call that numpy uses to pickle an array in protocol 4. The error wraps
// [ErrValue] if the dtype is not numeric or the data does not have the size of the shape.
func arrayObject(a *Array) (*Object, error) {
	t, err := parseNumpyType(a.DType)
	if err != nil {
		return nil, err
	}
	shape := make(Tuple, len(a.Shape))
	for i, n := range a.Shape {
		shape[i] = int64(n)
	}
	if err := fill(new(Array), t, shape, a.Fortran, a.Data); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrValue, err)
	}
	return &Object{Class: reconstruct, Args: Tuple{Global{Module: "numpy", Name: "ndarray"}, Tuple{0}, []byte("b")},
		HasState: true, State: Tuple{1, shape, t.object(), a.Fortran, a.Data}}, nil
}

func scalarObject(s *Scalar) (*Object, error) {
	t, err := parseNumpyType(s.DType)
	if err != nil {
		return nil, err
	}
	if size, _ := NumpySize(s.DType); size != len(s.Data) {
		return nil, fmt.Errorf("%w: %d bytes for a number of %s", ErrValue, len(s.Data), t)
	}
	return &Object{Class: scalarOf, Args: Tuple{t.object(), s.Data}}, nil
}
