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

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Unmarshal reads the one value that is in b. Tensors are on the heap, and the caller closes them.
// The error wraps ErrFormat, ErrUnsupported or ErrLimit.
func Unmarshal(b []byte) (any, error) { return read(bytes.NewReader(b), int64(len(b)), 0) }

// Decode reads one value from r. It reads beyond the value's end, unless r is an io.ByteScanner,
// such as a bufio.Reader. Tensors are on the heap, and the caller closes them.
//
// maxBytes is about how many bytes the arrays, text, lists and dicts of the value may take in
// memory. It matters since a file of 1 GB may be a list of 10^9 items. 0 stands for the memory that
// the machine and the cgroup have left for this process, and for 64 MiB where they have less.
//
// The error wraps ErrFormat, ErrUnsupported or ErrLimit, or is the error of r. Where r ends early
// it wraps io.ErrUnexpectedEOF besides ErrFormat.
func Decode(r io.Reader, maxBytes int64) (any, error) {
	if _, ok := r.(io.ByteScanner); !ok {
		r = bufio.NewReader(r)
	}
	return newDecoder(r, math.MaxInt64, maxBytes).value(0)
}

// Load reads the arrays in a file to the heap. The caller closes them. An array in dicts and lists
// is named by their keys and numbers, with dots between, such as "layers.0.weight"; a file that is
// one array names it "tensor". others are the names of all values that are not arrays, in order.
//
// maxBytes limits the memory as in Decode. The error is an *encoding.FileError that wraps
// ErrFormat, ErrUnsupported or ErrLimit, or is the error of opening the file.
func Load(path string, maxBytes int64) (all map[string]*tensor.Tensor, others []string, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("load tensors: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("load tensors: %w", err)
	}
	v, err := read(bufio.NewReaderSize(f, 1<<16), info.Size(), maxBytes)
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

// A collection has the tensors of a value, and the names of its other parts.
type collection struct {
	tensors map[string]*tensor.Tensor
	others  []string
}

// add adds what is in v.
func (c *collection) add(name string, v any) (err error) {
	switch v := v.(type) {
	case *tensor.Tensor:
		if name == "" {
			name = ".tensor"
		}
		if _, twice := c.tensors[name[1:]]; twice {
			return malformed("two tensors are called %q", name[1:])
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

// foreignTensors makes tensors of what comes.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

type decoder struct {
	*msgpack.Decoder
	size  int64 // of all that there is
	tally *safefile.Limit
}

// What values take beside their bytes, about: an item of a list, and one of a dict, with its key.
const (
	itemCost  = 32
	entryCost = 128
)

func newDecoder(r io.Reader, size, maxBytes int64) decoder {
	return decoder{msgpack.NewDecoder(r), size,
		&safefile.Limit{Most: maxBytes, Fills: safefile.UnknownSize, Remedy: "raise maxBytes if that is meant"}}
}

// read reads one value, and nothing must follow it.
func read(r io.Reader, size, maxBytes int64) (any, error) {
	d := newDecoder(r, size, maxBytes)
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.PeekCode(); err != io.EOF {
		return nil, malformed("bytes follow its end")
	}
	return v, nil
}

func (d decoder) value(depth int) (v any, err error) {
	if depth > maxDepth {
		return nil, malformed("values nest deeper than %d", maxDepth)
	}
	code, err := d.PeekCode()
	if err != nil {
		return nil, damaged(err)
	}
	switch {
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		return d.dict(depth)
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		return d.list(depth)
	case msgpcode.IsBin(code):
		b, err := d.bytes()
		if err != nil {
			return nil, err
		}
		return tensor.Bytes(b), nil
	case msgpcode.IsExt(code):
		return nil, unsupported("a value of an extension type")
	}
	if v, err = d.DecodeInterfaceLoose(); err != nil {
		return nil, damaged(err)
	}
	if s, ok := v.(string); ok {
		err = d.tally.Add(int64(len(s)))
	}
	if n, ok := v.(uint64); ok && n <= math.MaxInt64 {
		return int64(n), err
	}
	return v, err
}

func (d decoder) list(depth int) (any, error) {
	n, err := d.DecodeArrayLen()
	if err != nil {
		return nil, damaged(err)
	}
	list := []any{}
	for range n {
		v, err := d.value(depth + 1)
		if err == nil {
			err = d.tally.Add(itemCost)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// bytes reads bytes into a tensor, so that they are an array's own.
func (d decoder) bytes() (*tensor.Tensor, error) {
	n, err := d.DecodeBytesLen()
	if err != nil {
		return nil, damaged(err)
	}
	if int64(n) > d.size {
		return nil, malformed("%d bytes in a file of %d", n, d.size)
	}
	if err := d.tally.Add(int64(max(n, 0))); err != nil {
		return nil, err
	}
	t, err := foreignTensors.ReadFrom(d, max(n, 0))
	if err != nil {
		return nil, damaged(err)
	}
	return t, nil
}

// Read fills b, so that a decoder is an io.Reader of the bytes that come next.
func (d decoder) Read(b []byte) (int, error) {
	if err := d.ReadFull(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// dict reads a map: a dict, or what stands for an array or a complex number.
func (d decoder) dict(depth int) (any, error) {
	n, err := d.DecodeMapLen()
	if err != nil {
		return nil, damaged(err)
	}
	m, data := map[string]any{}, (*tensor.Tensor)(nil)
	for range n {
		key, err := d.value(depth + 1)
		if err == nil {
			err = d.tally.Add(entryCost)
		}
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if b, is := key.([]byte); is {
			name, ok = string(b), true
		}
		if _, twice := m[name]; !ok || twice {
			return nil, malformed("a key of %T, or %q twice", key, name)
		}
		if code, err := d.PeekCode(); err == nil && name == "data" && msgpcode.IsBin(code) {
			if data, err = d.bytes(); err != nil {
				return nil, err
			}
			m[name] = tensor.Bytes(data)
			continue
		}
		if m[name], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	switch {
	case m["complex"] == true:
		return number(m["data"])
	case m["nd"] != nil && data != nil:
		return array(m, data)
	}
	return m, nil
}

// array makes a tensor of {nd, type, shape, data}; a scalar has no shape.
func array(m map[string]any, data *tensor.Tensor) (any, error) {
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

// number reads a complex number as Python prints it.
func number(v any) (any, error) {
	s, _ := v.(string)
	c, err := strconv.ParseComplex(strings.ReplaceAll(s, "j", "i"), 128)
	if err != nil {
		return nil, malformed("a complex number %.40q", s)
	}
	return c, nil
}
