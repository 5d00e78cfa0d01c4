package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
)

// An OpenDataset opens a data set with samples by number. In Python it is a Dataset object with an
// attribute shoal_dataset that has the registered name, or an object whose class has that name,
// such as "__main__.Photos". Its __len__ says how many samples there are. Its __getitem__ is never
// called. Subset, random_split and ConcatDataset may be around it in Python.
//
// The data set serves one call at a time. In the contexts of its calls data.WorkerInfo,
// data.SampleSeed and data.Rand work as in a data.Loader. Their seed is PyTorch's base seed, which
// all workers have. So the number of workers does not change what is random in a sample. A
// data.Opener is opened once in each worker. A data set with a method Close is closed at the end.
type OpenDataset func(ctx context.Context, w Worker) (data.Dataset, error)

// An OpenStream begins the samples of this worker of an IterableDataset that has an attribute
// shoal_dataset, or whose class has the registered name. It is called once for each epoch.
// data.Rand of its context is a generator of this worker and epoch. ChainDataset may be around the
// data set in Python.
type OpenStream func(ctx context.Context, w Worker) iter.Seq2[data.Sample, error]

// An OpenValueStream begins the samples of a stream as an OpenStream does. The samples may have any
// structure, as those of a data.ValueStream.
type OpenValueStream func(ctx context.Context, w Worker) iter.Seq2[any, error]

// valueStream returns the stream of a name, or nil. Plain samples are values as well.
func (c Child) valueStream(name string) OpenValueStream {
	if open := c.ValueStreams[name]; open != nil {
		return open
	}
	open := c.Streams[name]
	if open == nil {
		return nil
	}
	return func(ctx context.Context, w Worker) iter.Seq2[any, error] {
		return func(yield func(any, error) bool) {
			for s, err := range open(ctx, w) {
				if !yield(s, err) {
					return
				}
			}
		}
	}
}

// allStreams has the names of both kinds.
func (c Child) allStreams() map[string]bool {
	all := map[string]bool{}
	for name := range c.Streams {
		all[name] = true
	}
	for name := range c.ValueStreams {
		all[name] = true
	}
	return all
}

// These are the attributes by which Python's data sets speak to Go.
const (
	datasetName = "shoal_dataset" // the registered name; None leaves a data set that Go knows to Python
	datasetArgs = "shoal_args"    // a dict of the keyword arguments, in place of all attributes
)

// openDataset opens the data set that an object of Python stands for.
func (c Child) openDataset(ctx context.Context, w *loaderWorker, args python.Tuple) error {
	holder := args[argDataset]
	if list, ok := holder.([]any); ok && len(list) == 1 { // from PyTorch 2.14 on
		holder = list[0]
	}
	s := &source{child: c, worker: w, opened: map[*python.Record]data.Dataset{}}
	if args[argKind] == int64(kindStream) {
		opens, err := s.streams(holder, 0)
		if err != nil {
			return err
		}
		return w.openStream(ctx, chained(opens))
	}
	if w.fetch != nil { // persistent workers keep it
		return nil
	}
	ds, err := s.dataset(ctx, holder)
	if err != nil {
		return errors.Join(err, s.close())
	}
	w.stop = s.close
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNumbered(ctx, ds, index) }
	return nil
}

// A source opens the data sets of one object of Python, and closes them.
type source struct {
	child   Child
	worker  *loaderWorker
	opened  map[*python.Record]data.Dataset // nil while one is being opened
	closers []io.Closer
}

func (s *source) close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// dataset opens a data set, or returns the one that was opened for the same object.
func (s *source) dataset(ctx context.Context, v any) (data.Dataset, error) {
	r, ok := v.(*python.Record)
	if !ok {
		return nil, unsupported("a data set that is %T", v)
	}
	if ds, begun := s.opened[r]; begun {
		if ds == nil {
			return nil, unsupported("%s: a data set that contains itself", r.Class)
		}
		return ds, nil
	}
	if len(s.opened) >= mostDatasets {
		return nil, unsupported("more than %d data sets in one", mostDatasets)
	}
	s.opened[r] = nil
	open, err := s.meant(r)
	if err != nil {
		return nil, err
	}
	ds, err := open(s, ctx, r)
	if err != nil {
		return nil, err
	}
	if n := ds.Len(); n < 0 {
		return nil, unsupported("%s has %d samples", r.Class, n)
	}
	s.opened[r] = ds
	return ds, nil
}

// mostDatasets bounds how many data sets an object has inside.
const mostDatasets = 10_000

// meant chooses how an object is opened: by its name, by that of its class, or as one of the
// classes that every program knows.
func (s *source) meant(r *python.Record) (opener, error) {
	name, named := attribute(r, datasetName)
	if text, ok := name.(string); ok {
		if open := s.child.Datasets[text]; open != nil {
			return registered(open), nil
		}
		return nil, s.child.unknown("data set", text)
	}
	if open := s.child.Datasets[r.Class.String()]; open != nil {
		return registered(open), nil
	}
	if open := known(r.Class); open != nil && !named {
		return open, nil
	}
	return nil, s.child.notOurs(r)
}

// registered opens a data set that the program has registered.
func registered(open OpenDataset) opener {
	return func(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
		w, err := s.worker.of(r)
		if err != nil {
			return nil, err
		}
		ds, err := open(ctx, w)
		if err != nil {
			return nil, err
		}
		return s.begin(ctx, ds)
	}
}

