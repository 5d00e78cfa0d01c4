package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A walk goes through a struct of Thrift in its compact form, and looks at nothing but whether all
// of it is there.
type walk struct {
	b     []byte
	items int // that lists may have yet
}

// wholeStruct returns how many bytes the struct has with which b begins. The error is
// io.ErrUnexpectedEOF where b is too short for it, and wraps ErrSize where its lists have more
// items than most.
func wholeStruct(b []byte, most int) (n int, err error) {
	w := walk{b, most}
	err = w.structure(0)
	return len(b) - len(w.b), err
}

// The types of Thrift's compact form.
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

// deepest is how deep values may be in each other. Those of Parquet are 6 deep.
const deepest = 32

func (w *walk) structure(depth int) error {
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 { // the number of the field follows
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != typeTrue && kind != typeFalse { // which have no more bytes here
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

// value skips one that is no field, or no bool.
func (w *walk) value(kind byte, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%w: values in each other deeper than %d", ErrFormat, deepest)
	}
	switch kind {
	case typeTrue, typeFalse, typeByte:
		return w.skip(1)
	case typeInt16, typeInt32, typeInt64:
		_, err := w.varint()
		return err
	case typeDouble:
		return w.skip(8)
	case typeBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case typeList, typeSet:
		return w.list(depth)
	case typeMap:
		return w.pairs(depth)
	case typeStruct:
		return w.structure(depth)
	}
	return fmt.Errorf("%w: a value of type %d", ErrFormat, kind)
}

func (w *walk) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	return w.each(n, depth, head&15)
}

func (w *walk) pairs(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	return w.each(n, depth, kinds>>4, kinds&15)
}

// each skips n times values of those kinds.
func (w *walk) each(n uint64, depth int, kinds ...byte) error {
	if n > uint64(len(w.b)) { // each has a byte
		return io.ErrUnexpectedEOF
	}
	if w.items -= int(n); w.items < 0 {
		return fmt.Errorf("%w: more items in lists than MaxPage has room for", ErrSize)
	}
	for range n {
		for _, kind := range kinds {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) byte() (b byte, err error) {
	if len(w.b) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	b, w.b = w.b[0], w.b[1:]
	return b, nil
}

func (w *walk) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b)
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, fmt.Errorf("%w: a number of more than 64 bits", ErrFormat)
	}
	w.b = w.b[n:]
	return v, nil
}

func (w *walk) skip(n uint64) error {
	if n > uint64(len(w.b)) {
		return io.ErrUnexpectedEOF
	}
	w.b = w.b[n:]
	return nil
}
