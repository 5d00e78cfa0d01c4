package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/tensor"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 20
	alignment = 64 // of the elements, in bytes
)

// header is a decoded array header. readHeader returns it.
type header struct {
	dtype   tensor.DType
	swapped bool // big-endian
	fortran bool
	shape   []int
	size    int // bytes of the elements
	length  int // bytes of the header
}

// readHeader reads a header of version 1, 2 or 3, and nothing after it. The error wraps
// [ErrFormat] or [ErrDType], or is the error of r.
func readHeader(r io.Reader) (h header, err error) {
	var start [len(magic) + 2]byte
	if err := readFull(r, start[:]); err != nil {
		return h, err
	}
	if string(start[:len(magic)]) != magic {
		return h, malformed("file does not start with %q", magic)
	}
	width := 4
	switch version := start[len(magic)]; version {
	case 1:
		width = 2
	case 2, 3:
	default:
		return h, malformed("version %d", version)
	}
	length := make([]byte, 4)
	if err := readFull(r, length[:width]); err != nil {
		return h, err
	}
	n := int(binary.LittleEndian.Uint32(length))
	if n > maxHeader {
		return h, malformed("a header of %d bytes", n)
	}
	text := make([]byte, n)
	if err := readFull(r, text); err != nil {
		return h, err
	}
	h, err = parseHeader(string(text))
	h.length = len(start) + width + n
	return h, err
}

// parseHeader parses a dict such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
// It does not set length. The error wraps [ErrFormat], or [ErrDType] if package tensor lacks the
// dtype.
func parseHeader(text string) (h header, err error) {
	p := literal{rest: text}
	d, err := p.parseDict()
	if err != nil {
		return h, err
	}
	descr, ok := d["descr"].(string)
	if _, list := d["descr"].([]any); list {
		return h, fmt.Errorf("%w: an array of records: %.100s", ErrDType, strings.TrimSpace(text))
	}
	order, ok2 := d["fortran_order"].(bool)
	shape, ok3 := d["shape"].([]any)
	if !ok || !ok2 || !ok3 || len(d) != 3 {
		return h, malformed("the header is %.100q", text)
	}
	h.fortran = order
	name, swapped := numpy.Parse(descr)
	h.swapped = swapped
	if h.dtype, err = tensor.ParseDType(name); err != nil {
		return h, fmt.Errorf("%w: %w", ErrDType, err)
	}
	for _, n := range shape {
		k, ok := n.(int)
		if !ok {
			return h, malformed("the shape is %v", shape)
		}
		h.shape = append(h.shape, k)
	}
	if h.size, err = h.dtype.SizeOf(h.shape...); err != nil {
		return h, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil
}

// fileStrides returns the strides of the elements in the file, in elements.
func (h header) fileStrides() []int {
	strides, step := make([]int, len(h.shape)), 1
	for i := range h.shape {
		if !h.fortran {
			i = len(h.shape) - 1 - i
		}
		strides[i] = step
		step *= max(h.shape[i], 1)
	}
	return strides
}

// viewStorage returns the array as a view of the storage, which the caller must close.
func (h header) viewStorage(s *tensor.Storage) (*tensor.Tensor, error) {
	return s.View(h.dtype, h.shape, h.fileStrides(), 0)
}

// appendHeader appends the header of a contiguous tensor. Like numpy, it reserves space for the
// first dimension to grow. The error wraps [ErrDType] if numpy does not support the dtype.
func appendHeader(b []byte, t *tensor.Tensor) ([]byte, error) {
	descr := numpy.Descr(t.DType().String())
	if descr == "" {
		return nil, fmt.Errorf("%w: numpy has no %v", ErrDType, t.DType())
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr)
	for i, n := range t.Shape() {
		if i > 0 {
			text.WriteString(" ")
		}
		text.WriteString(strconv.Itoa(n) + ",")
	}
	if t.Dims() > 1 {
		text.Truncate(text.Len() - 1)
	}
	text.WriteString("), }")
	const room = 21 // digits of the first dimension
	if t.Dims() > 0 {
		text.WriteString(strings.Repeat(" ", room-len(strconv.Itoa(t.Dim(0)))))
	}
	const start = len(magic) + 4
	pad := alignment - (start+text.Len()+1)%alignment
	text.WriteString(strings.Repeat(" ", pad) + "\n")
	b = append(append(b, magic...), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(text.Len()))
	return append(b, text.Bytes()...), nil
}

// normalizeElements converts the elements in b, in place, to native byte order, and normalizes
// the bytes of bools to 0 and 1.
func (h header) normalizeElements(b []byte) {
	if h.swapped {
		numpy.Swap(h.dtype.String(), b)
	}
	numpy.Clean(h.dtype.String(), b)
}

// sortedKeys returns the keys of a map in sorted order, in a new slice.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
