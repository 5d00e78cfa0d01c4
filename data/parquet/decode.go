package parquet

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// Note [Records] A decoded row is stored as a record: the concatenated encodings of its leaves. The
// encoding of a leaf that is neither optional nor repeated is its value. For any other leaf, the
// values are preceded by
//
//	uvarint  2*levels, plus 1 if the list is full
//	levels   the definition levels, a byte each, unless the list is full
//	levels   the repetition levels, likewise, if the leaf is repeated
//
// A list is full if its levels only mean "the next element": each value is present, and each level
// but the first repeats at the innermost list. Integers are preceded by the number of bytes of each
// (1, 2, 4 or 8), which is chosen for the row: tokens of a vocabulary below 32768 take two bytes
// instead of the eight of an int64. Strings and bytes are preceded by their total length as a
// uvarint, and each by its own length. A row with any columns is thus found by a single offset, and
// is as small in memory and in the spill file as in the pages.

// batchLevels is the number of levels read from a page at a time.
const batchLevels = 4096

// A leafReader reads the rows of one leaf in a row group sequentially. It is made by
// [newLeafReader]. After an error it must not be used.
type leafReader struct {
	leaf  *node
	chunk file.ColumnChunkReader
	left  int64 // levels that the chunk declares and has not returned
	most  int   // Options.MaxPage

	def, rep        []int16 // buffered levels
	levels, at      int     // number of buffered levels, and of the consumed ones among them
	values, valueAt int     // the same for values
	buffer          valueBuffer
}

// A valueBuffer holds the decoded values of a leafReader, which uses it alone. Ranges are
// indices of the buffered values.
type valueBuffer interface {
	// read stores up to batchLevels values, beginning at index at.
	read(at int, def, rep []int16) (levels int64, values int, err error)
	// discard moves the values [from:to] to the front.
	discard(from, to int)
	// size returns the maximum number of bytes that encode appends.
	size(from, to int) int
	// encode appends the values [from:to] to a record.
	encode(dst []byte, from, to int) []byte
}

// newLeafReader returns a reader at the first row of a chunk that declares total levels. most is
// Options.MaxPage. The caller must close the chunk. It returns an error that wraps [ErrFormat]
// if the chunk contradicts the schema, or [ErrKind] if its type is not supported.
func newLeafReader(leaf *node, chunk file.ColumnChunkReader, total int64, most int) (*leafReader, error) {
	d := chunk.Descriptor()
	if d.MaxDefinitionLevel() != int16(leaf.maxDef) || d.MaxRepetitionLevel() != int16(leaf.maxRep) ||
		d.PhysicalType() != leaf.physical {
		return nil, fmt.Errorf("%w: levels %d and %d of %v, want %d and %d of %v", ErrFormat, d.MaxDefinitionLevel(),
			d.MaxRepetitionLevel(), d.PhysicalType(), leaf.maxDef, leaf.maxRep, leaf.physical)
	}
	r := &leafReader{leaf: leaf, chunk: chunk, left: total, most: most}
	switch c := chunk.(type) {
	case *file.BooleanColumnChunkReader:
		r.buffer = &numbers[bool]{page: c.ReadBatchInPage, add: appendBools, width: 1}
	case *file.Int32ColumnChunkReader:
		add := appendInts[int32]
		if leaf.kind == uint32Kind {
			add = appendUint32s
		}
		r.buffer = &numbers[int32]{page: c.ReadBatchInPage, add: add, width: 4}
	case *file.Int64ColumnChunkReader:
		r.buffer = &numbers[int64]{page: c.ReadBatchInPage, add: appendInts[int64], width: 8}
	case *file.Float32ColumnChunkReader:
		r.buffer = &numbers[float32]{page: c.ReadBatchInPage, add: appendFloat32s, width: 4}
	case *file.Float64ColumnChunkReader:
		r.buffer = &numbers[float64]{page: c.ReadBatchInPage, add: appendFloat64s, width: 8}
	case *file.ByteArrayColumnChunkReader:
		r.buffer = &byteStrings[parquet.ByteArray]{page: c.ReadBatchInPage}
	case *file.FixedLenByteArrayColumnChunkReader:
		r.buffer = &byteStrings[parquet.FixedLenByteArray]{page: c.ReadBatchInPage, plain: leaf.kind == float16Kind}
	default:
		return nil, fmt.Errorf("%w: %q is %v", ErrKind, leaf.name, leaf.physical)
	}
	return r, nil
}

