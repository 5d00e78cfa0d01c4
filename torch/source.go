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

// An OpenDataset opens a map-style data set. In Python it is represented by a Dataset object with
// an attribute shoal_dataset, which holds the registered name, or by an object of a class with that
// name, such as "__main__.Photos". Its __len__ must return the number of samples; its __getitem__
// is never called. In Python it may be wrapped in Subset, random_split and ConcatDataset.
//
// The worker calls the data set from one goroutine at a time. [data.WorkerInfo], [data.SampleSeed]
// and [data.Rand] accept the contexts of its calls, as in a [data.Loader]. They derive from
// PyTorch's base seed, which is the same in all workers, so randomness in a sample does not depend
// on the number of workers. A [data.Opener] is opened once in each worker. If the data set has a
// Close method, the worker calls it at the end.
type OpenDataset func(ctx context.Context, w Worker) (data.Dataset, error)

// An OpenStream starts the part of an IterableDataset that this worker serves. The Python object
// must have an attribute shoal_dataset with the registered name, or a class with that name; it may
// be part of a ChainDataset. OpenStream is called once per epoch. [data.Rand] of its context
// returns a generator specific to the worker and the epoch.
type OpenStream func(ctx context.Context, w Worker) iter.Seq2[data.Sample, error]

// An OpenValueStream is an [OpenStream] for samples with any structure, like those of a
// [data.ValueStream].
type OpenValueStream func(ctx context.Context, w Worker) iter.Seq2[any, error]

// valueStream returns the registered stream of a name, or nil. It converts an [OpenStream] to an
// [OpenValueStream].
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

// allStreams returns the set of registered stream names of both kinds.
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

// These are the attributes that configure a Python data set for Go.
const (
	datasetName = "shoal_dataset" // the registered name; None makes Python load the samples
	datasetArgs = "shoal_args"    // a dict of the keyword arguments, in place of the attributes
	datasetLen  = "shoal_len"     // the number of samples; a worker that finds another number fails
)

// openDataset opens the data set of a worker and sets w.fetch and w.stop. args are the arguments
// of the worker. A stream is opened again in each call, for the next epoch. A map-style data set
// stays open, and further calls do nothing.
func (c Child) openDataset(ctx context.Context, w *loaderWorker, args python.Tuple) error {
	holder := args[argDataset]
	if list, ok := holder.([]any); ok && len(list) == 1 { // PyTorch 2.14 and later pass it in a list
		holder = list[0]
	}
	s := &source{child: c, worker: w, opened: map[*python.Record]data.Dataset{}}
	if args[argKind] == int64(kindStream) {
		w.sources, w.labeled = 0, 0
		opens, err := s.collectStreams(holder, 0)
		if err != nil {
			return err
		}
		return w.openStream(ctx, chainStreams(opens))
	}
	if w.fetch != nil { // a persistent worker keeps its data set
		return nil
	}
	ds, err := s.openDataset(ctx, holder)
	if err != nil {
		return errors.Join(err, s.close())
	}
	w.stop, w.info.Dataset = s.close, ds
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNumbered(ctx, ds, index) }
	return nil
}

// A source opens the data sets within one Python object for a worker. Its close method closes
// those that were opened. One goroutine may use it.
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

// openDataset opens the data set that v represents. It returns the same data set if v occurs
// again. The error wraps [ErrUnsupported] if v contains itself or is no object of a supported
// class. s closes the data set.
func (s *source) openDataset(ctx context.Context, v any) (data.Dataset, error) {
	r, ok := v.(*python.Record)
	if !ok {
		return nil, unsupported("data set is %T, want an object", v)
	}
	if ds, begun := s.opened[r]; begun {
		if ds == nil {
			return nil, unsupported("data set %s contains itself", r.Class)
		}
		return ds, nil
	}
	if len(s.opened) >= mostDatasets {
		return nil, unsupported("data set contains more than %d data sets", mostDatasets)
	}
	s.opened[r] = nil
	open, err := s.findOpener(r)
	if err != nil {
		return nil, err
	}
	ds, err := open(s, ctx, r)
	if err != nil {
		return nil, err
	}
	if n := ds.Len(); n < 0 {
		return nil, unsupported("data set %s has %d samples, want 0 or more", r.Class, n)
	}
	s.opened[r] = ds
	return ds, nil
}

