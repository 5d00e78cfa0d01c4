package hdf5

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// Padding of strings that are shorter than their fixed size.
const (
	padNull  = 0 // terminated by the first NUL
	padZeros = 1
	padSpace = 2
)

// text describes a string datatype, if is is set: strings of a fixed size, or, if long is set,
// strings of variable length, which are stored in the global heap.
type text struct {
	is, long bool
	pad      int
}

// parseText decodes the class bits of a fixed-size string datatype. The error wraps [ErrFormat].
func (t *datatype) parseText(bits int) error {
	t.text = text{is: true, pad: bits & 15}
	if t.text.pad > padSpace || t.size < 1 {
		return malformed("text of %d bytes with padding type %d", t.size, t.text.pad)
	}
	return nil
}

// parseLong decodes a variable-length datatype. Only strings are supported; the error wraps
// [ErrUnsupported] for sequences.
func (t *datatype) parseLong(c *cursor, bits, depth int) error {
	if bits&15 != 1 {
		return unsupported("elements that are lists of any length")
	}
	t.text = text{is: true, long: true}
	if t.size != longSize {
		return malformed("strings of any length in %d bytes", t.size)
	}
	_, err := parseDatatype(c, depth+1) // the character type
	return err
}

// longSize is the size in bytes of a reference to a string in the global heap: length, collection
// address and object index.
const longSize = 4 + 8 + 4

// Strings reads a data set of strings. It returns the elements in row-major order and the shape.
// The error wraps [ErrName], [ErrFormat], [ErrLimit], or [ErrUnsupported] if the data set does not
// contain strings.
func (f *File) Strings(name string) (values []string, shape []int, err error) {
	d, err := f.find(name)
	if err == nil && !d.kind.text.is {
		err = unsupported("to read %v as text", d.kind.dtype)
	}
	if err == nil {
		values, err = d.readStrings()
	}
	if err != nil {
		return nil, nil, f.wrapError(name, err)
	}
	return values, d.Shape(), nil
}

