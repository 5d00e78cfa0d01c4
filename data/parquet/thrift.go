package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A walk parses a struct in Thrift's compact protocol, and verifies that every value in it is
// complete. It is made by readStruct, which consumes it from b. Its methods return
// [io.ErrUnexpectedEOF] if b is too short.
type walk struct {
	b     []byte
	items int // number of list items that may still be read
}

// A visitor is called for each field of a struct. It must return true if it has read the field's
// value.
type visitor func(id int, kind byte) (read bool, err error)

// readStruct calls visit for a visitor of the struct at the start of b, passes each field to
// that visitor, and returns the length of the struct in bytes. It returns [io.ErrUnexpectedEOF]
// if b is too short, an error that wraps [ErrSize] if the lists have more than maxItems items in
// total, an error that wraps [ErrFormat], or the error of the visitor.
func readStruct(b []byte, maxItems int, visit func(w *walk) visitor) (n int, err error) {
	w := &walk{b, maxItems}
	err = w.readStruct(0, visit(w))
	return len(b) - len(w.b), err
}

// Type codes of Thrift's compact protocol.
const (
	typeTrue = iota + 1
	typeFalse
	typeByte
	typeInt16
	typeInt32
	typeInt64
	typeDouble
	typeBinary
	typeList
	typeSet
	typeMap
	typeStruct
)

// deepest is the maximum depth of nested values. Parquet uses a depth of 6.
const deepest = 32

// readStruct reads the fields of a struct and passes each to visit. It skips fields that visit
// does not read; visit may be nil. depth is the number of enclosing structs and lists.
func (w *walk) readStruct(depth int, visit visitor) error {
	for id := 0; ; {
		head, err := w.readByte()
		if err != nil || head == 0 {
			return err
		}
		if delta := head >> 4; delta > 0 {
			id += int(delta)
		} else { // the field ID follows
			v, err := w.readInteger()
			if err != nil {
				return err
			}
			id = int(int16(v))
		}
		kind := head & 15
		if visit != nil {
			read, err := visit(id, kind)
			if err != nil {
				return err
			}
			if read {
				continue
			}
		}
		if kind != typeTrue && kind != typeFalse { // the type of a boolean field contains its value
			if err := w.skipValue(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

// readInteger reads a signed integer in zigzag encoding. The error is [io.ErrUnexpectedEOF] if
// w.b is too short, or wraps [ErrFormat] if the integer has more than 64 bits.
func (w *walk) readInteger() (int64, error) {
	v, err := w.readVarint()
	return int64(v>>1) ^ -int64(v&1), err
}

// skipValue skips a value. It must not be used for boolean fields, which have no bytes. depth is
// the number of enclosing structs and lists. The error wraps [ErrFormat] if they nest too deeply.
func (w *walk) skipValue(kind byte, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%w: values nest deeper than %d", ErrFormat, deepest)
	}
	switch kind {
	case typeTrue, typeFalse, typeByte:
		return w.skipBytes(1)
	case typeInt16, typeInt32, typeInt64:
		_, err := w.readVarint()
		return err
	case typeDouble:
		return w.skipBytes(8)
	case typeBinary:
		n, err := w.readVarint()
		if err != nil {
			return err
		}
		return w.skipBytes(n)
	case typeList, typeSet:
		return w.skipList(depth)
	case typeMap:
		return w.skipMap(depth)
	case typeStruct:
		return w.readStruct(depth, nil)
	}
	return fmt.Errorf("%w: unknown type %d", ErrFormat, kind)
}

func (w *walk) skipList(depth int) error {
	n, kind, err := w.listHead()
	if err != nil {
		return err
	}
	return w.each(n, depth, kind)
}

// listHead reads the length of a list and the type code of its items. The caller must then read
// or skip the items.
func (w *walk) listHead() (n uint64, kind byte, err error) {
	head, err := w.readByte()
	if err != nil {
		return 0, 0, err
	}
	n = uint64(head >> 4)
	if n == 15 {
		n, err = w.readVarint()
	}
	return n, head & 15, err
}

func (w *walk) skipMap(depth int) error {
	n, err := w.readVarint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.readByte()
	if err != nil {
		return err
	}
	return w.each(n, depth, kinds>>4, kinds&15)
}

// chargeItems subtracts n items from the limit of the walk. The error wraps [ErrSize] if the
// limit is exceeded, and is [io.ErrUnexpectedEOF] if n items do not fit into the remaining
// bytes.
func (w *walk) chargeItems(n uint64) error {
	if n > uint64(len(w.b)) { // each item has at least one byte
		return io.ErrUnexpectedEOF
	}
	if w.items -= int(n); w.items < 0 {
		return fmt.Errorf("%w: more items in lists than MaxPage allows", ErrSize)
	}
	return nil
}

// each skips n sequences of values of the given type codes. depth is the number of structs and
// lists around the list or map. Errors are as with chargeItems and skipValue.
func (w *walk) each(n uint64, depth int, kinds ...byte) error {
	if err := w.chargeItems(n); err != nil {
		return err
	}
	for range n {
		for _, kind := range kinds {
			if err := w.skipValue(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) readByte() (b byte, err error) {
	if len(w.b) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	b, w.b = w.b[0], w.b[1:]
	return b, nil
}

func (w *walk) readVarint() (uint64, error) {
	v, n := binary.Uvarint(w.b)
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, fmt.Errorf("%w: number has more than 64 bits", ErrFormat)
	}
	w.b = w.b[n:]
	return v, nil
}

func (w *walk) skipBytes(n uint64) error {
	if n > uint64(len(w.b)) {
		return io.ErrUnexpectedEOF
	}
	w.b = w.b[n:]
	return nil
}
