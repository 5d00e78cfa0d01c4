package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Note [Sizes that lie] The footer of a file and the header of each page declare the lengths of
// lists, strings and pages. The library allocates memory accordingly before it verifies that the
// file has the data. This package therefore compares the declared lengths with the size of the file
// and with Options.MaxPage before the library reads them: the footer when a file is opened, and the
// page headers of a column in a row group when that column is first read. Decompressed sizes are
// measured too, because a codec may produce more bytes than the header declares; see unpacked.go.
// boundedAllocator is the last defense.

// checkFooter returns an error unless the footer of the file r of size bytes fits into it and
// into most bytes, and the footer's lists and strings fit into the footer. The error wraps
// [ErrFormat] or [ErrSize], or is one of reading the file.
func checkFooter(r io.ReaderAt, size int64, most int) error {
	var tail [8]byte
	if size < int64(len(tail)+4) {
		return fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if magic := string(tail[4:]); magic != "PAR1" {
		return fmt.Errorf("%w: the file ends with %q, want PAR1", ErrFormat, magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(len(tail)+4) {
		return fmt.Errorf("%w: footer of %d bytes exceeds the file of %d bytes", ErrFormat, n, size)
	}
	if n > int64(most) {
		return fmt.Errorf("%w: footer of %d bytes exceeds MaxPage, which is %d", ErrSize, n, most)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-int64(len(tail))-n); err != nil {
		return err
	}
	return checkFooterStruct(b, most/itemSize)
}

// itemSize is the approximate memory of a list item in the footer. In the file, an item has at
// least one byte.
const itemSize = 512

// A boundedAllocator panics with an error that wraps [ErrSize] instead of allocating more than
// max bytes, plus allocationSlack, at once.
type boundedAllocator struct {
	memory.Allocator
	max int
}

// Allocate implements [memory.Allocator].
func (a boundedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

// Reallocate implements [memory.Allocator].
func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a boundedAllocator) check(size int) {
	if size > a.max+allocationSlack {
		panic(fmt.Errorf("%w: buffer of %d bytes exceeds MaxPage, which is %d", ErrSize, size, a.max))
	}
}

// allocationSlack exceeds the memory that the library allocates beyond the length of a page:
// minimum buffer sizes, and rounding.
const allocationSlack = 64 << 10

// A column is the location of a column chunk's pages in a file.
type column struct {
	io.ReaderAt
	codec compress.Compression
	end   int64
	most  int    // Options.MaxPage
	page  []byte // compressed bytes of the latest page; kept to reuse its memory
}

// checkPages returns an error unless all pages of a column chunk are within the chunk and do not
// exceed the limit of most bytes each. size is the size of the file r in bytes. The error wraps
// [ErrFormat] or [ErrSize].
func checkPages(r io.ReaderAt, c *metadata.ColumnChunkMetaData, size int64, most int) error {
	start := c.DataPageOffset()
	if d := c.DictionaryPageOffset(); c.HasDictionaryPage() && d > 0 && d < start {
		start = d
	}
	end := start + c.TotalCompressedSize()
	if start < 0 || c.TotalCompressedSize() < 0 || end < start || end > size {
		return fmt.Errorf("%w: column chunk from byte %d to %d is not within the file of %d bytes", ErrFormat,
			start, end, size)
	}
	in := &column{ReaderAt: r, codec: c.Compression(), end: end, most: most}
	for start < end {
		next, err := in.checkPage(start)
		if err != nil {
			return err
		}
		start = next
	}
	return nil
}

// checkPage validates the page at offset at, and returns the offset of its end. The error wraps
// [ErrFormat] or [ErrSize].
func (c *column) checkPage(at int64) (next int64, err error) {
	h, n, err := readPageHeader(c, at, c.end, c.most)
	if err != nil {
		return 0, err
	}
	next = at + n + h.packed
	switch {
	case h.packed < 0 || h.unpacked < 0 || h.negative || next > c.end:
		return 0,
			fmt.Errorf("%w: page of %d bytes, %d uncompressed, at byte %d exceeds its column chunk, which ends at %d",
				ErrFormat, h.packed, h.unpacked, at, c.end)
	case h.unpacked > int64(c.most) || h.values*valueSize > int64(c.most):
		return 0, fmt.Errorf(
			"%w: page at byte %d has %d bytes uncompressed and %d values, which exceeds MaxPage, %d bytes", ErrSize,
			at, h.unpacked, h.values, c.most)
	}
	if err := c.checkPacked(h, at+n); err != nil {
		return 0, fmt.Errorf("the page at byte %d: %w", at, err)
	}
	return next, nil
}

// valueSize is the size in memory of a number, which may take only a few bits in the file.
const valueSize = 8

// readPageHeader reads the header of the page at offset at, and returns its length in bytes. end
// is the end of the column's pages. A header of more than about most bytes is an error. The
// error wraps [ErrFormat].
func readPageHeader(r io.ReaderAt, at, end int64, most int) (h pageHeader, n int64, err error) {
	for window := int64(1 << 10); ; window *= 8 {
		b := make([]byte, min(window, end-at))
		if _, err := r.ReadAt(b, at); err != nil {
			return h, 0, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		h, n, err := parsePageHeader(b, most/itemSize)
		if errors.Is(err, io.ErrUnexpectedEOF) && int64(len(b)) < end-at && len(b) < most {
			continue // the header may contain long statistics
		}
		if err != nil {
			return h, 0, fmt.Errorf("%w: the header of the page at byte %d: %w", ErrFormat, at, err)
		}
		return h, int64(n), nil
	}
}
