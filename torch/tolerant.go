package torch

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/data"
)

// A Tolerant is a data set of which some samples may fail. A function that opens a data set
// returns it. A batch of a DataLoader then has the samples that could be loaded. If none could, or
// with batch_size=None, the script gets the error.
type Tolerant struct {
	data.Dataset

	// Retries is how often a worker tries a sample again. Then it calls Skip. If Skip returns true,
	// the batch is without the sample; if it returns false or is nil, the script gets the error.
	// Skip is called once for each failure, by one goroutine.
	Retries int
	Skip    func(i int, err error) bool
}

// tolerant keeps the rules of a Tolerant for the worker, and returns the data set in it.
func (w *loaderWorker) tolerant(ds data.Dataset) data.Dataset {
	t, ok := ds.(*Tolerant)
	if !ok {
		return ds
	}
	if w.tolerance == nil {
		w.tolerance = t
	}
	return t.Dataset
}

// errAllSkipped is wrapped where a batch has no sample that could be loaded.
var errAllSkipped = errors.New("all samples of the batch were skipped")

// tolerated loads a batch after it has failed, without the samples that fail.
func (w *loaderWorker) tolerated(ctx context.Context, ds data.Dataset, numbers []int, single bool) (any, error) {
	var good []int
	var last error
	for _, i := range numbers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := w.tried(func() error {
			_, err := data.Value(w.at(ctx, i), ds, i)
			return err
		})
		if err == nil {
			good = append(good, i)
			continue
		}
		last = fmt.Errorf("load sample %d: %w", i, err)
		if single || w.tolerance.Skip == nil || !w.tolerance.Skip(i, err) {
			return nil, last
		}
	}
	if len(good) == 0 {
		return nil, fmt.Errorf("%w; the last one: %w", errAllSkipped, last)
	}
	var batch any
	err := w.tried(func() (err error) {
		batch, err = w.load(ctx, ds, good, single)
		return err
	})
	return batch, err
}

// tried calls f until it succeeds, at most Retries times more.
func (w *loaderWorker) tried(f func() error) (err error) {
	for range 1 + w.tolerance.Retries {
		if err = w.guarded(f); err == nil {
			break
		}
	}
	return err
}