// of describes the worker and an object of Python for the data set that stands for the object.
func (w *loaderWorker) of(r *python.Record) (Worker, error) {
	args, err := keywordsOf(r)
	own := w.Worker
	own.Args, own.Object = args, r
	return own, err
}

// keywordsOf returns the keyword arguments in an object: the entries of shoal_args, or all
// attributes that are not private. A path of pathlib is a string there.
func keywordsOf(r *python.Record) (*python.Dict, error) {
	if v, ok := attribute(r, datasetArgs); ok {
		d, ok := v.(*python.Dict)
		if !ok {
			return nil, unsupported("%s.%s is %T, and not a dict", r.Class, datasetArgs, v)
		}
		return withoutPaths(d).(*python.Dict), nil
	}
	args := new(python.Dict)
	for k, v := range attributes(r) {
		if k != datasetName && !strings.HasPrefix(k, "_") {
			args.Set(k, withoutPaths(v))
		}
	}
	return args, nil
}

// attributes yields the attributes of an object. The state of a class with __slots__ is a pair of
// dicts.
func attributes(r *python.Record) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		parts, ok := r.State.(python.Tuple)
		if !ok {
			parts = python.Tuple{r.State}
		}
		for _, part := range parts {
			d, _ := part.(*python.Dict)
			for k, v := range d.All() {
				if name, ok := k.(string); ok && !yield(name, v) {
					return
				}
			}
		}
	}
}

func attribute(r *python.Record, name string) (v any, ok bool) {
	for k, v := range attributes(r) {
		if k == name {
			return v, true
		}
	}
	return nil, false
}

// begin opens a data.Opener. At the end it closes a data set that has a Close.
func (s *source) begin(ctx context.Context, ds data.Dataset) (data.Dataset, error) {
	ds, err := s.worker.begun(ctx, s.worker.tolerant(ds))
	if c, ok := ds.(io.Closer); ok && err == nil {
		s.closers = append(s.closers, c)
	}
	if c, ok := ds.(Collator); ok && err == nil && s.worker.collator == nil {
		s.worker.collator = c
	}
	return ds, err
}

// begun opens what is an Opener.
func (w *loaderWorker) begun(ctx context.Context, ds data.Dataset) (data.Dataset, error) {
	o, ok := ds.(data.Opener)
	if !ok {
		return ds, nil
	}
	v, err := o.Open(w.at(ctx, 0))
	if err != nil {
		return nil, fmt.Errorf("open the data set: %w", err)
	}
	begun, ok := v.(data.Dataset)
	if !ok {
		return nil, unsupported("a data set that opens as %T", v)
	}
	return begun, nil
}

// at is the context of a sample.
func (w *loaderWorker) at(ctx context.Context, i int) context.Context {
	return data.WithSample(ctx, w.info, i)
}

// unknown lists the names that the program has.
func (c Child) unknown(kind, name string) error {
	return fmt.Errorf("this program has no %s %q; Datasets, for a Dataset in Python, has %q, and Streams, for an IterableDataset, %q",
		kind, name, slices.Sorted(maps.Keys(c.Datasets)), slices.Sorted(maps.Keys(c.allStreams())))
}

// notOurs says what an object would need to be Go's.
func (c Child) notOurs(r *python.Record) error {
	return unsupported("the data set %s has no attribute %s, and it is none of the classes that Go knows: %s. Set self.%[2]s in its __init__ (what only the class has "+
		"does not come along), or register Datasets[%[4]q] in the Go program, or leave out multiprocessing_context=\"spawn\" for this DataLoader",
		r.Class, datasetName, strings.Join(recognisedNames(), ", "), r.Class)
}

// streams returns functions that open the streams of an object, one after the other.
func (s *source) streams(v any, depth int) ([]boundStream, error) {
	r, ok := v.(*python.Record)
	if !ok || depth > 100 {
		return nil, unsupported("a data set that is %T", v)
	}
	name, _ := attribute(r, datasetName)
	text, named := name.(string)
	if !named {
		text = r.Class.String()
	}
	if open := s.child.valueStream(text); open != nil {
		w, err := s.worker.of(r)
		return []boundStream{{open, w}}, err
	}
	if named {
		return nil, s.child.unknown("stream", text)
	}
	if r.Class != chainDataset {
		return nil, s.child.notOurs(r)
	}
	parts, err := items(r, "datasets")
	if err != nil {
		return nil, err
	}
	var all []boundStream
	for _, part := range parts {
		more, err := s.streams(part, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > mostDatasets {
			return nil, unsupported("more than %d data sets in one", mostDatasets)
		}
	}
	return all, nil
}

// A boundStream has the function that opens a stream, and its Worker.
type boundStream struct {
	open OpenValueStream
	w    Worker
}

// chained opens streams one after the other.
func chained(all []boundStream) func(ctx context.Context) iter.Seq2[any, error] {
	return func(ctx context.Context) iter.Seq2[any, error] {
		return func(yield func(any, error) bool) {
			for _, b := range all {
				for s, err := range b.open(ctx, b.w) {
					if !yield(s, err) {
						return
					}
				}
			}
		}
	}
}

func (w *loaderWorker) openStream(ctx context.Context, open func(context.Context) iter.Seq2[any, error]) error {
	if err := w.stop(); err != nil {
		return err
	}
	next, stop := iter.Pull2(open(w.at(ctx, w.ID)))
	w.stop = func() error { stop(); return nil }
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNext(ctx, next, index) }
	return nil
}
