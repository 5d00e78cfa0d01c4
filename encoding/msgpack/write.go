package msgpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Marshal returns the encoding of v, which must have one of the types in the package documentation,
// or int. Map keys are sorted. The error wraps [ErrUnsupported], or [tensor.ErrClosed] if a tensor
// is nil or closed.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := Encode(&b, v)
	return b.Bytes(), err
}

// Save writes tensors to a file as a dict of arrays. It writes to a temporary file and renames it
// to path at the end, so a reader never sees a partial file. The error is one of [Marshal] or of
// writing.
func Save(path string, tensors map[string]*tensor.Tensor) error {
	return safefile.Replace(path, func(f *os.File) error { return Encode(f, tensors) })
}

// Encode writes the encoding of v to w in one pass. The error is one of [Marshal] or of w; a
// part of the encoding may then have been written.
func Encode(w io.Writer, v any) (err error) {
	e := encoder{msgp.NewWriter(w)}
	guarded := tensor.Catch(func() { err = e.encodeValue(v, 0) })
	return errors.Join(err, guarded, e.Flush())
}

type encoder struct{ *msgp.Writer }

// maxDepth is the maximum nesting depth of values.
const maxDepth = 200

func (e encoder) encodeValue(v any, depth int) error {
	if depth > maxDepth {
		return unsupported("values nest deeper than %d, or contain themselves", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return e.WriteNil()
	case bool:
		return e.WriteBool(v)
	case int:
		return e.WriteInt(v)
	case int64:
		return e.WriteInt64(v)
	case uint64:
		return e.WriteUint64(v)
	case float64:
		return e.WriteFloat64(v)
	case string:
		if len(v) > math.MaxUint32 {
			return unsupported("text of %d bytes, want at most %d", len(v), uint32(math.MaxUint32))
		}
		return e.WriteString(v)
	case []byte:
		if len(v) > math.MaxUint32 {
			return unsupported("%d bytes, want at most %d", len(v), uint32(math.MaxUint32))
		}
		return e.WriteBytes(v)
	case complex128:
		return e.encodePairs(2, "complex", true, "data",
			strings.ReplaceAll(strconv.FormatComplex(v, 'g', -1, 128), "i", "j"))
	case *tensor.Tensor:
		return e.encodeArray(v)
	case []any:
		err := e.WriteArrayHeader(uint32(len(v)))
		for _, item := range v {
			err = errors.Join(err, e.encodeValue(item, depth+1))
		}
		return err
	case map[string]any:
		return encodeDict(e, v, depth)
	case map[string]*tensor.Tensor:
		return encodeDict(e, v, depth)
	}
	return unsupported("%T", v)
}

func encodeDict[V any](e encoder, d map[string]V, depth int) error {
	err := e.WriteMapHeader(uint32(len(d)))
	for _, key := range slices.Sorted(maps.Keys(d)) {
		err = errors.Join(err, e.WriteString(key))
		inner := e.encodeValue(d[key], depth+1)
		if errors.Is(inner, tensor.ErrClosed) {
			inner = fmt.Errorf("%q: %w", key, inner)
		}
		err = errors.Join(err, inner)
	}
	return err
}

// encodePairs writes a map with binary keys, as msgpack-numpy does. pairs are alternating keys,
// which must be strings, and values. n is the size of the map; if it exceeds the number of
// pairs, the caller must write the others.
func (e encoder) encodePairs(n int, pairs ...any) error {
	err := e.WriteMapHeader(uint32(n))
	for i := 0; i < len(pairs); i += 2 {
		err = errors.Join(err, e.WriteBytes([]byte(pairs[i].(string))), e.encodeValue(pairs[i+1], 0))
	}
	return err
}

func (e encoder) encodeArray(t *tensor.Tensor) error {
	if err := foreignTensors.Check(t); err != nil {
		return err
	}
	name := numpy.Descr(t.DType().String())
	if n := t.DType().Size() * t.Numel(); n > math.MaxUint32 {
		return unsupported("a tensor of %d bytes, want at most %d", n, uint32(math.MaxUint32))
	}
	if name == "" {
		return unsupported("a tensor of %v, which numpy does not have", t.DType())
	}
	if err := e.encodePairs(5, "nd", true, "type", name, "kind", []byte{}); err != nil {
		return err
	}
	var whole *tensor.Tensor
	if err := tensor.Catch(func() { whole = t.Contiguous() }); err != nil {
		return err
	}
	defer whole.Close()
	err := errors.Join(e.WriteBytes([]byte("shape")), e.WriteArrayHeader(uint32(t.Dims())))
	for _, n := range t.Shape() {
		err = errors.Join(err, e.WriteInt(n))
	}
	err = errors.Join(err, e.WriteBytes([]byte("data")), e.WriteBytes(tensor.Bytes(whole)))
	runtime.KeepAlive(whole)
	return err
}
