package torch

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// An OpenDataset opens a data set with samples by number. In Python it is any Dataset object that has an attribute
// shoal_dataset with the registered name; its __len__ says how many samples there are, and its __getitem__ is never called. The data set serves
// one call at a time. With their contexts data.WorkerInfo, data.SampleSeed and data.Rand are what they are in a data.Loader: their seed is PyTorch's
// base seed, the same in all workers, so that what is random in a sample does not depend on their number. A data.Opener is opened once, and what has a
// Close is closed at the end.
type OpenDataset func(ctx context.Context, w Worker) (data.Dataset, error)

// An OpenStream begins the samples of an IterableDataset that has an attribute shoal_dataset, those of this worker. It
// is called once for each epoch. data.Rand of its context is a generator of this worker and epoch.
type OpenStream func(ctx context.Context, w Worker) iter.Seq2[data.Sample, error]

// datasetName is the attribute by which Python names a data set of Go's.
const datasetName = "shoal_dataset"

// readByGo reports whether Python's data set, as it is in a pickle, is one of Go's or one around one: that is an error, which Go explains.
func readByGo(dataset any) bool {
	for d := range pickle.Each[*Dict](dataset) {
		if _, ok := d.Get(datasetName); ok {
			return true
		}
	}
	return false
}

// openDataset opens what the attribute of Python's data set names.
func (c Child) openDataset(ctx context.Context, w *loaderWorker, args Tuple) error {
	holder := args[argDataset]
	if list, ok := holder.([]any); ok && len(list) == 1 { // from torch 2.14 on
		holder = list[0]
	}
	record, ok := holder.(*Record)
	if !ok {
		return unsupported("a data set that is %T", holder)
	}
	name, _ := record.Attr(datasetName)
	text, ok := name.(string)
	if !ok {
		return unsupported("the data set %s has no attribute %s: give the DataLoader one that has, not another one around it", record.Class, datasetName)
	}
	w.Args = new(Dict)
	for k, v := range record.State.(*Dict).All() { // in which the name was found
		if k != datasetName {
			w.Args.Set(k, v)
		}
	}
	if args[argKind] == int64(kindStream) {
		open := c.Streams[text]
		if open == nil {
			return c.unknown("stream", text)
		}
		return w.openStream(ctx, open)
	}
	open := c.Datasets[text]
	if open == nil {
		return c.unknown("data set", text)
	}
	if w.fetch != nil { // persistent workers keep it
		return nil
	}
	ds, err := open(ctx, w.Worker)
	if err == nil {
		ds, err = w.opened(ctx, ds)
	}
	if err != nil {
		return err
	}
	if c, ok := ds.(io.Closer); ok {
		w.stop = c.Close
	}
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNumbered(ctx, ds, index) }
	return nil
}

// opened opens what is an Opener.
func (w *loaderWorker) opened(ctx context.Context, ds data.Dataset) (data.Dataset, error) {
	o, ok := ds.(data.Opener)
	if !ok {
		return ds, nil
	}
	v, err := o.Open(w.at(ctx, 0))
	if err != nil {
		return nil, fmt.Errorf("open the data set: %w", err)
	}
	if ds, ok = v.(data.Dataset); !ok {
		return nil, unsupported("a data set that opens as %T", v)
	}
	return ds, nil
}

// at is the context of a sample.
func (w *loaderWorker) at(ctx context.Context, i int) context.Context {
	return data.WithSample(ctx, w.info, i)
}

// unknown says what there is instead.
func (c Child) unknown(kind, name string) error {
	return fmt.Errorf("this program has no %s %q; Datasets, for a Dataset in Python, has %q, and Streams, for an IterableDataset, %q",
		kind, name, slices.Sorted(maps.Keys(c.Datasets)), slices.Sorted(maps.Keys(c.Streams)))
}

func (w *loaderWorker) openStream(ctx context.Context, open OpenStream) error {
	if err := w.stop(); err != nil {
		return err
	}
	next, stop := iter.Pull2(open(w.at(ctx, w.ID), w.Worker))
	w.stop = func() error { stop(); return nil }
	w.fetch = func(_ context.Context, index any) (any, error) { return w.fetchNext(next, index) }
	return nil
}