// mostDatasets limits the number of data sets within one object.
const mostDatasets = 10_000

// findOpener returns the opener for an object: by shoal_dataset, by the name of its class, or
// because Go supports its class. It returns an error that lists the remedies if there is none.
func (s *source) findOpener(r *python.Record) (opener, error) {
	name, named := attribute(r, datasetName)
	if text, ok := name.(string); ok {
		if open := s.child.Datasets[text]; open != nil {
			return registeredOpener(open, s.child.Labeled[text]), nil
		}
		return nil, s.child.unknownNameError("data set", text)
	}
	if open := s.child.Datasets[r.Class.String()]; open != nil {
		return registeredOpener(open, s.child.Labeled[r.Class.String()]), nil
	}
	if open := knownOpener(r.Class); open != nil && !named {
		return open, nil
	}
	return nil, s.child.unsupportedError(r)
}

// registeredOpener returns the opener of a data set registered in [Child.Datasets]. labeled is
// its entry in [Child.Labeled]. The opener returns an error if the data set has another length
// than in the script.
func registeredOpener(open OpenDataset, labeled bool) opener {
	return func(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
		w, err := s.worker.workerFor(r)
		if err != nil {
			return nil, err
		}
		ds, err := open(ctx, w)
		if err != nil {
			return nil, err
		}
		if ds, err = s.openAndRegister(ctx, ds, labeled); err != nil {
			return nil, err
		}
		if had, _ := attribute(r, datasetLen); had != nil && had != int64(ds.Len()) {
			return nil, fmt.Errorf("the data set has %d samples, and had %v when the script constructed it: construct it "+
				"again", ds.Len(), had)
		}
		return ds, nil
	}
}

// workerFor returns the Worker that is passed to the opener of the data set r. The error wraps
// [ErrUnsupported] if shoal_args is no dict.
func (w *loaderWorker) workerFor(r *python.Record) (Worker, error) {
	args, err := keywordsOf(r)
	own := w.Worker
	own.Args, own.Object = args, r
	return own, err
}

// keywordsOf returns the keyword arguments of a data set: the entries of shoal_args, or all
// attributes without a leading underscore. pathlib paths are converted to strings. The error
// wraps [ErrUnsupported] if shoal_args is no dict.
func keywordsOf(r *python.Record) (*python.Dict, error) {
	if v, ok := attribute(r, datasetArgs); ok {
		d, ok := v.(*python.Dict)
		if !ok {
			return nil, unsupported("%s.%s is %T, want a dict", r.Class, datasetArgs, v)
		}
		return withoutPaths(d).(*python.Dict), nil
	}
	args := new(python.Dict)
	for k, v := range attributes(r) {
		if k != datasetName && k != datasetLen && !strings.HasPrefix(k, "_") {
			args.Set(k, withoutPaths(v))
		}
	}
	return args, nil
}

// attributes yields the attributes of an object. If its class has __slots__, the state is a tuple
// of two dicts.
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

// openAndRegister counts ds as a data set of the worker, opens it if it is a [data.Opener], and
// returns the opened one. It registers it to be closed at the end and to collate batches if it
// can. labeled reports that its samples end with the index of a class.
func (s *source) openAndRegister(ctx context.Context, ds data.Dataset, labeled bool) (data.Dataset, error) {
	s.worker.countSource(labeled)
	ds, err := s.worker.openIfOpener(ctx, s.worker.recordTolerance(ds))
	if c, ok := ds.(io.Closer); ok && err == nil {
		s.closers = append(s.closers, c)
	}
	if c, ok := ds.(Collator); ok && err == nil && s.worker.collator == nil {
		s.worker.collator = c
	}
	return ds, err
}

