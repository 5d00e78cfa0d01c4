package parquet

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sort"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// A source is an open Parquet file. It is made by [open]. Its checked columns are guarded by the
// lock of the data set; the rest is not modified.
type source struct {
	*os.File
	reader  *file.Reader
	groups  []*group
	ends    []int // number of rows up to the end of each row group
	rows    int
	schema  *node
	leaves  []*node
	size    int64
	most    int             // Options.MaxPage
	checked map[[2]int]bool // row groups and columns that checkColumn has accepted
}

func open(path string, o Options) (f *source, err error) {
	opened, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	f = &source{File: opened, most: o.MaxPage, checked: map[[2]int]bool{}}
	if err = recoverPanic(func() error { return f.readFooter(o) }); err != nil {
		opened.Close()
		return nil, err
	}
	return f, nil
}

// recoverPanic calls f and returns its error. It converts a panic to an error, because the
// library panics if a file is damaged: one that wraps [ErrFormat], unless the panic is an error
// that wraps [ErrSize].
func recoverPanic(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			if !errors.Is(p, ErrSize) {
				p = fmt.Errorf("%w: %w", ErrFormat, p)
			}
			err = p
		default:
			err = fmt.Errorf("%w: %v", ErrFormat, p)
		}
	}()
	return f()
}

// readFooter validates and reads the footer, and sets the schema and the row groups. The error
// wraps [ErrFormat], [ErrSize], [ErrKind] or [row.ErrColumn]. It may panic; see [recoverPanic].
func (f *source) readFooter(o Options) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	f.size = st.Size()
	if err := checkFooter(f, f.size, f.most); err != nil {
		return err
	}
	f.reader, err = file.NewParquetReader(f.File, file.WithReadProps(readerProperties(f.most)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for k := range f.reader.NumRowGroups() {
		meta := f.reader.MetaData().RowGroup(k)
		n := meta.NumRows()
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%w: row group has %d rows", ErrFormat, n)
		}
		f.rows += int(n)
		f.ends = append(f.ends, f.rows)
		f.groups = append(f.groups, &group{file: f, number: k, rows: int(n)})
	}
	if f.schema, err = schemaOf(f.reader.MetaData().Schema, o.Columns); err != nil {
		return err
	}
	f.leaves = f.schema.appendLeaves(nil)
	return nil
}

// locateRow returns the row group of row i, which must be in range, and the index of the row in
// it.
func (f *source) locateRow(i int) (g *group, row int) {
	k := sort.SearchInts(f.ends, i+1)
	if k > 0 {
		i -= f.ends[k-1]
	}
	return f.groups[k], i
}

// checkColumn validates the pages of a column in a row group. Later calls for a valid column
// return nil at once. The error wraps [ErrFormat] or [ErrSize]. The caller must hold the lock of
// the data set. See Note [Sizes that lie].
func (f *source) checkColumn(group, column int, meta *metadata.ColumnChunkMetaData) error {
	at := [2]int{group, column}
	if f.checked[at] {
		return nil
	}
	err := checkPages(f, meta, f.size, f.most)
	f.checked[at] = err == nil
	return err
}
