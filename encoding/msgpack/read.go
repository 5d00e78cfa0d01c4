package msgpack

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Unmarshal decodes the single value in b. The caller must close its tensors, which are on the
// heap. The error wraps [ErrFormat], also if bytes follow the value, [ErrUnsupported] or
// [ErrLimit].
func Unmarshal(b []byte) (any, error) { return read(bytes.NewReader(b), int64(len(b)), 0) }

// Options are options of [Decode] and [Load]. The zero value is valid.
type Options struct {
	// MaxBytes limits the approximate memory for the arrays, strings, lists and dicts of a value.
	// The limit is needed because a file of 1 GB can encode a list of 10^9 items. If it is 0, the
	// limit is the memory available to the process on the machine and in its cgroup, but at least
	// 64 MiB.
	MaxBytes int64
}

// Decode reads one value from r. It may read past the end of the value, unless r is an
// [io.ByteScanner] such as a [bufio.Reader]. The caller must close the tensors, which are on the
// heap.
//
// The error wraps [ErrFormat], [ErrUnsupported] or [ErrLimit], or is the error of r. If r ends
// early, it wraps both [ErrFormat] and [io.ErrUnexpectedEOF].
func Decode(r io.Reader, opts Options) (any, error) {
	if _, ok := r.(io.ByteScanner); !ok {
		r = bufio.NewReader(r)
	}
	return newDecoder(r, math.MaxInt64, opts.MaxBytes).decodeValue(0)
}

// Load reads the arrays in a file to the heap. The caller must close them. An array in dicts and
// lists is named by the keys and indices that lead to it, joined by dots, for example
// "layers.0.weight". If the file is a single array, its name is "tensor". others contains the names
// of all other values in sorted order.
//
// The error is an [*encoding.FileError] that wraps
// [ErrFormat], [ErrUnsupported] or [ErrLimit], or is the error of opening the file.
func Load(path string, opts Options) (all map[string]*tensor.Tensor, others []string, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("load tensors: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("load tensors: %w", err)
	}
	v, err := read(bufio.NewReaderSize(f, 1<<16), info.Size(), opts.MaxBytes)
	c := collection{tensors: map[string]*tensor.Tensor{}}
	if err == nil {
		err = c.add("", v)
	}
	if err != nil {
		return nil, nil, &encoding.FileError{Path: path, Err: err}
	}
	slices.Sort(c.others)
	return c.tensors, c.others, nil
}

// collection collects the tensors of a value, and the names of its other parts. tensors must not
// be nil.
type collection struct {
	tensors map[string]*tensor.Tensor
	others  []string
}

// add adds the tensors in v to c.tensors, and the names of the other values in v to c.others. name
// is the path of v: empty, or with a dot before each key. The error wraps [ErrFormat] if two
// tensors have the same name.
func (c *collection) add(name string, v any) (err error) {
	switch v := v.(type) {
	case *tensor.Tensor:
		if name == "" {
			name = ".tensor"
		}
		if _, twice := c.tensors[name[1:]]; twice {
			return malformed("duplicate tensor name %q", name[1:])
		}
		c.tensors[name[1:]] = v
	case []any:
		for i := 0; i < len(v) && err == nil; i++ {
			err = c.add(fmt.Sprint(name, ".", i), v[i])
		}
	case map[string]any:
		for key, item := range v {
			if err := c.add(name+"."+key, item); err != nil {
				return err
			}
		}
	default:
		c.others = append(c.others, strings.TrimPrefix(cmp.Or(name, "the only value"), "."))
	}
	return err
}

// foreignTensors creates tensors from streams.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// decoder decodes headers and numbers through its [msgp.Reader], and reads strings and bytes
// directly. newDecoder makes it. One goroutine may use it.
type decoder struct {
	*msgp.Reader
	from  io.Reader
	size  int64 // size of the input in bytes
	limit *safefile.Limit
}

// Approximate memory of a list item and of a dict entry, not including their contents.
const (
	itemCost  = 32
	entryCost = 128
)

func newDecoder(r io.Reader, size, maxBytes int64) decoder {
	return decoder{msgp.NewReaderSize(unbuffered{r}, 0), r, size,
		&safefile.Limit{Most: maxBytes, Fills: safefile.UnknownSize,
			Remedy: "raise Options.MaxBytes if this is intended"}}
}

// unbuffered returns at most one byte per Read. A [msgp.Reader] fills its buffer only as far as
// necessary, so it never reads past the end of a value, and its buffer is empty after each header.
type unbuffered struct{ r io.Reader }

func (u unbuffered) Read(b []byte) (int, error) { return u.r.Read(b[:min(len(b), 1)]) }

// read decodes a value that must extend to the end of r, which has size bytes. maxBytes is the
// limit of [Options], and 0 means its default. The error wraps [ErrFormat], [ErrUnsupported] or
// [ErrLimit], or is the error of r.
func read(r io.Reader, size, maxBytes int64) (any, error) {
	d := newDecoder(r, size, maxBytes)
	v, err := d.decodeValue(0)
	if err != nil {
		return nil, err
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, malformed("data after the end")
	}
	return v, nil
}