// openIfOpener opens ds if it is a [data.Opener], and returns the opened data set. Otherwise it
// returns ds.
func (w *loaderWorker) openIfOpener(ctx context.Context, ds data.Dataset) (data.Dataset, error) {
	o, ok := ds.(data.Opener)
	if !ok {
		return ds, nil
	}
	v, err := o.Open(w.sampleContext(ctx, 0))
	if err != nil {
		return nil, fmt.Errorf("open data set: %w", err)
	}
	begun, ok := v.(data.Dataset)
	if !ok {
		return nil, unsupported("data set opens as %T, want a data.Dataset", v)
	}
	return begun, nil
}

// sampleContext returns the context for loading sample i, which [data.WorkerInfo] and
// [data.Rand] accept.
func (w *loaderWorker) sampleContext(ctx context.Context, i int) context.Context {
	return data.WithSample(ctx, w.info, i)
}

// unknownNameError returns the error for a name that is not registered. It lists the registered
// names. kind is "data set" or "stream".
func (c Child) unknownNameError(kind, name string) error {
	return fmt.Errorf("%s %q is not registered in this program: Datasets, for a Python Dataset, has %q, and "+
		"Streams, for an IterableDataset, %q",
		kind, name, slices.Sorted(maps.Keys(c.Datasets)), slices.Sorted(maps.Keys(c.allStreams())))
}

// unsupportedError returns the error for an object that Go cannot load. It lists the remedies.
func (c Child) unsupportedError(r *python.Record) error {
	return unsupported("data set %s has no attribute %s, and its class is not one of those supported by Go: %s. "+
		"Set self.%[2]s in its __init__ (class attributes "+
		"are not sent), or register Datasets[%[4]q] in the Go program, or omit multiprocessing_context=\"spawn\" "+
		"for this DataLoader",
		r.Class, datasetName, strings.Join(recognisedNames(), ", "), r.Class)
}

// collectStreams returns the streams within an object, in order. depth is the nesting depth of
// v, 0 for the outermost; the error wraps [ErrUnsupported] above 100.
func (s *source) collectStreams(v any, depth int) ([]boundStream, error) {
	r, ok := v.(*python.Record)
	if !ok || depth > 100 {
		return nil, unsupported("data set is %T, want an object", v)
	}
	name, _ := attribute(r, datasetName)
	text, named := name.(string)
	if !named {
		text = r.Class.String()
	}
	if open := s.child.valueStream(text); open != nil {
		s.worker.countSource(s.child.Labeled[text])
		w, err := s.worker.workerFor(r)
		return []boundStream{{open, w}}, err
	}
	if named {
		return nil, s.child.unknownNameError("stream", text)
	}
	if r.Class != chainDataset {
		return nil, s.child.unsupportedError(r)
	}
	parts, err := listAttribute(r, "datasets")
	if err != nil {
		return nil, err
	}
	var all []boundStream
	for _, part := range parts {
		more, err := s.collectStreams(part, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > mostDatasets {
			return nil, unsupported("data set contains more than %d data sets", mostDatasets)
		}
	}
	return all, nil
}

// A boundStream is a stream and the Worker to open it with.
type boundStream struct {
	open OpenValueStream
	w    Worker
}

// chainStreams concatenates streams. Each is opened when the one before has ended.
func chainStreams(all []boundStream) func(ctx context.Context) iter.Seq2[any, error] {
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
	next, stop := iter.Pull2(open(w.sampleContext(ctx, w.ID)))
	w.stop = func() error { stop(); return nil }
	if w.position != nil {
		var err error
		if next, err = w.position.trackSamples(next); err != nil {
			return err
		}
	}
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNext(ctx, next, index) }
	return nil
}
