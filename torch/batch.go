package torch

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// fetchNumbered loads the batch for a list of indices, or the sample for a single one. With
// batch_size=None a list is a batch too: a BatchSampler passed as the sampler of the DataLoader
// produces lists. If w.tolerance is set, samples that fail are retried and may be skipped. The
// caller must close the result with [CloseAll].
func (w *loaderWorker) fetchNumbered(ctx context.Context, ds data.Dataset, index any) (any, error) {
	numbers, single, err := requestedIndices(index, ds.Len())
	if err != nil {
		return nil, err
	}
	w.info.Dataset = ds
	if w.tolerance == nil {
		return w.load(ctx, ds, numbers, single)
	}
	var batch any
	if err = w.recoverPanic(func() (err error) {
		batch, err = w.load(ctx, ds, numbers,
			single)
		return err
	}); err != nil {
		return w.loadTolerant(ctx, ds, numbers, single)
	}
	return batch, nil
}

// load loads the samples with the given indices as a batch, or the only one of them uncollated
// if single. It fails if any sample fails. The caller must close the result with [CloseAll].
func (w *loaderWorker) load(ctx context.Context, ds data.Dataset, numbers []int, single bool) (any, error) {
	g, gathers := ds.(data.Gatherer)
	_, valued := ds.(data.ValueDataset)
	switch {
	case len(numbers) == 0:
		return nil, unsupported("batch has 0 samples, want at least 1")
	case w.raw || w.own != nil || w.collator != nil || valued || single && w.hasLabels():
		samples, err := w.loadValues(ctx, ds, numbers)
		if err != nil {
			return nil, err
		}
		return w.collateSamples(ctx, samples, numbers, single)
	case gathers && !single:
		return w.gatherBatch(ctx, g, numbers)
	}
	return w.collateRows(len(numbers), !single, func(row int) (data.Sample, error) {
		s, err := ds.Get(w.sampleContext(ctx, numbers[row]), numbers[row])
		if err != nil {
			return nil, fmt.Errorf("load sample %d: %w", numbers[row], err)
		}
		return s, nil
	})
}

// requestedIndices decodes the indices that a DataLoader requests from a data set of n samples,
// and closes index. Samplers in scripts yield int, numpy and torch integers, lists of them, and
// ranges. single reports a scalar index, which selects one sample and no batch. A negative index
// counts from the end, as in Python. The data set must check the upper bound itself.
func requestedIndices(index any, n int) (numbers []int, single bool, err error) {
	defer CloseAll(index)
	switch v := index.(type) {
	case int64, *python.Scalar:
		single = true
	case *tensor.Tensor:
		single = v.Dims() == 0
	}
	list := index
	if single {
		list = []any{index}
	}
	numbers, err = decodeIndices(list, n, "a batch")
	for k, i := range numbers {
		if i < 0 && i >= -n {
			numbers[k] += n
		}
	}
	return numbers, single, err
}

// gatherBatch lets the data set write its samples directly into the rows of a batch, which the
// caller must close. It assumes the shapes of the previous batch and, if that fails, uses the
// shapes of the first sample. numbers are the indices of the samples, at least one.
func (w *loaderWorker) gatherBatch(ctx context.Context, g data.Gatherer, numbers []int) (any, error) {
	ctx = w.sampleContext(ctx, numbers[0])
	if w.like != nil {
		if batch, err := w.gatherBatchAs(ctx, g, numbers); err == nil {
			return batch, nil
		}
	}
	first, err := g.Get(ctx, numbers[0])
	if err != nil {
		return nil, fmt.Errorf("load sample %d: %w", numbers[0], err)
	}
	w.like = first
	return w.gatherBatchAs(ctx, g, numbers)
}

func (w *loaderWorker) gatherBatchAs(ctx context.Context, g data.Gatherer, numbers []int) (batch []any, err error) {
	if batch, err = w.allocateRows(w.like, len(numbers), true); err != nil {
		return nil, err
	}
	into := make(data.Batch, len(batch))
	for k := range batch {
		into[k] = batch[k].(*tensor.Tensor)
	}
	if err := w.recoverPanic(func() error { return g.Gather(ctx, numbers, into) }); err != nil {
		CloseAll(batch)
		return nil, err
	}
	return batch, nil
}

// fetchNext loads the next samples of a stream: as many as index, a list, has elements, or one
// if the DataLoader does not collate. next returns a sample, or false at the end of the stream.
// fetchNext returns errStreamEnds at the end, and also if too few samples for a batch are left
// and w.dropLast is set. The caller must close the result with [CloseAll].
func (w *loaderWorker) fetchNext(ctx context.Context, next func() (any, error, bool), index any) (any, error) {
	n := 1
	if w.collate {
		list, ok := index.([]any)
		if !ok {
			return nil, protocolError("batch indices are %T, want a list", index)
		}
		n = len(list)
	}
	if n == 0 {
		return nil, errStreamEnds
	}
	first, err, ok := next()
	switch s, plain := first.(data.Sample); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errStreamEnds
	case plain && !w.raw && w.own == nil && (w.collate || !w.hasLabels()):
		return w.fetchRows(ctx, next, s, n)
	}
	return w.fetchValues(ctx, next, []any{first}, n)
}

