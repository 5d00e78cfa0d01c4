package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/tensor"
)

const (
	lengthSize = 8         // size of the header length field
	maxHeader  = 100 << 20 // limit of the reference implementation
	metadata   = "__metadata__"
)

// Info is the dtype and the shape of a tensor in a [File].
type Info struct {
	DType      tensor.DType
	Shape      []int
	begin, end uint64 // offsets from the end of the header
}

// header is a decoded and validated header: the tensors by name, and the metadata.
type header struct {
	infos map[string]Info
	meta  map[string]string
}

// anySize is the size of a body that ends with its last tensor.
const anySize = math.MaxUint64

// readHeader reads the header of a file of size bytes, or of a stream if size is negative. read is
// the number of bytes consumed. The error wraps [ErrHeader], [ErrOffsets] or [ErrDType], or is the
// error of r. If it is about a tensor, name is the tensor's name.
func readHeader(r io.Reader, size int64) (h header, read int64, name string, err error) {
	var length [lengthSize]byte
	if err := readFull(r, length[:], ErrHeader); err != nil {
		return h, 0, "", err
	}
	n, body := binary.LittleEndian.Uint64(length[:]), uint64(anySize)
	if size >= 0 {
		body = uint64(size-lengthSize) - min(n, uint64(size-lengthSize))
	}
	if n > maxHeader || size >= 0 && n > uint64(size-lengthSize) {
		return h, 0, "", fmt.Errorf("%w: length of %d bytes exceeds the limit or the file", ErrHeader, n)
	}
	var raw bytes.Buffer // grows with the input
	if _, err := io.CopyN(&raw, r, int64(n)); err == io.EOF {
		return h, 0, "", fmt.Errorf("%w: header is truncated: %w", ErrHeader, io.ErrUnexpectedEOF)
	} else if err != nil {
		return h, 0, "", err
	}
	h, name, err = parseHeader(raw.Bytes(), body)
	return h, lengthSize + int64(n), name, err
}

// parseHeader decodes and validates a header. body is the number of bytes that follow it, or
// anySize if that is unknown. The error wraps [ErrHeader], [ErrOffsets] or [ErrDType]. If it is
// about a tensor, name is the tensor's name.
func parseHeader(raw []byte, body uint64) (h header, name string, err error) {
	if !utf8.Valid(raw) {
		return h, "", fmt.Errorf("%w: not UTF-8", ErrHeader)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return h, "", fmt.Errorf("%w: want { at the start", ErrHeader)
	}
	h = header{infos: map[string]Info{}, meta: map[string]string{}}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = decodeObject(d, func(key string) error {
		if key == metadata {
			return decodeObject(d, func(key string) (err error) { h.meta[key], err = decodeText(d); return err })
		}
		name = key
		info, err := parseInfo(d)
		h.infos[key] = info
		return err
	})
	if err != nil {
		return h, name, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return h, "", fmt.Errorf("%w: more than one JSON value", ErrHeader)
	}
	name, err = h.checkOffsets(body)
	return h, name, err
}

// parseInfo decodes the header entry of a tensor. All three fields must be present, and no others;
// otherwise the error wraps [ErrHeader]. For an unknown dtype it wraps [ErrDType].
func parseInfo(d *json.Decoder) (info Info, err error) {
	seen := 0
	err = decodeObject(d, func(key string) error {
		seen++
		switch key {
		case "dtype":
			code, err := decodeText(d)
			if err != nil {
				return err
			}
			info.DType, err = parseCode(code)
			return err
		case "shape":
			dims, err := decodeNumbers(d)
			for _, n := range dims {
				info.Shape = append(info.Shape, int(n))
			}
			return err
		case "data_offsets":
			offsets, err := decodeNumbers(d)
			if err == nil && len(offsets) != 2 {
				err = fmt.Errorf("%w: got %d offsets, want 2", ErrHeader, len(offsets))
			}
			if err == nil {
				info.begin, info.end = offsets[0], offsets[1]
			}
			return err
		}
		return fmt.Errorf("%w: unknown field %q", ErrHeader, key)
	})
	if err == nil && seen != 3 {
		err = fmt.Errorf("%w: dtype, shape or data_offsets are missing", ErrHeader)
	}
	return info, err
}

// checkOffsets verifies that the tensors fill a body of the given size consecutively. Otherwise
// it returns the name of the first tensor that does not fit, or "" if bytes are left over, and
// an error that wraps [ErrOffsets].
func (h header) checkOffsets(body uint64) (name string, err error) {
	var at uint64
	for _, name := range h.names() {
		info := h.infos[name]
		size, ok := info.size()
		switch {
		case !ok:
			return name, fmt.Errorf("%w: the size of shape %v overflows", ErrOffsets, info.Shape)
		case info.begin != at || info.end < info.begin:
			return name, fmt.Errorf("%w: got [%d, %d), want a start of %d", ErrOffsets, info.begin,
				info.end, at)
		case info.end-info.begin != size:
			return name, fmt.Errorf("%w: shape %v of %v needs %d bytes, got %d", ErrOffsets, info.Shape,
				info.DType, size, info.end-info.begin)
		case info.end > body:
			return name, fmt.Errorf("%w: tensors end at byte %d of %d: the file is truncated",
				ErrOffsets, info.end, body)
		}
		at = info.end
	}
	if at != body && body != anySize {
		return "", fmt.Errorf("%w: %d bytes belong to no tensor", ErrOffsets, body-at)
	}
	return "", nil
}

// names returns the names of the tensors in file order, in a new slice.
func (h header) names() []string {
	names := make([]string, 0, len(h.infos))
	for name := range h.infos {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := h.infos[a], h.infos[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	return names
}

// size returns the size of the tensor in bytes. ok is false if it overflows an int.
func (i Info) size() (size uint64, ok bool) {
	n, err := i.DType.SizeOf(i.Shape...)
	return uint64(n), err == nil
}

// decodeObject decodes a JSON object. It calls field for each key, which must decode the value,
// and stops at its first error. The error wraps [ErrHeader] for a duplicate key and for other
// JSON.
func decodeObject(d *json.Decoder, field func(key string) error) error {
	if err := expectDelimiter(d, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := decodeText(d)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%w: duplicate %q", ErrHeader, key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	return expectDelimiter(d, '}')
}

func expectDelimiter(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHeader, err)
	}
	if t != want {
		return fmt.Errorf("%w: got %v, want %v", ErrHeader, t, want)
	}
	return nil
}

func decodeText(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrHeader, err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%w: got %v, want a string", ErrHeader, t)
	}
	return s, nil
}

// decodeNumbers decodes an array of non-negative integers. The error wraps [ErrHeader] if the
// JSON is another value or a number overflows an int.
func decodeNumbers(d *json.Decoder) (list []uint64, err error) {
	if err := expectDelimiter(d, '['); err != nil {
		return nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrHeader, err)
		}
		n, _ := t.(json.Number)
		v, err := strconv.ParseUint(n.String(), 10, strconv.IntSize-1)
		if err != nil {
			return nil, fmt.Errorf("%w: got %v, want a size", ErrHeader, t)
		}
		list = append(list, v)
	}
	return list, expectDelimiter(d, ']')
}
