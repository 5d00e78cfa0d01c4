package parquet

import (
	"errors"
	"fmt"
	"io"
)

// A pageHeader holds the fields of a page header that determine the memory for reading the page.
type pageHeader struct {
	unpacked, packed int64
	values           int64
	levels           int64 // bytes of uncompressed levels before the values of a version 2 page
	plain            bool  // a version 2 page with uncompressed values
	v2, negative     bool
}

// Field numbers of a page header, and of the nested data headers, in
// https://github.com/apache/parquet-format/blob/apache-parquet-format-2.11.0/src/main/thrift/parquet.thrift
const (
	fieldUnpacked   = 2
	fieldPacked     = 3
	fieldData       = 5
	fieldDictionary = 7
	fieldDataV2     = 8

	fieldValues       = 1
	fieldDefinitions  = 5
	fieldRepetitions  = 6
	fieldIsCompressed = 7
)

// parsePageHeader parses the header at the start of b and returns its length in bytes. maxItems
// and the errors are as with [readStruct].
func parsePageHeader(b []byte, maxItems int) (h pageHeader, n int, err error) {
	n, err = readStruct(b, maxItems, func(w *walk) visitor {
		return func(id int, kind byte) (bool, error) { return h.readField(w, id, kind) }
	})
	return h, n, err
}

func (h *pageHeader) readField(w *walk, id int, kind byte) (read bool, err error) {
	switch {
	case kind == typeInt32 && id == fieldUnpacked:
		h.unpacked, err = w.readInteger()
	case kind == typeInt32 && id == fieldPacked:
		h.packed, err = w.readInteger()
	case kind == typeStruct && (id == fieldData || id == fieldDictionary || id == fieldDataV2):
		h.v2 = h.v2 || id == fieldDataV2
		return true, w.readStruct(1, func(inner int, kind byte) (bool, error) {
			return h.readDataField(w, id, inner, kind)
		})
	default:
		return false, nil
	}
	return true, err
}

// readDataField reads a field of the nested header of a data page or dictionary page, which is
// field outer of the page header. read is false if the field was not consumed; see [visitor].
// The error is one of readInteger.
func (h *pageHeader) readDataField(w *walk, outer, id int, kind byte) (read bool, err error) {
	if outer == fieldDataV2 && id == fieldIsCompressed && kind == typeFalse {
		h.plain = true
		return false, nil
	}
	if kind != typeInt32 {
		return false, nil
	}
	v, err := w.readInteger()
	h.negative = h.negative || v < 0 && id == fieldValues
	switch {
	case id == fieldValues:
		h.values = max(h.values, v)
	case outer == fieldDataV2 && (id == fieldDefinitions || id == fieldRepetitions):
		h.negative = h.negative || v < 0
		h.levels += v
	}
	return true, err
}

// checkFooterStruct returns an error unless b is a complete FileMetaData struct with a
// consistent schema tree. The error wraps [ErrFormat], or [ErrSize] if its lists have more than
// maxItems items in total.
func checkFooterStruct(b []byte, maxItems int) error {
	const fieldSchema = 2
	_, err := readStruct(b, maxItems, func(w *walk) visitor {
		return func(id int, kind byte) (bool, error) {
			if id != fieldSchema || kind != typeList {
				return false, nil
			}
			return true, w.readSchema()
		}
	})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: footer is truncated", ErrFormat)
	}
	return err
}

// readSchema reads the elements of a schema, where each group is followed by its fields. The
// error wraps [ErrFormat] if they do not form a tree of at most maxDepth levels, or is one of
// chargeItems or readStruct.
func (w *walk) readSchema() error {
	const fieldChildren = 5
	n, kind, err := w.listHead()
	if err != nil {
		return err
	}
	if kind != typeStruct {
		return fmt.Errorf("%w: unknown schema type %d", ErrFormat, kind)
	}
	if err := w.chargeItems(n); err != nil {
		return err
	}
	var open []int64 // remaining fields of each enclosing group
	for left := int64(n) - 1; left >= 0; left-- {
		children := int64(0)
		err := w.readStruct(1, func(id int, kind byte) (read bool, err error) {
			if id != fieldChildren || kind != typeInt32 {
				return false, nil
			}
			children, err = w.readInteger()
			return true, err
		})
		switch {
		case err != nil:
			return err
		case children < 0 || children > left:
			return fmt.Errorf("%w: group declares %d fields, but %d elements follow", ErrFormat, children, left)
		case len(open) > maxDepth:
			return fmt.Errorf("%w: groups nest deeper than %d", ErrFormat, maxDepth)
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if children > 0 {
			open = append(open, children)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	return nil
}
