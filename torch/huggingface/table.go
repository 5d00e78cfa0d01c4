package huggingface

import (
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A table is a sequence of chunks of rows. It owns its files. [tableOf] makes it. It may be read
// from several goroutines, but not while it is changed.
type table struct {
	names  []string
	chunks [][]arrow.Array // by chunk, the columns, all of the same length
	ends   []int           // by chunk, the number of rows up to its end
	files  []*mapping
}

// add appends a chunk with the given columns, which must have the same length.
func (t *table) add(columns []arrow.Array) {
	t.chunks = append(t.chunks, columns)
	n := 0
	if len(columns) > 0 {
		n = columns[0].Len()
	}
	t.ends = append(t.ends, t.rowCount()+n)
}

func (t *table) rowCount() int {
	if len(t.ends) == 0 {
		return 0
	}
	return t.ends[len(t.ends)-1]
}

// chunkAt returns the columns of the chunk that contains row i, and the index of the row within
// it. It panics if there is no such row.
func (t *table) chunkAt(i int) ([]arrow.Array, int) {
	k := sort.SearchInts(t.ends, i+1)
	if k > 0 {
		i -= t.ends[k-1]
	}
	return t.chunks[k], i
}

func (t *table) close() {
	for _, m := range t.files {
		m.close()
	}
	t.chunks, t.ends, t.files = nil, nil, nil
}

// tableOf converts a pickled table of the library, and opens its files:
// https://github.com/huggingface/datasets/blob/4.0.0/src/datasets/table.py. The caller must
// close the table. The error wraps [value.ErrUnsupported].
func tableOf(v any) (t *table, err error) {
	r, _ := v.(*value.Record)
	if r == nil {
		return nil, unsupportedError("table is %T, want a pickled table", v)
	}
	switch r.Class {
	case value.Named("datasets.table.MemoryMappedTable"):
		return readMapped(r)
	case value.Named("datasets.table.ConcatenationTable"):
		return concatBlocks(r)
	case value.Named("datasets.table.InMemoryTable"):
		inner, _ := r.Attr("table")
		return restoreTable(inner)
	}
	return nil, unsupportedError("table has unsupported class %s", r.Class)
}

// readMapped reads a MemoryMappedTable and replays the methods that were called on it. The
// caller must close the table.
func readMapped(r *value.Record) (*table, error) {
	path, _ := r.Attr("path")
	name, ok := path.(string)
	if !ok {
		return nil, unsupportedError("path of a table is %T, want a str", path)
	}
	t, err := read(name)
	if err != nil {
		return nil, err
	}
	v, _ := r.Attr("replays")
	replays, _ := v.([]any)
	for _, replay := range replays {
		if err := t.replayMethod(replay); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// replayMethod applies to t a recorded call, (name, args, kwargs), of a method of pyarrow's
// Table. The error wraps [value.ErrUnsupported] if Go does not know the method.
func (t *table) replayMethod(v any) error {
	call, _ := v.(value.Tuple)
	if len(call) != 3 || !isEmpty(call[2]) {
		return unsupportedError("replayed change of its table is %v, want a tuple", v)
	}
	args, _ := call[1].(value.Tuple)
	switch method := call[0]; {
	case method == "replace_schema_metadata":
		return nil
	case method == "slice" && (len(args) == 1 || len(args) == 2):
		return t.sliceRows(args)
	case len(args) != 1:
		return unsupportedError("replayed change %v of its table has %d arguments", method, len(args))
	case method == "rename_columns":
		names, err := stringList(args[0])
		if err != nil || len(names) != len(t.names) {
			return unsupportedError("rename_columns: invalid new names %v for columns %q", args[0], t.names)
		}
		t.names = names
		return nil
	case method == "select":
		return t.pickColumns(args[0], true)
	case method == "drop" || method == "drop_columns":
		return t.pickColumns(args[0], false)
	default:
		return unsupportedError("replayed change %v of its table is not supported by Go", method)
	}
}

// sliceRows restricts the table to a range of rows, cut off at the end of the table. args are
// the arguments of pyarrow's Table.slice: the first row and, if not all rows follow, the number
// of rows. The error wraps [value.ErrUnsupported] if an argument is no non-negative integer.
func (t *table) sliceRows(args value.Tuple) error {
	var part [2]int64 // the first row and the number of rows
	part[1] = int64(t.rowCount())
	for k, arg := range args {
		n, ok := arg.(int64)
		if !ok || n < 0 {
			return unsupportedError("invalid slice %v of its table", args)
		}
		part[k] = n
	}
	from := min(part[0], int64(t.rowCount()))
	to := from + min(part[1], int64(t.rowCount())-from)
	chunks, ends := t.chunks, t.ends
	t.chunks, t.ends = nil, nil
	for k, c := range chunks {
		end := int64(ends[k])
		start := int64(0)
		if k > 0 {
			start = int64(ends[k-1])
		}
		first, last := max(from, start)-start, min(to, end)-start
		if first >= last {
			continue
		}
		some := make([]arrow.Array, len(c))
		for n, column := range c {
			some[n] = array.NewSlice(column, first, last)
		}
		t.add(some)
	}
	return nil
}

// pickColumns keeps the columns in the list v, in that order, if named, and otherwise drops
// them. The error wraps [value.ErrUnsupported] if a column to keep does not exist or no column
// remains.
func (t *table) pickColumns(v any, named bool) error {
	names, err := stringList(v)
	if err != nil {
		return err
	}
	var keep []int
	if named {
		for _, name := range names {
			keep = append(keep, slices.Index(t.names, name))
		}
		if slices.Contains(keep, -1) {
			return unsupportedError("columns %q are not all in the table, which has %q", names, t.names)
		}
	} else {
		for k, name := range t.names {
			if !slices.Contains(names, name) {
				keep = append(keep, k)
			}
		}
	}
	if len(keep) == 0 {
		return unsupportedError("table has no columns")
	}
	t.names = selectIndices(t.names, keep)
	for k, c := range t.chunks {
		t.chunks[k] = selectIndices(c, keep)
	}
	return nil
}

func selectIndices[T any](of []T, keep []int) []T {
	list := make([]T, len(keep))
	for k, n := range keep {
		list[k] = of[n]
	}
	return list
}

// concatBlocks concatenates the rows of the blocks of a ConcatenationTable. Each block is a list
// of tables that are combined by columns. The caller must close the table. The error wraps
// [value.ErrUnsupported] if the blocks have different columns.
func concatBlocks(r *value.Record) (_ *table, err error) {
	v, _ := r.Attr("blocks")
	rows, ok := v.([]any)
	if !ok || len(rows) == 0 {
		return nil, unsupportedError("parts of its table are %T, want a list", v)
	}
	whole := new(table)
	defer func() {
		if err != nil {
			whole.close()
		}
	}()
	for _, row := range rows {
		part, err := combineColumns(row)
		if err != nil {
			return nil, err
		}
		whole.files = append(whole.files, part.files...)
		if whole.names == nil {
			whole.names = part.names
		}
		if !slices.Equal(whole.names, part.names) {
			return nil,
				unsupportedError("parts of its table have different columns, %q and %q", whole.names, part.names)
		}
		for _, c := range part.chunks {
			if first := whole.chunks; len(first) > 0 && !slices.EqualFunc(first[0], c, sameType) {
				return nil, unsupportedError("parts of its table have different column types")
			}
			whole.add(c)
		}
	}
	return whole, nil
}

// combineColumns combines the columns of the pickled tables in the list v, which must have equal
// numbers of rows, as add_column does. The caller must close the table. If it fails, it closes
// the tables.
func combineColumns(v any) (_ *table, err error) {
	parts, _ := v.([]any)
	if len(parts) == 0 {
		return nil, unsupportedError("parts of its table are %T, want a list", v)
	}
	whole, err := tableOf(parts[0])
	if err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		part, err := tableOf(p)
		if err == nil {
			whole.files = append(whole.files, part.files...)
			err = whole.addColumns(part)
		}
		if err != nil {
			whole.close()
			return nil, err
		}
	}
	return whole, nil
}

// addColumns adds the columns of a table with the same number of rows. It splits the chunks at
// the chunk boundaries of both tables. The caller must add the files of by to t. The error wraps
// [value.ErrUnsupported] if the numbers of rows differ or a column exists, and t is then
// unchanged.
func (t *table) addColumns(by *table) error {
	if by.rowCount() != t.rowCount() {
		return unsupportedError("parts of its table joined by columns have %d and %d rows, want equal numbers",
			t.rowCount(), by.rowCount())
	}
	for _, name := range by.names {
		if slices.Contains(t.names, name) {
			return unsupportedError("parts of its table have the same column %q", name)
		}
	}
	ends := append(slices.Clone(t.ends), by.ends...)
	slices.Sort(ends)
	wide := &table{names: append(slices.Clone(t.names), by.names...)}
	for _, end := range slices.Compact(ends) {
		if from := wide.rowCount(); from < end {
			wide.add(append(t.rowsBetween(from, end), by.rowsBetween(from, end)...))
		}
	}
	t.names, t.chunks, t.ends = wide.names, wide.chunks, wide.ends
	return nil
}

// rowsBetween returns the columns of the rows from from up to, but not including, to. The rows must
// lie in one chunk.
func (t *table) rowsBetween(from, to int) []arrow.Array {
	c, i := t.chunkAt(from)
	some := make([]arrow.Array, len(c))
	for k, column := range c {
		some[k] = array.NewSlice(column, int64(i), int64(i+to-from))
	}
	return some
}

func sameType(a, b arrow.Array) bool { return arrow.TypeEqual(a.DataType(), b.DataType()) }
