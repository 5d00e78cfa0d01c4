package torch

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/data"
)

// A Tolerant is a data set with samples that may fail to load. An [OpenDataset] may return it. A
// batch then contains the samples that could be loaded. If no sample of a batch could be loaded, or
// with batch_size=None, the script gets the error.
type Tolerant struct {
	data.Dataset

	// Retries is the number of further attempts to load a failed sample. After them, the worker
	// calls Skip with the index of the sample and the error. If Skip returns true, the batch omits
	// the sample; if it returns false or is nil, the script gets the error. Skip is called once per
	// failed sample, always from the same goroutine.
	Retries int
	Skip    func(i int, err error) bool
}

// recordTolerance records the policy of a [Tolerant] in w.tolerance, unless another one was
// recorded, and returns the data set it wraps. It returns any other data set unchanged.
func (w *loaderWorker) recordTolerance(ds data.Dataset) data.Dataset {
	t, ok := ds.(*Tolerant)
	if !ok {
		return ds
	}
	if w.tolerance == nil {
		w.tolerance = t
	}
	return t.Dataset
}

// errAllSkipped is wrapped if no sample of a batch could be loaded.
var errAllSkipped = errors.New("all samples of the batch were skipped")

// loadTolerant loads a batch again after a failure, without the samples that fail in all
// attempts and that Skip accepts. It returns the error of a sample that must not be skipped, and
// one that wraps errAllSkipped if none is left.
func (w *loaderWorker) loadTolerant(ctx context.Context, ds data.Dataset, numbers []int, single bool) (any, error) {
	var good []int
	var last error
	for _, i := range numbers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := w.retry(func() error {
			_, err := data.Value(w.sampleContext(ctx, i), ds, i)
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
		return nil, fmt.Errorf("%w; last error: %w", errAllSkipped, last)
	}
	var batch any
	err := w.retry(func() (err error) {
		batch, err = w.load(ctx, ds, good, single)
		return err
	})
	return batch, err
}

// retry calls f until it succeeds, with at most Retries repetitions, and returns the last error.
// A panic of f is an error.
func (w *loaderWorker) retry(f func() error) (err error) {
	for range 1 + w.tolerance.Retries {
		if err = w.recoverPanic(f); err == nil {
			break
		}
	}
	return err
}
