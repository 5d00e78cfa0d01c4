package data

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// A layout is the dtype, shape and device of each field of a sample.
type layout []field

type field struct {
	dtype  tensor.DType
	shape  []int
	device tensor.Device // nil is the host
}

// layoutOf returns the layout of fields, without their first skip dimensions.
func layoutOf(fields []*tensor.Tensor, skip int) layout {
	lay := make(layout, len(fields))
	for k, t := range fields {
		lay[k] = field{t.DType(), t.Shape()[skip:], t.Device()}
	}
	return lay
}

func (lay layout) isEqual(o layout) bool {
	return slices.EqualFunc(lay, o, func(a, b field) bool {
		return a.dtype == b.dtype && a.device == b.device && slices.Equal(a.shape, b.shape)
	})
}

// device returns the device of the first field that is not on the host, or nil.
func (lay layout) device() tensor.Device {
	for _, f := range lay {
		if f.device != nil {
			return f.device
		}
	}
	return nil
}

// single is the number of rows of a batch that consists of one sample without a batch dimension.
const single = -1

// placeFields computes how the fields lie in the memory of a batch with the given number of
// rows, or [single]. It returns the shape of each field, the offset in bytes of each host field
// in the block of host memory, and the size of this block in bytes (here). size is the size of
// all fields, including fields on devices.
func (lay layout) placeFields(rows int) (shapes [][]int, starts []int, here, size int) {
	for _, f := range lay {
		shape := slices.Clone(f.shape)
		if rows != single {
			shape = slices.Insert(shape, 0, rows)
		}
		n := f.dtype.Size()
		for _, d := range shape {
			n *= d
		}
		n = (n + fieldAlign - 1) &^ (fieldAlign - 1)
		shapes, starts, size = append(shapes, shape), append(starts, here), size+n
		if f.device == nil {
			here += n
		}
	}
	return shapes, starts, here, size
}

// fieldAlign is the alignment of the fields in a batch: a cache line.
const fieldAlign = 64

// A batchBuffer is the memory of a batch: one block for all fields on the host, and one tensor
// for each field on a device. It is made by [Loader.newBuffer] or [newBatchBuffer]. Workers may
// write to different rows concurrently.
type batchBuffer struct {
	owner  *Loader // may be nil
	layout layout
	rows   int
	size   int // in bytes
	once   sync.Once
	batch  Batch          // all rows; see allRows
	block  *tensor.Tensor // the block on the heap that batch views
	shared bool           // must be closed
	inUse  bool           // a worker may still write to it, because its fetch was canceled
}

// newBuffer returns a buffer for a batch of the given number of rows, which the workers of c
// will write. Shared memory is allocated at once, heap memory when the first worker uses it. The
// error wraps [arena.ErrNoSpace] if shared memory is full, or [ErrPlace] for samples on a device
// with worker processes.
func (l *Loader) newBuffer(lay layout, rows int, c executor) (*batchBuffer, error) {
	_, here := c.(*goroutineExecutor)
	if dev := lay.device(); dev != nil && l.opts.Kind == Processes && !here {
		return nil, deviceError(dev)
	}
	shared := !here && Kind(l.kind.Load()) != Goroutines || l.needsSharedMemory()
	f := planBatchBuffer(l, lay, rows, shared)
	if !shared {
		return f, nil
	}
	err := f.allocate()
	if errors.Is(err, arena.ErrNoSpace) && l.closeSpareBuffers() {
		err = f.allocate()
	}
	if errors.Is(err, arena.ErrNoSpace) && !l.opts.Reuse {
		// Finalizers return the memory of unreachable batches some time after the collection, so
		// this attempt may still fail. The batch is then tried again later.
		runtime.GC()
		err = f.allocate()
	}
	return f, err
}

// closeSpareBuffers closes the buffers kept for reuse, and reports whether there were any.
func (l *Loader) closeSpareBuffers() bool {
	l.mu.Lock()
	idle := l.idle
	l.idle = nil
	l.mu.Unlock()
	for _, f := range idle {
		f.releaseMemory()
	}
	return len(idle) > 0
}

