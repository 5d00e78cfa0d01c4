package huggingface

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch/internal/reader"
)

// class is the Python class of the data sets that this package reads:
// https://github.com/huggingface/datasets/blob/4.0.0/src/datasets/arrow_dataset.py.
var class = value.Named("datasets.arrow_dataset.Dataset")

func init() {
	reader.Register(class, reader.Reader{Check: check, Open: open, Collate: collateColumns})
}

// used lists the attributes that determine the samples. Others, such as the fingerprint and the
// license, describe their origin.
var used = []string{"_data", "_indices", "_format_type", "_format_kwargs", "_format_columns",
	"_output_all_columns", "_indexes"}

// A dataset is a table and the format of its rows. [dataset.open] fills it. Its methods may be
// called from several goroutines after that, except Close.
type dataset struct {
	table   *table
	indices []int // the row of each sample; nil if sample i is row i
	columns []int // the columns of the table that a sample contains
	sample  maker
}

var (
	_ data.ValueDataset = (*dataset)(nil)
	_ io.Closer         = (*dataset)(nil)
)

// check reports whether open accepts the pickled object o. It returns nil, or an error that wraps
// [value.ErrUnsupported] with the reason. It opens the files and closes them again.
func check(o *pickle.Object) error {
	state, _ := o.State.(*value.Dict)
	l := new(value.Lifter)
	l.Object = func(o *pickle.Object) (any, error) { return l.Record(o) }
	small := new(value.Dict)
	for _, name := range used {
		if err := liftEntry(l, small, state, name); err != nil {
			return err
		}
	}
	if info, ok := state.Get("_info"); ok {
		from, _ := info.(*pickle.Object)
		if from == nil {
			return unsupportedError("_info is %T, want a DatasetInfo", info)
		}
		all, _ := from.State.(*value.Dict)
		some := new(value.Dict)
		if err := liftEntry(l, some, all, "features"); err != nil {
			return err
		}
		small.Set("_info", &value.Record{Class: from.Class, State: some})
	}
	ds, err := open(&value.Record{Class: o.Class, State: small})
	if err != nil {
		return err
	}
	return ds.Close()
}

func liftEntry(l *value.Lifter, to, from *value.Dict, name string) error {
	v, ok := from.Get(name)
	if !ok {
		return nil
	}
	lifted, err := l.Lift(v)
	if err != nil {
		return err
	}
	return to.Set(name, lifted)
}

// open returns the data set of an object of the class. It is a [data.ValueDataset] of dicts. The
// error wraps [value.ErrUnsupported] if the samples would differ from Python's, or if a file cannot
// be read as Arrow. The caller must close the data set.
func open(r *value.Record) (data.DatasetCloser, error) {
	d := new(dataset)
	err := recoverFaults(func() error { return d.open(r) })
	if err != nil {
		d.Close()
		if !errors.Is(err, value.ErrUnsupported) {
			err = unsupportedError("%v", err)
		}
		return nil, err
	}
	return data.Structured(d), nil
}

// open reads the attributes: the format, the table, the columns and the indices. The caller must
// close d even if open fails. The error may be a memory fault or a panic of Arrow's reader, so
// open must be called within recoverFaults.
func (d *dataset) open(r *value.Record) error {
	format, _ := r.Attr("_format_type")
	switch format {
	case nil:
		d.sample = ofPython
	case "torch":
		d.sample = ofTorch
	default:
		return unsupportedError("format %v is not supported by Go, use with_format(\"torch\") or no format", format)
	}
	if v, _ := r.Attr("_format_kwargs"); !isEmpty(v) {
		return unsupportedError("format arguments %v are not supported by Go", v)
	}
	if v, _ := r.Attr("_indexes"); !isEmpty(v) {
		return unsupportedError("search indexes are not supported by Go")
	}
	if info, ok := r.Attr("_info"); ok {
		if err := refuseDecoded(info); err != nil {
			return err
		}
	}
	v, _ := r.Attr("_data")
	var err error
	if d.table, err = tableOf(v); err != nil {
		return err
	}
	if err := d.chooseColumns(r); err != nil {
		return err
	}
	for _, k := range d.columns {
		if err := d.sample.makes(d.table, k); err != nil {
			return fmt.Errorf("%w: column %q", err, d.table.names[k])
		}
	}
	if v, _ = r.Attr("_indices"); v == nil {
		return nil
	}
	of, err := tableOf(v)
	if err != nil {
		return err
	}
	defer of.close()
	d.indices, err = indicesOf(of, d.table.rowCount())
	return err
}

// chooseColumns sets d.columns to the columns of a sample. The error wraps
// [value.ErrUnsupported] if the table lacks one of them.
func (d *dataset) chooseColumns(r *value.Record) error {
	v, _ := r.Attr("_format_columns")
	if v == nil {
		for k := range d.table.names {
			d.columns = append(d.columns, k)
		}
		return nil
	}
	if all, _ := r.Attr("_output_all_columns"); all == true {
		return unsupportedError("output_all_columns is not supported by Go")
	}
	names, err := stringList(v)
	if err != nil {
		return err
	}
	for k, name := range d.table.names { // in the order of the table, as in Python
		if slices.Contains(names, name) {
			d.columns = append(d.columns, k)
		}
	}
	if len(names) == 0 {
		return unsupportedError("format has no columns")
	}
	if len(d.columns) != len(names) {
		return unsupportedError("columns are %q, but its format names %q", d.table.names, names)
	}
	return nil
}