// fetchValues completes samples to n samples of a stream, or to fewer at its end, and collates
// them. It returns errStreamEnds if there are fewer and w.dropLast is set.
func (w *loaderWorker) fetchValues(ctx context.Context, next func() (any, error, bool), samples []any, n int) (any,
	error) {
	for len(samples) < n {
		v, err, ok := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		samples = append(samples, v)
	}
	if w.dropLast && len(samples) < n {
		return nil, errStreamEnds
	}
	return w.collateSamples(ctx, samples, nil, !w.collate)
}

// fetchRows makes a batch of n samples of a stream; first is the sample that was already taken
// from it. It copies each sample when it comes, while it is in the CPU cache, and so that its
// memory serves for the next one. At the end of the stream the batch is shorter, or the error is
// errStreamEnds if w.dropLast is set. A sample with another layout than the first is an error
// after the last sample, as in Python.
func (w *loaderWorker) fetchRows(ctx context.Context, next func() (any, error, bool), first data.Sample, n int) (_ any,
	err error) {
	batch, err := w.allocateRows(first, n, w.collate)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			CloseAll(batch)
		}
	}()
	wrong := fillRow(batch, 0, first, w.collate)
	w.into = make(data.Batch, len(batch))
	for k, t := range batch {
		w.into[k] = t.(*tensor.Tensor)
	}
	defer func() { w.into = nil }()
	for w.row = 1; w.row < n; w.row++ {
		row := w.row
		v, err, ok := next()
		s, plain := v.(data.Sample)
		switch {
		case err != nil:
			return nil, err
		case !ok && w.dropLast:
			return nil, errStreamEnds
		case !ok && wrong == nil:
			return w.shortenBatch(batch, row)
		case !ok:
			return nil, wrong
		case !plain:
			defer CloseAll(batch)
			w.into = nil
			return w.fetchValues(ctx, next, append(rowsOf(batch, row), v), n)
		case wrong == nil:
			wrong = fillRow(batch, row, s, w.collate)
		}
	}
	return batch, wrong
}

// rowsOf returns the first n rows of a batch as [data.Sample] values. Their tensors are views of
// the batch, which may be left to the garbage collector.
func rowsOf(batch []any, n int) []any {
	rows := make([]any, n)
	for i := range rows {
		s := make(data.Sample, len(batch))
		for k, t := range batch {
			s[k] = t.(*tensor.Tensor).Select(0, i)
		}
		rows[i] = s
	}
	return rows
}

// shortenBatch returns a copy of the first n rows of a batch, which the caller must close, and
// closes the batch.
func (w *loaderWorker) shortenBatch(batch []any, n int) (any, error) {
	defer CloseAll(batch)
	return w.collateRows(n, true, func(row int) (data.Sample, error) {
		return rowsOf(batch, n)[row].(data.Sample), nil
	})
}

// allocateRows allocates the tensors of a batch of n samples like s, or of a single sample if
// batched is false, in one storage that PyTorch can map. The elements are uninitialized. The
// caller must close the tensors. The error wraps [data.ErrSample] if s has a nil tensor.
func (w *loaderWorker) allocateRows(s data.Sample, n int, batched bool) ([]any, error) {
	fields := make([]tree.Field, len(s))
	for k, t := range s {
		if t == nil {
			return nil, fmt.Errorf("%w: field %d is nil", data.ErrSample, k)
		}
		fields[k] = tree.Field{DType: t.DType(), Shape: t.Shape()}
		if batched {
			fields[k].Shape = append([]int{n}, fields[k].Shape...)
		}
	}
	all, err := w.batchMemory(fields)
	if err != nil {
		return nil, err
	}
	batch := make([]any, len(all))
	for k, t := range all {
		batch[k] = t
	}
	return batch, nil
}

// collateRows copies n samples into the rows of a batch, or the only one without a batch
// dimension if batched is false. The result is a list of tensors, as default_collate returns for
// tuples, and the caller must close it. Each sample is copied right after sample has returned
// it, while it is in the CPU cache.
func (w *loaderWorker) collateRows(n int, batched bool, sample func(row int) (data.Sample, error)) (any, error) {
	if n == 0 {
		return nil, unsupported("batch has 0 samples, want at least 1")
	}
	var batch []any
	for row := range n {
		s, err := sample(row)
		if err == nil && row == 0 {
			batch, err = w.allocateRows(s, n, batched)
		}
		if err == nil {
			err = fillRow(batch, row, s, batched)
		}
		if err != nil {
			CloseAll(batch)
			return nil, err
		}
	}
	return batch, nil
}

func fillRow(batch []any, row int, s data.Sample, batched bool) error {
	if k := slices.Index(s, nil); k >= 0 {
		return fmt.Errorf("%w: field %d is nil", data.ErrSample, k)
	}
	if len(s) != len(batch) {
		return fmt.Errorf("sample has %d fields, want %d as in the batch: %w", len(s), len(batch), data.ErrShape)
	}
	for k, t := range s {
		to := batch[k].(*tensor.Tensor)
		if batched {
			to = to.Select(0, row)
			defer to.Close()
		}
		if !slices.Equal(t.Shape(), to.Shape()) || t.DType() != to.DType() {
			return fmt.Errorf("field is %v %v, want %v %v as in the batch: %w", t.DType(), t.Shape(), to.DType(),
				to.Shape(), data.ErrShape)
		}
		if t.Storage() != to.Storage() || t.Offset() != to.Offset() { // see Worker.Row
			to.CopyFrom(t)
		}
	}
	return nil
}
