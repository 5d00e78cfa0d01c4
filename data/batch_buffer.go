package data

import (
	"fmt"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/tensor"
)

// A layout is the dtype and the shape of each field of a sample, and where it is.
type layout []field

type field struct {
	dtype  tensor.DType
	shape  []int
	device tensor.Device // nil is the host
}

// layoutOf returns the layout of fields that have skip dimensions in front of those of a sample.
func layoutOf(fields []*tensor.Tensor, skip int) layout {
	lay := make(layout, len(fields))
	for k, t := range fields {
		lay[k] = field{t.DType(), t.Shape()[skip:], t.Device()}
	}
	return lay
}

func (lay layout) equal(o layout) bool {
	return slices.EqualFunc(lay, o, func(a, b field) bool {
		return a.dtype == b.dtype && a.device == b.device && slices.Equal(a.shape, b.shape)
	})
}

// device returns where one of the fields is that is not on the host.
func (lay layout) device() tensor.Device {
	for _, f := range lay {
		if f.device != nil {
			return f.device
		}
	}
	return nil
}

// single is the number of rows of a batch that is one sample, without a dimension for the batch.
const single = -1

// places returns the shapes of the fields of so many rows, where on the host each begins, and how
// many bytes those take, and all.
func (lay layout) places(rows int) (shapes [][]int, starts []int, here, size int) {
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

// fieldAlign is what the fields of a batch begin at a multiple of: a cache line.
const fieldAlign = 64

// A batchBuffer is the memory of a batch: one block, whatever the number of its fields, but for
// those on a device.
type batchBuffer struct {
	owner  *Loader // may be nil
	layout layout
	rows   int
	size   int // in bytes
	once   sync.Once
	batch  Batch          // all rows; see all
	block  *tensor.Tensor // what they are views of, on the heap
	shared bool           // has to be closed
}

// newBatchBuffer makes a buffer with its memory.
func newBatchBuffer(lay layout, rows int, shared bool) (*batchBuffer, error) {
	f := planBatchBuffer(nil, lay, rows, shared)
	err := f.allocate()
	return f, err
}

// planBatchBuffer makes a buffer that has no memory yet.
func planBatchBuffer(owner *Loader, lay layout, rows int, shared bool) *batchBuffer {
	_, _, _, size := lay.places(rows)
	return &batchBuffer{owner: owner, layout: lay, rows: rows, size: size, shared: shared || lay.device() != nil}
}

// allocate gives a buffer its memory.
func (f *batchBuffer) allocate() error {
	if f.owner != nil && f.owner.reuse(f) {
		return nil
	}
	shapes, starts, size, _ := f.layout.places(f.rows)
	block, err := newBlock(size, f.shared, f.own())
	if err != nil {
		return err
	}
	if f.shared || f.own() {
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
			return fmt.Errorf("make a batch: %w", err)
		}
	}
	f.batch = batch
	return nil
}

// all returns the batch of all rows. On the heap it has its memory from when the first worker comes
// to it: new memory costs about as much as filling it, so nothing that is needed sooner has to
// wait, and what an earlier batch had is the later taken the warmer.
func (f *batchBuffer) all() Batch {
	f.once.Do(func() {
		if f.batch != nil {
			return
		}
		if err := f.allocate(); err != nil {
			panic(err) // the heap has room, and a view of a block of its size is sound
		}
	})
	return f.batch
}

// deliver returns the tensors that the consumer gets. With the option Reuse they are views, because
// the workers need the buffer's own tensors again, whatever the consumer has done to its batch.
func (f *batchBuffer) deliver() Batch {
	if f.owner != nil && f.owner.overwrites() {
		return f.all().rows(0, f.rows)
	}
	return slices.Clone(f.all())
}

// spare is blocks on the heap that no Loader uses any more. New ones cost a page fault or a
// clearing for each page.
var spare sync.Pool

func newBlock(size int, shared, own bool) (*tensor.Tensor, error) {
	if own && !shared {
		return lending.block(size), nil
	}
	if !shared {
		if t, ok := spare.Get().(*tensor.Tensor); ok && t.Nbytes() >= size {
			return t, nil
		}
		return tensor.Empty(tensor.Uint8, size), nil
	}
	block, err := tensor.EmptyShared(tensor.Uint8, size)
	if err != nil {
		return nil, fmt.Errorf("make a batch in shared memory: %w", err)
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

// own reports whether the batch is the consumer's.
func (f *batchBuffer) own() bool { return f.owner != nil && !f.owner.opts.Reuse }

// end gives the memory of a buffer back that nobody uses.
func (f *batchBuffer) end() {
	closeAll(f.batch)
	if f.block != nil {
		spare.Put(f.block)
	}
}

// rows returns views of n rows of a batch from one on, to be closed.
func (b Batch) rows(from, n int) Batch {
	views := make(Batch, len(b))
	for k, t := range b {
		views[k] = t.Narrow(0, from, n)
	}
	return views
}

// put copies a sample to a row.
func (b Batch) put(row int, s Sample) error {
	if err := b.fits(s); err != nil {
		return err
	}
	for k, t := range s {
		to := b[k].Select(0, row)
		to.CopyFrom(t)
		if err := to.Close(); err != nil {
			return err
		}
	}
	return nil
}

// fits returns an ErrShape unless a sample has the dtypes and shapes of the rows.
func (b Batch) fits(s Sample) error {
	if len(s) != len(b) {
		return fmt.Errorf("%w: %d fields, where the first sample of the batch has %d", ErrShape, len(s), len(b))
	}
	for k, t := range s {
		if t.DType() != b[k].DType() || t.Device() != b[k].Device() || !slices.Equal(t.Shape(), b[k].Shape()[1:]) {
			return fmt.Errorf("%w: field %d is %v of %v on %v, and of the first sample of the batch %v of %v on %v",
				ErrShape, k, t.Shape(), t.DType(), tensor.Place{Device: t.Device()}, b[k].Shape()[1:],
				b[k].DType(), tensor.Place{Device: b[k].Device()})
		}
	}
	return nil
}

// without moves the rows that follow one of those given up, and returns views of what is left.
func (b Batch) without(gaps []int) Batch {
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

// nbytes returns how many bytes all fields have.
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