// overwritesBatches reports whether the Loader overwrites delivered batches, as Options.Reuse asks.
func (l *Loader) overwritesBatches() bool { return l.opts.Reuse && !l.opts.Shared }

// needsSharedMemory reports whether batches must be in shared memory even if goroutines make them.
func (l *Loader) needsSharedMemory() bool { return l.opts.Shared || l.opts.PinMemory }

// newBatchBuffer makes a buffer outside of a Loader and allocates its memory, in shared memory
// if shared is set. The caller must close the tensors of its batch. The error wraps
// [arena.ErrNoSpace] if shared memory is full.
func newBatchBuffer(lay layout, rows int, shared bool) (*batchBuffer, error) {
	f := planBatchBuffer(nil, lay, rows, shared)
	err := f.allocate()
	return f, err
}

// planBatchBuffer makes a buffer without memory, which the caller must allocate with allocate or
// allRows. owner is nil outside of a Loader; the memory is then not reused.
func planBatchBuffer(owner *Loader, lay layout, rows int, shared bool) *batchBuffer {
	_, _, _, size := lay.placeFields(rows)
	return &batchBuffer{owner: owner, layout: lay, rows: rows, size: size, shared: shared || lay.device() != nil}
}

// allocate sets f.batch: it reuses the memory of an earlier batch of the Loader if it can, and
// allocates new memory otherwise. The error wraps [arena.ErrNoSpace] if shared memory is full.
func (f *batchBuffer) allocate() error {
	if f.owner != nil && f.owner.reuseMemory(f) {
		return nil
	}
	shapes, starts, size, _ := f.layout.placeFields(f.rows)
	block, err := newBlock(size, f.shared, f.isConsumerOwned())
	if err != nil {
		return err
	}
	if f.shared || f.isConsumerOwned() {
		defer block.Close()
	} else {
		f.block = block
	}
	batch := make(Batch, len(shapes))
	for k, shape := range shapes {
		dt, dev := f.layout[k].dtype, f.layout[k].device
		if dev != nil {
			batch[k], err = tensor.On(dev).Empty(dt, shape...)
		} else {
			batch[k], err = block.Storage().View(dt, shape, rowMajor(shape), starts[k]/dt.Size())
		}
		if err != nil {
			closeAll(batch)
			return fmt.Errorf("build batch: %w", err)
		}
	}
	f.batch = batch
	return nil
}

// reuseMemory moves the memory of an earlier batch of the same layout to f, and reports whether
// there was one. It prefers the latest one, which is most likely in a cache.
func (l *Loader) reuseMemory(f *batchBuffer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range slices.Backward(l.idle) {
		if old.rows == f.rows && old.shared == f.shared && old.layout.isEqual(f.layout) {
			f.batch, f.block = old.batch, old.block
			l.idle = slices.Delete(l.idle, i, i+1)
			return true
		}
	}
	return false
}

// allRows returns the tensors of all rows, which the buffer owns. Workers may call it
// concurrently. The first call allocates heap memory, for two reasons: fresh memory costs about
// as much as filling it, so more urgent work goes first, and the later an earlier batch's memory
// is reused, the more likely it is in a cache.
func (f *batchBuffer) allRows() Batch {
	f.once.Do(func() {
		if f.batch != nil {
			return
		}
		if err := f.allocate(); err != nil {
			panic(err) // heap allocation does not fail, and the views fit the block
		}
	})
	return f.batch
}

// consumerBatch returns the tensors for the consumer, which may close them. With Options.Reuse
// they are views, because the workers need the buffer's own tensors again even if the consumer
// closes its batch.
func (f *batchBuffer) consumerBatch() Batch {
	if f.owner != nil && f.owner.overwritesBatches() {
		return f.allRows().viewRows(0, f.rows)
	}
	return slices.Clone(f.allRows())
}

