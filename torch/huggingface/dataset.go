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

// class is the Python class of the data sets that this package reads.
var class = value.Named("datasets.arrow_dataset.Dataset")

func init() {
	reader.Register(class, reader.Reader{Check: check, Open: open, Collate: columns})
}

// used are the attributes that say what samples are. Others, such as the fingerprint and the
// licence, say where the samples come from.
var used = []string{"_data", "_indices", "_format_type", "_format_kwargs", "_format_columns",
	"_output_all_columns", "_indexes"}

// A dataset is a table and the format of its rows.
type dataset struct {
	table   *table
	indices []int // the row of each sample; nil if the samples are all rows, in their order
	columns []int // the columns of the table that a sample has
	sample  maker
}

var (
	_ data.ValueDataset = (*dataset)(nil)
	_ io.Closer         = (*dataset)(nil)
)

// check returns nil, or the reason why open would refuse an object of the class: the error wraps
// ErrUnsupported. It opens the files and closes them.
func check(o *pickle.Object) error {
	state, _ := o.State.(*value.Dict)
	l := new(value.Lifter)
	l.Object = func(o *pickle.Object) (any, error) { return l.Record(o) }
	small := new(value.Dict)
	for _, name := range used {
		if err := lift(l, small, state, name); err != nil {
			return err
		}
	}
	if info, ok := state.Get("_info"); ok {
		from, _ := info.(*pickle.Object)
		if from == nil {
			return refuse("its _info is %T", info)
		}
		all, _ := from.State.(*value.Dict)
		some := new(value.Dict)
		if err := lift(l, some, all, "features"); err != nil {
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

func lift(l *value.Lifter, to, from *value.Dict, name string) error {
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

// open returns the data set of an object of the class: a data.ValueDataset whose values are dicts.
// The error wraps ErrUnsupported if its samples would not be those of Python, or a file is not a
// file of Arrow. The caller closes the data set.
func open(r *value.Record) (data.DatasetCloser, error) {
	d := new(dataset)
	err := guard(func() error { return d.open(r) })
	if err != nil {
		d.Close()
		if !errors.Is(err, value.ErrUnsupported) {
			err = refuse("%v", err)
		}
		return nil, err
	}
	return data.Structured(d), nil
}

// open reads the attributes, in the order in which a person would read them.
func (d *dataset) open(r *value.Record) error {
	format, _ := r.Attr("_format_type")
	switch format {
	case nil:
		d.sample = ofPython
	case "torch":
		d.sample = ofTorch
	default:
		return refuse("the format %v is made by Python; with_format(\"torch\") and none are made by Go", format)
	}
	if v, _ := r.Attr("_format_kwargs"); !empty(v) {
		return refuse("the arguments of its format, %v, are for Python", v)
	}
	if v, _ := r.Attr("_indexes"); !empty(v) {
		return refuse("it has an index for searches, which is Python's")
	}
	if info, ok := r.Attr("_info"); ok {
		if err := decodes(info); err != nil {
			return err
		}
	}
	v, _ := r.Attr("_data")
	var err error
	if d.table, err = tableOf(v); err != nil {
		return err
	}
	if err := d.choose(r); err != nil {
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
	d.indices, err = indicesOf(of, d.table.rows())
	return err
}

// choose finds the columns of a sample.
func (d *dataset) choose(r *value.Record) error {
	v, _ := r.Attr("_format_columns")
	if v == nil {
		for k := range d.table.names {
			d.columns = append(d.columns, k)
		}
		return nil
	}
	if all, _ := r.Attr("_output_all_columns"); all == true {
		return refuse("output_all_columns mixes formats, which Python does")
	}
	names, err := texts(v)
	if err != nil {
		return err
	}
	for k, name := range d.table.names { // a sample has them in the order of the table
		if slices.Contains(names, name) {
			d.columns = append(d.columns, k)
		}
	}
	if len(names) == 0 {
		return refuse("its format has no columns")
	}
	if len(d.columns) != len(names) {
		return refuse("it has the columns %q, and its format is of %q", d.table.names, names)
	}
	return nil
}

// indicesOf reads the rows of the samples.
func indicesOf(t *table, rows int) ([]int, error) {
	if len(t.names) != 1 {
		return nil, refuse("its indices have %d columns", len(t.names))
	}
	list := make([]int, 0, t.rows())
	for _, c := range t.chunks {
		column, ok := c[0].(*array.Uint64)
		if !ok || column.NullN() > 0 {
			return nil, refuse("its indices are of type %v", c[0].DataType())
		}
		for _, i := range column.Uint64Values() {
			if i > math.MaxInt || int(i) >= rows {
				return nil, refuse("its sample %d is row %d of %d", len(list), i, rows)
			}
			list = append(list, int(i))
		}
	}
	return list, nil
}

// decodes refuses features that Python decodes after it has read them: pictures, sound, arrays of
// fixed shape.
func decodes(info any) error {
	r, _ := info.(*value.Record)
	if r == nil {
		return refuse("its _info is %T", info)
	}
	v, _ := r.Attr("features")
	if f, ok := v.(*value.Record); ok && len(f.Args) == 1 {
		v = f.Args[0]
	}
	return plain(v)
}

func plain(feature any) error {
	switch f := feature.(type) {
	case nil:
		return nil
	case *value.Dict:
		for _, part := range f.All() {
			if err := plain(part); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for _, part := range f {
			if err := plain(part); err != nil {
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
			return plain(inner)
		}
		return refuse("the feature %s is decoded by Python", f.Class.Name)
	}
	return refuse("a feature is %T", feature)
}

// Len returns the number of samples.
func (d *dataset) Len() int {
	if d.indices != nil {
		return len(d.indices)
	}
	return d.table.rows()
}

// Value returns sample i, a dict.
func (d *dataset) Value(_ context.Context, i int) (any, error) {
	if i < 0 || i >= d.Len() {
		return nil, fmt.Errorf("sample %d of %d: out of range", i, d.Len())
	}
	if d.indices != nil {
		i = d.indices[i]
	}
	sample := new(value.Dict)
	err := guard(func() error {
		c, i := d.table.at(i)
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

// columns makes the batch that the library makes of a list of samples without a collate_fn: a dict
// of columns. Tensors of one shape become one tensor. Other values become a list.
func columns(samples []any) (any, error) {
	first, _ := samples[0].(*value.Dict)
	columns := new(value.Dict)
	for name := range first.All() {
		list := make([]any, len(samples))
		for k, s := range samples {
			list[k], _ = s.(*value.Dict).Get(name)
		}
		if err := columns.Set(name, stacked(list)); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// stacked makes one tensor of the tensors in a list, or returns the list.
func stacked(list []any) any {
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

// Close unmaps the files. No value refers to them.
func (d *dataset) Close() error {
	if d.table != nil {
		d.table.close()
	}
	return nil
}

// guard turns panics and faults in f, which a damaged or cut file causes, into errors.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a damaged Arrow file: %v", r)
		}
	}()
	caught := tensor.Catch(func() { err = f() })
	return errors.Join(caught, err)
}

func refuse(format string, args ...any) error {
	return value.Unsupported("datasets.Dataset: %s", fmt.Sprintf(format, args...))
}

func empty(v any) bool {
	d, ok := v.(*value.Dict)
	return v == nil || ok && d.Len() == 0
}

// texts returns a list of strings.
func texts(v any) ([]string, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, refuse("names of columns are %T", v)
	}
	names := make([]string, len(items))
	for k, item := range items {
		if names[k], ok = item.(string); !ok {
			return nil, refuse("the name of a column is %T", item)
		}
	}
	return names, nil
}