// A numbers is a valueBuffer of values of fixed size.
type numbers[T any] struct {
	values []T
	page   func(n int64, values []T, def, rep []int16) (int64, int, error)
	add    func(dst []byte, values []T) []byte
	width  int
}

func (b *numbers[T]) read(at int, def, rep []int16) (int64, int, error) {
	b.values = growSlice(b.values, at)
	return b.page(batchLevels, b.values[at:at+batchLevels], def, rep)
}

func (b *numbers[T]) discard(from, to int)                   { copy(b.values, b.values[from:to]) }
func (b *numbers[T]) size(from, to int) int                  { return (to-from)*b.width + 1 }
func (b *numbers[T]) encode(dst []byte, from, to int) []byte { return b.add(dst, b.values[from:to]) }

// growSlice returns s with at least n+batchLevels elements. It keeps the first n, and may
// reallocate s.
func growSlice[T any](s []T, n int) []T {
	if need := n + batchLevels; need > len(s) {
		s = append(s[:n:n], make([]T, max(need, 2*n)-n)...)
	}
	return s
}

// A byteStrings is a valueBuffer of byte strings. They alias the page until discard copies them.
type byteStrings[T ~[]byte] struct {
	values []T
	page   func(n int64, values []T, def, rep []int16) (int64, int, error)
	plain  bool // all values have the same length, which is not encoded
}

func (b *byteStrings[T]) read(at int, def, rep []int16) (int64, int, error) {
	b.values = growSlice(b.values, at)
	return b.page(batchLevels, b.values[at:at+batchLevels], def, rep)
}

func (b *byteStrings[T]) discard(from, to int) {
	for i, v := range b.values[from:to] {
		b.values[i] = append(T(nil), v...)
	}
}

func (b *byteStrings[T]) size(from, to int) int {
	n := binary.MaxVarintLen64
	for _, v := range b.values[from:to] {
		n += binary.MaxVarintLen64 + len(v)
	}
	return n
}

func (b *byteStrings[T]) encode(dst []byte, from, to int) []byte {
	if b.plain {
		for _, v := range b.values[from:to] {
			dst = append(dst, v...)
		}
		return dst
	}
	all := 0
	for _, v := range b.values[from:to] {
		all += uvarintSize(uint64(len(v))) + len(v)
	}
	dst = binary.AppendUvarint(dst, uint64(all))
	for _, v := range b.values[from:to] {
		dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
	}
	return dst
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func appendBools(dst []byte, values []bool) []byte {
	for _, v := range values {
		b := byte(0)
		if v {
			b = 1
		}
		dst = append(dst, b)
	}
	return dst
}

func appendFloat32s(dst []byte, values []float32) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

func appendFloat64s(dst []byte, values []float64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// appendInts appends integers with the width of the largest one. It appends nothing if there are no
// integers.
func appendInts[T int32 | int64](dst []byte, values []T) []byte {
	if len(values) == 0 {
		return dst
	}
	low, high := int64(values[0]), int64(values[0])
	for _, v := range values {
		low, high = min(low, int64(v)), max(high, int64(v))
	}
	width := intWidth(low, high)
	dst = append(dst, byte(width))
	switch width {
	case 1:
		for _, v := range values {
			dst = append(dst, byte(v))
		}
	case 2:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
		}
	case 4:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	default:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(int64(v)))
		}
	}
	return dst
}

// appendUint32s appends values, which are the bits of unsigned integers, as appendInts does.
func appendUint32s(dst []byte, values []int32) []byte {
	wide := make([]int64, len(values))
	for i, v := range values {
		wide[i] = int64(uint32(v))
	}
	return appendInts(dst, wide)
}

// intWidth returns the number of bytes, 1, 2, 4 or 8, for signed integers from low to high.
func intWidth(low, high int64) int {
	switch {
	case low >= math.MinInt8 && high <= math.MaxInt8:
		return 1
	case low >= math.MinInt16 && high <= math.MaxInt16:
		return 2
	case low >= math.MinInt32 && high <= math.MaxInt32:
		return 4
	}
	return 8
}