// readStrings reads all elements of a data set of strings, in row-major order. The error wraps
// [ErrLimit] or [ErrFormat].
func (d *Dataset) readStrings() ([]string, error) {
	size, err := d.readableSize()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if size > 0 {
		if err := d.read(b, make([]int, len(d.shape)), d.shape); err != nil {
			return nil, err
		}
	}
	const header = 16 // size of a Go string header
	n := int64(size / d.kind.size)
	if err := safefile.CheckSize(n*header, d.maxExpandedSize()*header, d.most,
		"raise File.MaxBytes if this many strings are intended"); err != nil {
		return nil, err
	}
	values := make([]string, n)
	heaps := collections{source: d.tree.source, read: map[uint64]map[int]string{}}
	for i := range values {
		if values[i], err = d.kind.text.decodeElement(b[i*d.kind.size:][:d.kind.size], &heaps); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// decodeElement decodes one element, without its padding. A string of variable length is read
// from heaps.
func (t text) decodeElement(b []byte, heaps *collections) (string, error) {
	switch {
	case t.long:
		c := &cursor{b: b}
		return heaps.get(c.readInt(4), c.readUint(8), c.readInt(4))
	case t.pad == padNull:
		b, _, _ = bytes.Cut(b, []byte{0})
	case t.pad == padZeros:
		b = bytes.TrimRight(b, "\x00")
	default:
		b = bytes.TrimRight(b, " ")
	}
	return string(b), nil
}

// collections reads global heap collections and caches those that were read. One goroutine may
// use it.
type collections struct {
	source
	read map[uint64]map[int]string
}

// get returns the first n bytes of the object with the given index in the collection at address,
// or "" if n is 0 or there is no address. The error wraps [ErrFormat] if there is no such
// object.
func (h *collections) get(n int, address uint64, number int) (string, error) {
	if n == 0 || address == 0 || address == undefined {
		return "", nil
	}
	if h.read[address] == nil {
		all, err := h.readCollection(address)
		if err != nil {
			return "", err
		}
		h.read[address] = all
	}
	s, ok := h.read[address][number]
	if !ok || n > len(s) {
		return "", malformed("%d bytes of object %d in the global heap at %d", n, number, address)
	}
	return s[:n], nil
}

const collectionHead = 4 + 4 + 8 // signature, version, size

// readCollection reads all objects of the global heap collection at address, by index. The error
// wraps [ErrFormat].
func (h *collections) readCollection(address uint64) (map[int]string, error) {
	c, err := h.readSigned("GCOL", address, collectionHead)
	if err != nil {
		return nil, err
	}
	version, size := c.readInt(4), c.readUint(8)
	if version != 1 || size < collectionHead || size > maxHeader {
		return nil, malformed("a global heap of version %d and %d bytes", version, size)
	}
	b, err := h.readAt(address, int(size))
	if err != nil {
		return nil, err
	}
	all := map[int]string{}
	for c := (&cursor{b: b[collectionHead:]}); len(c.b) >= 16; {
		number := c.readInt(2)
		c.takeBytes(6)
		n := c.readInt(8)
		if number == 0 { // free space
			break
		}
		all[number] = string(c.takeBytes(n))
		c.takeBytes(min(-n&7, len(c.b)))
		if c.short {
			return nil, malformed("object %d in the global heap at %d", number, address)
		}
	}
	return all, nil
}

// appendCollection returns a global heap collection that contains the strings as objects 1, 2
// and so on. It is padded with free space to the minimum size of a collection, 4096 bytes.
func appendCollection(values []string) []byte {
	const least, free = 4096, 16
	b := append([]byte("GCOL"), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for i, s := range values {
		b = le.AppendUint16(b, uint16(i+1))
		b = le.AppendUint64(append(b, 1, 0, 0, 0, 0, 0), uint64(len(s)))
		b = append(append(b, s...), make([]byte, -len(s)&7)...)
	}
	rest := max(free, least-len(b))
	b = le.AppendUint64(append(b, make([]byte, 8)...), uint64(rest))
	b = append(b, make([]byte, rest-free)...)
	le.PutUint64(b[8:], uint64(len(b)))
	return b
}

// perCollection is the maximum number of objects that are written to a collection. Object indices
// have 16 bits.
const perCollection = 1 << 12

// putStrings writes strings to the global heap and returns the references to them, each longSize
// bytes. Empty strings have a zero reference. It stores an error in w.err.
func (w *Writer) putStrings(values []string) (refs []byte) {
	for start := 0; start < len(values); {
		end, size := start, 0
		for end < len(values) && end-start < perCollection && (end == start || size+len(values[end]) < maxHeader/2) {
			size += len(values[end])
			end++
		}
		address := w.append(appendCollection(values[start:end]))
		for i, s := range values[start:end] {
			if s == "" {
				refs = append(refs, make([]byte, longSize)...)
				continue
			}
			refs = le.AppendUint32(refs, uint32(len(s)))
			refs = le.AppendUint64(refs, address)
			refs = le.AppendUint32(refs, uint32(i+1))
		}
		start = end
	}
	return refs
}

// textDatatype returns the datatype message of UTF-8 strings of variable length.
func textDatatype() []byte {
	const utf8 = 1
	b := appendDatatypeHead(nil, classLong, 1, 1|utf8<<8, longSize)
	b = appendDatatypeHead(b, classText, 1, utf8<<4, 1)
	return b
}

// Strings writes a data set of strings. values must be in row-major order. Without a shape, the
// data set has one dimension. The error wraps [ErrName] if the name is invalid or exists,
// [ErrShape] if the number of values does not match the shape, or [ErrUnsupported] if a string
// contains a zero byte or is too long.
func (w *Writer) Strings(name string, values []string, shape ...int) error {
	if shape == nil {
		shape = []int{len(values)}
	}
	d := &Output{w: &w.sink, Dataset: Dataset{tree: &w.tree,
		kind: datatype{size: longSize, text: text{is: true, long: true}}, shape: slices.Clone(shape)}}
	err := checkText(values...)
	if err == nil {
		err = w.add(name, d)
	}
	if size := len(values) * longSize; err == nil && size != int(d.size) {
		err = fmt.Errorf("%w: %d strings in a shape of %v", ErrShape, len(values), shape)
		delete(w.datasets, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: data set %q: %w", w.path, name, err)
	}
	if len(values) > 0 {
		w.writeAt(d.address, w.putStrings(values))
	}
	return w.err
}

// checkText returns an error that wraps [ErrUnsupported] if a string cannot be stored, because
// it contains a zero byte or has more than 16 MiB.
func checkText(values ...string) error {
	for _, s := range values {
		if strings.ContainsRune(s, 0) || len(s) > maxHeader/4 {
			return fmt.Errorf("%w: text with a zero byte or of %d bytes", ErrUnsupported, len(s))
		}
	}
	return nil
}