func (d decoder) decodeValue(depth int) (v any, err error) {
	if depth > maxDepth {
		return nil, malformed("values nest deeper than %d", maxDepth)
	}
	kind, err := d.NextType()
	if err != nil {
		return nil, wrapFormat(err)
	}
	switch kind {
	case msgp.MapType:
		return d.decodeDict(depth)
	case msgp.ArrayType:
		return d.decodeList(depth)
	case msgp.BinType:
		b, err := d.decodeBytes()
		if err != nil {
			return nil, err
		}
		return tensor.Bytes(b), nil
	case msgp.StrType:
		return d.decodeText()
	case msgp.NilType:
		err = d.ReadNil()
	case msgp.BoolType:
		v, err = d.ReadBool()
	case msgp.Float32Type:
		var x float32
		x, err = d.ReadFloat32()
		v = float64(x)
	case msgp.Float64Type:
		v, err = d.ReadFloat64()
	case msgp.IntType:
		v, err = d.ReadInt64()
	case msgp.UintType:
		var n uint64
		if n, err = d.ReadUint64(); n <= math.MaxInt64 {
			v = int64(n)
		} else {
			v = n
		}
	case msgp.InvalidType:
		return nil, malformed("a type code that MessagePack does not define")
	default:
		return nil, unsupported("a value of an extension type")
	}
	if err != nil {
		return nil, wrapFormat(err)
	}
	return v, nil
}

// decodeText reads a string; the result has no other type. Memory for a long string is allocated as
// its bytes arrive. The error wraps [ErrFormat] or [ErrLimit].
func (d decoder) decodeText() (any, error) {
	n, err := d.ReadStringHeader()
	if err != nil {
		return nil, wrapFormat(err)
	}
	if int64(n) > d.size {
		return nil, malformed("text of %d bytes in a file of %d", n, d.size)
	}
	if err := d.limit.Add(int64(n)); err != nil {
		return nil, err
	}
	var b strings.Builder
	if n <= 1<<16 {
		b.Grow(int(n))
	}
	if _, err := io.CopyN(&b, d.from, int64(n)); err != nil {
		return nil, wrapFormat(err)
	}
	return b.String(), nil
}

func (d decoder) decodeList(depth int) (any, error) {
	n, err := d.ReadArrayHeader()
	if err != nil {
		return nil, wrapFormat(err)
	}
	list := []any{}
	for range n {
		v, err := d.decodeValue(depth + 1)
		if err == nil {
			err = d.limit.Add(itemCost)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// decodeBytes reads binary data into a tensor of bytes, so that an array can use it without a
// copy. The error wraps [ErrFormat] or [ErrLimit].
func (d decoder) decodeBytes() (*tensor.Tensor, error) {
	n, err := d.ReadBytesHeader()
	if err != nil {
		return nil, wrapFormat(err)
	}
	if int64(n) > d.size {
		return nil, malformed("%d bytes in a file of %d", n, d.size)
	}
	if err := d.limit.Add(int64(n)); err != nil {
		return nil, err
	}
	t, err := foreignTensors.ReadFrom(d.from, int(n))
	if err != nil {
		return nil, wrapFormat(err)
	}
	return t, nil
}

// decodeDict reads a map, which may encode a dict, an array or a complex number. It returns a
// map[string]any, a *[tensor.Tensor] or a complex128. depth is the number of values around it.
func (d decoder) decodeDict(depth int) (any, error) {
	n, err := d.ReadMapHeader()
	if err != nil {
		return nil, wrapFormat(err)
	}
	m, data := map[string]any{}, (*tensor.Tensor)(nil)
	for range n {
		key, err := d.decodeValue(depth + 1)
		if err == nil {
			err = d.limit.Add(entryCost)
		}
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if b, is := key.([]byte); is {
			name, ok = string(b), true
		}
		if _, twice := m[name]; !ok || twice {
			return nil, malformed("got key of type %T or duplicate key %q", key, name)
		}
		if kind, err := d.NextType(); err == nil && name == "data" && kind == msgp.BinType {
			if data, err = d.decodeBytes(); err != nil {
				return nil, err
			}
			m[name] = tensor.Bytes(data)
			continue
		}
		if m[name], err = d.decodeValue(depth + 1); err != nil {
			return nil, err
		}
	}
	switch {
	case m["complex"] == true:
		return parseComplex(m["data"])
	case m["nd"] != nil && data != nil:
		return decodeArray(m, data)
	}
	return m, nil
}

// decodeArray converts a map with the keys nd, type, shape and data to a tensor. A scalar has no
// shape. data must hold the bytes of the key data; the result uses its storage, and data must not
// be used or closed afterwards, even if there is an error. The error wraps [ErrFormat] or
// [ErrUnsupported].
func decodeArray(m map[string]any, data *tensor.Tensor) (any, error) {
	name, ok := m["type"].(string)
	if b, is := m["type"].([]byte); is {
		name, ok = string(b), true
	}
	if !ok {
		return nil, unsupported("an array of records: %.100v", m["type"])
	}
	name, swapped := numpy.Parse(name)
	dt, err := tensor.ParseDType(name)
	if err != nil {
		return nil, unsupported("%v", err)
	}
	var shape []int
	list, _ := m["shape"].([]any)
	for _, n := range list {
		k, ok := n.(int64)
		if !ok {
			return nil, malformed("the shape is %v", list)
		}
		shape = append(shape, int(k))
	}
	if n, err := dt.SizeOf(shape...); err != nil || n != data.Nbytes() {
		return nil, malformed("%d bytes for an array of %v %v", data.Nbytes(), dt, shape)
	}
	if swapped {
		numpy.Swap(dt.String(), tensor.Bytes(data))
	}
	numpy.Clean(dt.String(), tensor.Bytes(data))
	defer data.Close()
	return data.Storage().View(dt, shape, nil, 0)
}

// parseComplex parses a complex number in Python's notation to a complex128. The error wraps
// [ErrFormat] if v is no such string.
func parseComplex(v any) (any, error) {
	s, _ := v.(string)
	c, err := strconv.ParseComplex(strings.ReplaceAll(s, "j", "i"), 128)
	if err != nil {
		return nil, malformed("a complex number %.40q", s)
	}
	return c, nil
}