// fill reads more levels and values, after moving the unconsumed ones to the front, which sets
// r.at and r.valueAt to 0. It returns false at the end of the chunk. The error wraps [ErrSize]
// if the current row exceeds Options.MaxPage, or [ErrFormat] if a page is damaged.
func (r *leafReader) fill() (more bool, err error) {
	if n := r.levels - r.at; n > 0 && (n*valueSize > r.most || r.buffer.size(r.valueAt, r.values) > r.most) {
		return false, r.sizeError()
	}
	copy(r.def, r.def[min(r.at, len(r.def)):])
	copy(r.rep, r.rep[min(r.at, len(r.rep)):])
	r.buffer.discard(r.valueAt, r.values)
	r.levels, r.at = r.levels-r.at, 0
	r.values, r.valueAt = r.values-r.valueAt, 0
	var def, rep []int16
	if r.leaf.maxDef > 0 {
		r.def = growSlice(r.def, r.levels)
		def = r.def[r.levels : r.levels+batchLevels]
	}
	if r.leaf.maxRep > 0 {
		r.rep = growSlice(r.rep, r.levels)
		rep = r.rep[r.levels : r.levels+batchLevels]
	}
	for pages := 0; r.left > 0 && pages < maxEmptyPages; pages++ {
		n, values, err := r.buffer.read(r.values, def, rep)
		if err == nil && n == 0 {
			err = r.chunk.Err()
		}
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if n == 0 {
			continue // an empty page
		}
		if err := r.check(n, values, def, rep); err != nil {
			return false, err
		}
		r.left -= n
		r.levels += int(n)
		r.values += values
		return true, nil
	}
	return false, nil
}

// maxEmptyPages is the maximum number of consecutive pages without values.
const maxEmptyPages = 1000

// check checks n levels and the values read with them. The error wraps [ErrFormat] unless all
// levels are in range and the number of values matches them. def and rep are nil if the leaf has
// no such levels.
func (r *leafReader) check(n int64, values int, def, rep []int16) error {
	if n > batchLevels || n > r.left || values < 0 || int64(values) > n {
		return fmt.Errorf("%w: %d levels and %d values, want at most %d", ErrFormat, n, values, r.left)
	}
	present := int(n)
	if def != nil {
		present = 0
		most := int16(r.leaf.maxDef)
		for _, d := range def[:n] {
			if d == most {
				present++
			} else if uint16(d) > uint16(most) {
				return fmt.Errorf("%w: definition level %d, want at most %d", ErrFormat, d, most)
			}
		}
	}
	if present != values {
		return fmt.Errorf("%w: %d values, want %d", ErrFormat, values, present)
	}
	if rep != nil {
		most := uint16(r.leaf.maxRep)
		for _, l := range rep[:n] {
			if uint16(l) > most {
				return fmt.Errorf("%w: repetition level %d, want at most %d", ErrFormat, l, most)
			}
		}
	}
	return nil
}

// appendRow appends the next row to a record and returns the extended slice. The error wraps
// [ErrFormat] if the chunk is damaged or has no more rows, or [ErrSize] if the row exceeds
// Options.MaxPage.
func (r *leafReader) appendRow(dst []byte) ([]byte, error) {
	if r.at == r.levels {
		more, err := r.fill()
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, fmt.Errorf("%w: column has fewer rows than its row group", ErrFormat)
		}
	}
	if r.leaf.maxRep == 0 {
		return r.appendValue(dst)
	}
	n, err := r.rowLength()
	if err != nil {
		return nil, err
	}
	def, rep := r.def[r.at:r.at+n], r.rep[r.at:r.at+n]
	values := 0
	for _, d := range def {
		if d == int16(r.leaf.maxDef) {
			values++
		}
	}
	full := values == n
	if r.leaf.maxRep > 1 {
		for _, l := range rep[1:] {
			full = full && l == int16(r.leaf.maxRep)
		}
	}
	if len(dst)+2*n+r.buffer.size(r.valueAt, r.valueAt+values) > r.most+maxTarget {
		return nil, r.sizeError()
	}
	head := uint64(n) << 1
	if full {
		head |= 1
	}
	dst = binary.AppendUvarint(dst, head)
	if !full {
		dst = appendLevels(appendLevels(dst, def), rep)
	}
	dst = r.buffer.encode(dst, r.valueAt, r.valueAt+values)
	r.at += n
	r.valueAt += values
	return dst, nil
}

// appendValue appends the next row of a leaf that is not repeated, as appendRow does. There must
// be a buffered level.
func (r *leafReader) appendValue(dst []byte) ([]byte, error) {
	values := 1
	if most := int16(r.leaf.maxDef); most > 0 {
		const level = 1 << 1 // one level
		if d := r.def[r.at]; d == most {
			dst = append(dst, level|1)
		} else {
			values = 0
			dst = append(dst, level, byte(d))
		}
	}
	if r.leaf.kind.hasLength() && len(dst)+r.buffer.size(r.valueAt, r.valueAt+values) > r.most+maxTarget {
		return nil, r.sizeError()
	}
	dst = r.buffer.encode(dst, r.valueAt, r.valueAt+values)
	r.at++
	r.valueAt += values
	return dst, nil
}