// indicesOf returns the row of each sample, as listed in a table with one uint64 column. The error
// wraps [value.ErrUnsupported] if the table has another form, or if a row is not less than rows.
func indicesOf(t *table, rows int) ([]int, error) {
	if len(t.names) != 1 {
		return nil, unsupportedError("indices have %d columns, want 1", len(t.names))
	}
	list := make([]int, 0, t.rowCount())
	for _, c := range t.chunks {
		column, ok := c[0].(*array.Uint64)
		if !ok || column.NullN() > 0 {
			return nil, unsupportedError("indices have type %v, want uint64", c[0].DataType())
		}
		for _, i := range column.Uint64Values() {
			if i > math.MaxInt || int(i) >= rows {
				return nil,
					unsupportedError("index of sample %d is row %d, out of range for %d rows", len(list), i, rows)
			}
			list = append(list, int(i))
		}
	}
	return list, nil
}

// refuseDecoded returns an error that wraps [value.ErrUnsupported] for features that Python
// decodes after reading them, such as images, audio and arrays of fixed shape. info is the
// attribute _info of the data set.
func refuseDecoded(info any) error {
	r, _ := info.(*value.Record)
	if r == nil {
		return unsupportedError("_info is %T, want a DatasetInfo", info)
	}
	v, _ := r.Attr("features")
	if f, ok := v.(*value.Record); ok && len(f.Args) == 1 {
		v = f.Args[0]
	}
	return checkPlain(v)
}

func checkPlain(feature any) error {
	switch f := feature.(type) {
	case nil:
		return nil
	case *value.Dict:
		for _, part := range f.All() {
			if err := checkPlain(part); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, part := range f {
			if err := checkPlain(part); err != nil {
				return err
			}
		}
		return nil
	case *value.Record:
		switch f.Class.Name {
		case "Value", "ClassLabel", "Translation":
			return nil
		case "List", "LargeList", "Sequence":
			inner, _ := f.Attr("feature")
			return checkPlain(inner)
		}
		return unsupportedError("feature %s is not supported by Go", f.Class.Name)
	}
	return unsupportedError("feature is %T, want an object, list or dict", feature)
}

// Len returns the number of samples.
func (d *dataset) Len() int {
	if d.indices != nil {
		return len(d.indices)
	}
	return d.table.rowCount()
}

// Value returns sample i as a *[value.Dict] of the selected columns. Its values are copies. i
// must be from 0 to Len-1; otherwise, or if the file is damaged, Value returns an error.
func (d *dataset) Value(_ context.Context, i int) (any, error) {
	if i < 0 || i >= d.Len() {
		return nil, fmt.Errorf("sample %d out of range, want less than %d", i, d.Len())
	}
	if d.indices != nil {
		i = d.indices[i]
	}
	sample := new(value.Dict)
	err := recoverFaults(func() error {
		c, i := d.table.chunkAt(i)
		for _, k := range d.columns {
			v, err := d.sample.value(c[k], i)
			if err == nil {
				err = sample.Set(d.table.names[k], v)
			}
			if err != nil {
				return fmt.Errorf("column %q: %w", d.table.names[k], err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("row %d: %w", i, err)
	}
	return sample, nil
}

// collateColumns collates a list of samples as the library does without a collate_fn: to a dict
// of columns. Tensors of equal shape are stacked; other values are collected in a list. samples
// must be results of [dataset.Value], at least one.
func collateColumns(samples []any) (any, error) {
	first, _ := samples[0].(*value.Dict)
	columns := new(value.Dict)
	for name := range first.All() {
		list := make([]any, len(samples))
		for k, s := range samples {
			list[k], _ = s.(*value.Dict).Get(name)
		}
		if err := columns.Set(name, stackValues(list)); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// stackValues returns a new tensor of the values of a list if they are tensors of equal shape,
// and otherwise the list itself.
func stackValues(list []any) any {
	all := make([]*tensor.Tensor, len(list))
	for k, v := range list {
		t, ok := v.(*tensor.Tensor)
		if !ok || k > 0 && !slices.Equal(t.Shape(), all[0].Shape()) {
			return list
		}
		all[k] = t
	}
	return tensor.Stack(0, all...)
}

// Close unmaps the files and returns nil. Samples remain valid, because their values are copies.
// No other call may be in progress.
func (d *dataset) Close() error {
	if d.table != nil {
		d.table.close()
	}
	return nil
}

// recoverFaults calls f and returns its error. It converts panics and memory faults in f into
// errors. A damaged or truncated file causes them.
func recoverFaults(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed Arrow file: %v", r)
		}
	}()
	caught := tensor.Catch(func() { err = f() })
	return errors.Join(caught, err)
}

func unsupportedError(format string, args ...any) error {
	return value.Unsupported("datasets.Dataset: %s", fmt.Sprintf(format, args...))
}

func isEmpty(v any) bool {
	d, ok := v.(*value.Dict)
	return v == nil || ok && d.Len() == 0
}

// stringList converts a list of strings. The error wraps [value.ErrUnsupported] for any other
// value.
func stringList(v any) ([]string, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, unsupportedError("column names are %T, want a list", v)
	}
	names := make([]string, len(items))
	for k, item := range items {
		if names[k], ok = item.(string); !ok {
			return nil, unsupportedError("column name is %T, want a str", item)
		}
	}
	return names, nil
}
