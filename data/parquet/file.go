package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// A file is one whose footer was read.
type file struct {
	*os.File
	groups []parquet.RowGroup
	ends   []int // numbers of the rows up to the end of each row group
	rows   int
	schema *node
	size   int64
	most   int             // Options.MaxPage
	sound  map[[2]int]bool // row group and column of those whose pages were looked at
	meta   *format.FileMetaData
}

func open(path string, o Options) (f *file, err error) {
	opened, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	f = &file{File: opened, most: o.MaxPage, sound: map[[2]int]bool{}}
	if err = guarded(func() error { return f.footer(o) }); err != nil {
		opened.Close()
		return nil, err
	}
	return f, nil
}

// guarded calls f, whose panics, which damaged files cause, are errors.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrFormat, p)
		}
	}()
	return f()
}

// footer reads what the file has, and whether that can be so.
func (f *file) footer(o Options) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	f.size = st.Size()
	if err := checkFooter(f, f.size, f.most); err != nil {
		return err
	}
	p, err := parquet.OpenFile(f.File, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	f.groups = p.RowGroups()
	for _, g := range f.groups {
		n := g.NumRows()
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%w: a group of %d rows", ErrFormat, n)
		}
		f.rows += int(n)
		f.ends = append(f.ends, f.rows)
	}
	f.meta = p.Metadata()
	for k, g := range f.meta.RowGroups {
		for _, c := range g.Columns {
			if n := c.MetaData.TotalUncompressedSize; n < 0 || n > int64(o.MaxPage) {
				return fmt.Errorf("%w: column %q of row group %d has %d bytes, and MaxPage is %d", ErrSize,
					c.MetaData.PathInSchema, k, n, o.MaxPage)
			}
		}
	}
	f.schema, err = schemaOf(p.Schema(), o.Columns)
	return err
}

// group returns which row group has row i, and the number of its first row.
func (f *file) group(i int) (g, first int) {
	g = sort.SearchInts(f.ends, i+1)
	if g > 0 {
		first = f.ends[g-1]
	}
	return g, first
}

// A block is some rows: of each leaf, the values of each row.
type block struct {
	leaves map[int][][]parquet.Value
	rows   int
	bytes  int // about
	most   int // of them
}

// read reads the rows of a group from that one on.
func (f *file) read(g, from int) (*block, error) {
	group := f.groups[g]
	b := &block{leaves: map[int][][]parquet.Value{}, rows: min(blockRows, int(group.NumRows())-from), most: f.most}
	chunks := group.ColumnChunks()
	err := guarded(func() error {
		for _, leaf := range f.schema.leaves(nil) {
			if leaf.column >= len(chunks) {
				return fmt.Errorf("%w: column %d of %d", ErrFormat, leaf.column, len(chunks))
			}
			if err := f.checkColumn(g, leaf.column); err != nil {
				return fmt.Errorf("column %q: %w", leaf.name, err)
			}
			rows, err := b.column(chunks[leaf.column], from)
			if err != nil {
				return fmt.Errorf("column %q: %w", leaf.name, err)
			}
			b.leaves[leaf.column] = rows
		}
		return nil
	})
	return b, err
}

// checkColumn looks at the pages of a column, once: see Note [Sizes that lie].
func (f *file) checkColumn(group, column int) error {
	at := [2]int{group, column}
	if f.sound[at] {
		return nil
	}
	if group >= len(f.meta.RowGroups) || column >= len(f.meta.RowGroups[group].Columns) {
		return fmt.Errorf("%w: column %d of row group %d", ErrFormat, column, group)
	}
	err := checkPages(f, &f.meta.RowGroups[group].Columns[column].MetaData, f.size, f.most)
	f.sound[at] = err == nil
	return err
}

// column reads the values of the rows of one leaf.
func (b *block) column(chunk parquet.ColumnChunk, from int) (rows [][]parquet.Value, err error) {
	pages := chunk.Pages()
	defer pages.Close()
	if err := pages.SeekToRow(int64(from)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for {
		page, err := pages.ReadPage()
		if err == io.EOF && len(rows) == b.rows {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: after %d of %d rows: %w", ErrFormat, len(rows), b.rows, err)
		}
		full := false
		rows, full, err = b.values(rows, page.Values())
		parquet.Release(page)
		if err != nil || full {
			return rows, err
		}
	}
}

// values adds those of a page, up to the begin of the row after the last one, and reports whether
// that was there.
func (b *block) values(rows [][]parquet.Value, in parquet.ValueReader) (_ [][]parquet.Value, full bool, err error) {
	var some [256]parquet.Value
	for {
		n, err := in.ReadValues(some[:])
		for _, v := range some[:n] {
			if v.RepetitionLevel() == 0 {
				if len(rows) == b.rows {
					return rows, true, nil
				}
				rows = append(rows, nil)
			}
			if len(rows) == 0 {
				return nil, false, fmt.Errorf("%w: a page begins within a row", ErrFormat)
			}
			b.bytes += 24
			if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
				b.bytes += len(v.ByteArray())
			}
			if b.bytes > b.most { // before the copy: a long one may be in a dictionary, and come often
				return nil, false, fmt.Errorf("%w: %d rows have more than %d bytes, which is MaxPage",
					ErrSize, b.rows, b.most)
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], v.Clone())
		}
		if errors.Is(err, io.EOF) {
			return rows, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if n == 0 {
			return nil, false, fmt.Errorf("%w: a page of no values", ErrFormat)
		}
	}
}