func (r *leafReader) sizeError() error {
	return fmt.Errorf("%w: row exceeds MaxPage, which is %d bytes", ErrSize, r.most)
}

func appendLevels(dst []byte, levels []int16) []byte {
	for _, l := range levels {
		dst = append(dst, byte(l))
	}
	return dst
}

// rowLength returns the number of levels of the next row of a repeated leaf, and buffers all of
// them. There must be a buffered level. The error is one of fill, or wraps [ErrFormat] if the
// level does not begin a row.
func (r *leafReader) rowLength() (int, error) {
	if r.rep[r.at] != 0 {
		return 0, fmt.Errorf("%w: row group begins in the middle of a row", ErrFormat)
	}
	for n := 1; ; n++ {
		if r.at+n == r.levels {
			more, err := r.fill() // moves the row to the front
			if err != nil {
				return 0, err
			}
			if !more {
				return n, nil
			}
		}
		if r.rep[r.at+n] == 0 {
			return n, nil
		}
	}
}

// A stream decodes the rows of a row group sequentially. It is made by [openStream] and guarded
// by the lock of the data set.
type stream struct {
	group  *group
	leaves []*leafReader
	block  int // index of the next block
	next   int // index of the next row
	size   int // bytes of all blocks so far
}

// openStream returns a stream at the first row of a group. The caller must close it. The error
// wraps [ErrFormat], [ErrKind] or [ErrSize].
func openStream(g *group) (s *stream, err error) {
	s = &stream{group: g}
	err = recoverPanic(func() error {
		rows := g.file.reader.RowGroup(g.number)
		for _, leaf := range g.file.leaves {
			meta, err := rows.MetaData().ColumnChunk(leaf.column)
			if err != nil {
				return fmt.Errorf("%w: column %q: %w", ErrFormat, leaf.name, err)
			}
			if err := g.file.checkColumn(g.number, leaf.column, meta); err != nil {
				return fmt.Errorf("column %q: %w", leaf.name, err)
			}
			chunk, err := rows.Column(leaf.column)
			if err != nil {
				return fmt.Errorf("%w: column %q: %w", ErrFormat, leaf.name, err)
			}
			r, err := newLeafReader(leaf, chunk, meta.NumValues(), g.file.most)
			if err != nil {
				chunk.Close()
				return fmt.Errorf("column %q: %w", leaf.name, err)
			}
			s.leaves = append(s.leaves, r)
		}
		return nil
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// read decodes the next rows of the row group into a block of about target bytes. It must not be
// called after the last row. After an error, which wraps [ErrFormat] or [ErrSize], the stream
// must be closed.
func (s *stream) read(target int) (b *block, err error) {
	b = s.newBlock(target)
	err = recoverPanic(func() error {
		for s.next < s.group.rows && len(b.data) < target && len(b.ends) < maxBlockRows {
			for _, leaf := range s.leaves {
				if b.data, err = leaf.appendRow(b.data); err != nil {
					return fmt.Errorf("column %q: %w", leaf.leaf.name, err)
				}
			}
			b.ends = append(b.ends, uint32(len(b.data)))
			s.next++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.block++
	s.size += len(b.data)
	return b, nil
}

// newBlock returns an empty block that begins at row s.next. Its capacity suffices for about
// target bytes of rows of the average size so far.
func (s *stream) newBlock(target int) *block {
	if s.next == 0 {
		return &block{ends: make([]uint32, 0, 64)}
	}
	left, row := s.group.rows-s.next, s.size/s.next+1
	rows := min(left, target/row+1, maxBlockRows)
	return &block{
		first: s.next,
		ends:  make([]uint32, 0, rows+rows/8),
		data:  make([]byte, 0, min(target, rows*row)*9/8),
	}
}

// close releases the pages.
func (s *stream) close() {
	recoverPanic(func() error {
		for _, leaf := range s.leaves {
			leaf.chunk.Close()
		}
		return nil
	})
}

// readerProperties returns properties that limit each page and each buffer of the library to
// about most bytes.
func readerProperties(most int) *parquet.ReaderProperties {
	p := parquet.NewReaderProperties(boundedAllocator{memory.NewGoAllocator(), most})
	p.BufferedStreamEnabled = true
	p.MaxCompressedPageSize, p.MaxUncompressedPageSize = int64(most), int64(most)
	return p
}
