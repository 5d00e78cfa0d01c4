package msgpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Marshal returns v as MessagePack. v is of the types of the package comment, or an int. Maps are
// written in the order of their keys. The error wraps ErrUnsupported, or tensor.ErrClosed where a
// tensor is nil or closed.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := Encode(&b, v)
	return b.Bytes(), err
}

// Save writes tensors to a file as a dict of arrays. It writes a temporary file beside path, and
// renames it to path when it is whole. The error is that of Marshal or of writing.
func Save(path string, tensors map[string]*tensor.Tensor) error {
	return safefile.Replace(path, func(f *os.File) error { return Encode(f, tensors) })
}

// Encode writes v to w as Marshal does, in one pass. The error is that of Marshal or of w.
func Encode(w io.Writer, v any) (err error) {
	e := encoder{msgpack.NewEncoder(w)}
	guarded := tensor.Catch(func() { err = e.value(v, 0) })
	return errors.Join(err, guarded)
}

type encoder struct{ *msgpack.Encoder }

// maxDepth bounds values in values.
const maxDepth = 200

func (e encoder) value(v any, depth int) error {
	if depth > maxDepth {
		return unsupported("values nest deeper than %d, or contain themselves", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int, int64, uint64, float64, string:
		return e.Encode(v)
	case []byte:
		return e.raw(v)
	case complex128:
		return e.pairs(2, "complex", true, "data", strings.ReplaceAll(strconv.FormatComplex(v, 'g', -1, 128), "i", "j"))
	case *tensor.Tensor:
		return e.array(v)
	case []any:
		err := e.EncodeArrayLen(len(v))
		for _, item := range v {
			err = errors.Join(err, e.value(item, depth+1))
		}
		return err
	case map[string]any:
		return dict(e, v, depth)
	case map[string]*tensor.Tensor:
		return dict(e, v, depth)
	}
	return unsupported("%T", v)
}

func dict[V any](e encoder, d map[string]V, depth int) error {
	err := e.EncodeMapLen(len(d))
	for _, key := range slices.Sorted(maps.Keys(d)) {
		err = errors.Join(err, e.EncodeString(key))
		inner := e.value(d[key], depth+1)
		if errors.Is(inner, tensor.ErrClosed) {
			inner = fmt.Errorf("%q: %w", key, inner)
		}
		err = errors.Join(err, inner)
	}
	return err
}

// pairs writes a map with keys of bytes, as msgpack-numpy does, or its first n pairs where others
// follow.
func (e encoder) pairs(n int, pairs ...any) error {
	err := e.EncodeMapLen(n)
	for i := 0; i < len(pairs); i += 2 {
		err = errors.Join(err, e.EncodeBytes([]byte(pairs[i].(string))), e.Encode(pairs[i+1]))
	}
	return err
}

// raw writes bytes, also where there are none.
func (e encoder) raw(b []byte) error {
	if b == nil {
		b = []byte{}
	}
	return e.EncodeBytes(b)
}

func (e encoder) array(t *tensor.Tensor) error {
	if err := foreignTensors.Check(t); err != nil {
		return err
	}
	name := numpy.Descr(t.DType().String())
	if name == "" {
		return unsupported("a tensor of %v, which numpy does not have", t.DType())
	}
	if err := e.pairs(5, "nd", true, "type", name, "kind", []byte{}); err != nil {
		return err
	}
	whole := t.Contiguous()
	defer whole.Close()
	err := errors.Join(e.EncodeBytes([]byte("shape")), e.EncodeArrayLen(t.Dims()))
	for _, n := range t.Shape() {
		err = errors.Join(err, e.EncodeInt(int64(n)))
	}
	err = errors.Join(err, e.EncodeBytes([]byte("data")), e.raw(tensor.Bytes(whole)))
	runtime.KeepAlive(whole)
	return err
}