// recycleBatch keeps the memory of a batch that is no longer used for a later batch, or frees
// it, and sets s.buffer and s.batch to nil. The memory of a batch with skipped samples is freed,
// because its tensors have been replaced by views.
func (l *Loader) recycleBatch(s *batchState) {
	if s.buffer == nil || len(s.bad) > 0 || l.overwritesBatches() {
		closeAll(s.batch)
	}
	if s.buffer != nil && len(s.bad) > 0 {
		closeAll(s.buffer.batch)
	} else if s.buffer != nil {
		l.recycleBuffer(s.buffer)
	}
	s.buffer, s.batch = nil, nil
}

// recycleBuffer keeps a buffer for reuse. It closes the buffer's tensors instead if enough
// buffers are kept, if the Loader is closed, if Options.Shared is set, because the consumer then
// owns the shared memory, or if a worker may still write to the buffer.
func (l *Loader) recycleBuffer(f *batchBuffer) {
	l.mu.Lock()
	keep := f.batch != nil && !f.inUse && l.closed.Err() == nil && len(l.idle) <= l.maxAhead() &&
		!(f.shared && l.opts.Shared)
	if keep {
		l.idle = append(l.idle, f)
	}
	l.mu.Unlock()
	if !keep {
		closeAll(f.batch)
	}
}

// spare pools heap blocks of closed Loaders. Fresh blocks cost a page fault or a clearing for each
// page.
var spare sync.Pool

func newBlock(size int, shared, own bool) (*tensor.Tensor, error) {
	if own && !shared {
		return lending.borrowBlock(size), nil
	}
	if !shared {
		if t, ok := spare.Get().(*tensor.Tensor); ok && t.Nbytes() >= size {
			return t, nil
		}
		return tensor.Empty(tensor.Uint8, size), nil
	}
	block, err := tensor.EmptyShared(tensor.Uint8, size)
	if err != nil {
		return nil, fmt.Errorf("build batch in shared memory: %w", err)
	}
	return block, nil
}

func rowMajor(shape []int) []int {
	strides, step := make([]int, len(shape)), 1
	for i, n := range slices.Backward(shape) {
		strides[i] = step
		step *= max(n, 1)
	}
	return strides
}

// isConsumerOwned reports whether the memory belongs to the consumer once the batch is
// delivered. This is so for every Loader without Options.Reuse. It is false for buffers made
// outside of a Loader.
func (f *batchBuffer) isConsumerOwned() bool { return f.owner != nil && !f.owner.opts.Reuse }

// releaseMemory closes the tensors of a buffer that no worker and no consumer uses, and keeps
// its heap block for buffers of other Loaders.
func (f *batchBuffer) releaseMemory() {
	closeAll(f.batch)
	if f.block != nil {
		spare.Put(f.block)
	}
}

// viewRows returns views of n rows of each field, beginning with row from. The caller must close
// them.
func (b Batch) viewRows(from, n int) Batch {
	views := make(Batch, len(b))
	for k, t := range b {
		views[k] = t.Narrow(0, from, n)
	}
	return views
}

// removeRows removes the rows listed in gaps, in any order, from a batch in place. It moves the
// following rows up, and replaces each tensor of b by a view of the remaining rows, closing the
// old one. It returns b.
func (b Batch) removeRows(gaps []int) Batch {
	n := b[0].Dim(0)
	for k, t := range b {
		to := 0
		for from := range n {
			if slices.Contains(gaps, from) {
				continue
			}
			if to < from {
				dst, src := t.Select(0, to), t.Select(0, from)
				dst.CopyFrom(src)
				dst.Close()
				src.Close()
			}
			to++
		}
		b[k] = t.Narrow(0, 0, to)
		t.Close()
	}
	return b
}

// nbytes returns the size of all fields in bytes.
func (b Batch) nbytes() (n int) {
	for _, t := range b {
		n += t.Nbytes()
	}
	return n
}

func closeAll(b Batch) {
	for _, t := range b {
		if t != nil {
			t.Close()
		}
	}
}
