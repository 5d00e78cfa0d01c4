package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Note [Sizes that lie] The footer of a file, and the header before each page, say how long lists,
// strings and pages are, and the library makes room for that before it looks whether the file has
// so much. So what they say is compared here with the bytes that are there, and with
// Options.MaxPage, before the library sees them: the footer when a file is opened, the headers of a
// column in a row group when it is first read. Then what is packed is looked at as well: the
// library makes room for all that comes out of a page, and not only for what its header says. See
// unpacked.go.

// checkFooter wants a footer that fits into the file, and lists and strings that fit into the
// footer.
func checkFooter(r io.ReaderAt, size int64, most int) error {
	var tail [8]byte
	if size < int64(len(tail)+4) {
		return fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if magic := string(tail[4:]); magic != "PAR1" {
		return fmt.Errorf("%w: it ends with %q and not with PAR1", ErrFormat, magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(len(tail)+4) {
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrFormat, n, size)
	}
	if n > int64(most) {
		return fmt.Errorf("%w: the footer has %d bytes, and MaxPage is %d", ErrSize, n, most)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-int64(len(tail))-n); err != nil {
		return err
	}
	_, err := wholeStruct(b, most/itemSize)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: the footer is longer than it says", ErrFormat)
	}
	return err
}

// itemSize is about what an item of a list in the footer takes in memory, at least one byte of the
// file each.
const itemSize = 512

// A column is where the pages of a column are in a file.
type column struct {
	io.ReaderAt
	codec format.CompressionCodec
	end   int64
	most  int    // Options.MaxPage
	page  []byte // what is packed in the last one
}

// checkPages wants pages that fit into their column, and are no larger than most.
func checkPages(r io.ReaderAt, c *format.ColumnMetaData, size int64, most int) error {
	from, first := c.DataPageOffset, c.DataPageOffset
	if c.DictionaryPageOffset != 0 {
		first = c.DictionaryPageOffset
	}
	end := first + c.TotalCompressedSize
	if first < 0 || c.TotalCompressedSize < 0 || end < first || end > size || from < first || from > end {
		return fmt.Errorf("%w: a column from byte %d to %d of %d", ErrFormat, first, end, size)
	}
	in := &column{ReaderAt: r, codec: c.Codec, end: end, most: most}
	if first != from { // the library reads the dictionary wherever the other pages begin
		if _, err := in.checkPage(first); err != nil {
			return err
		}
	}
	for from < end {
		next, err := in.checkPage(from)
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// checkPage returns where the page ends that begins at a byte.
func (c *column) checkPage(at int64) (next int64, err error) {
	h, n, err := pageHeader(c, at, c.end, c.most)
	if err != nil {
		return 0, err
	}
	values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues)
	next = at + n + int64(h.CompressedPageSize)
	switch {
	case h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || next > c.end:
		return 0, fmt.Errorf("%w: a page of %d bytes, unpacked %d, at byte %d of a column that ends at %d",
			ErrFormat, h.CompressedPageSize, h.UncompressedPageSize, at, c.end)
	case int64(h.UncompressedPageSize) > int64(c.most) || int64(values)*valueSize > int64(c.most):
		return 0, fmt.Errorf(
			"%w: the page at byte %d has %d bytes unpacked and %d values, and MaxPage is %d bytes", ErrSize,
			at, h.UncompressedPageSize, values, c.most)
	}
	if err := c.checkPacked(h, at+n); err != nil {
		return 0, fmt.Errorf("the page at byte %d: %w", at, err)
	}
	return next, nil
}

// valueSize is what a value takes at most that a few bits of the file stand for: a number.
const valueSize = 8

// pageHeader reads the header at a byte, and how long it is.
func pageHeader(r io.ReaderAt, at, end int64, most int) (h format.PageHeader, n int64, err error) {
	for window := int64(1 << 10); ; window *= 8 {
		b := make([]byte, min(window, end-at))
		if _, err := r.ReadAt(b, at); err != nil {
			return h, 0, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		n, err := wholeStruct(b, most/itemSize)
		if errors.Is(err, io.ErrUnexpectedEOF) && int64(len(b)) < end-at && len(b) < most {
			continue // it may have long statistics
		}
		if err == nil {
			err = thrift.Unmarshal(new(thrift.CompactProtocol), b[:n], &h)
		}
		if err != nil {
			return h, 0, fmt.Errorf("%w: the header of the page at byte %d: %w", ErrFormat, at, err)
		}
		return h, int64(n), nil
	}
}
