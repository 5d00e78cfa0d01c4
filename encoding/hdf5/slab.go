package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// Read reads the whole data set into a tensor on the heap. The caller must close the tensor. The
// error wraps [ErrFormat] or [ErrLimit]; otherwise it is the error of reading. [Dataset.ReadSlab]
// reads data sets that exceed the limit.
func (d *Dataset) Read() (*tensor.Tensor, error) {
	if _, err := d.readableSize(); err != nil {
		return nil, err
	}
	t := tensor.Empty(d.kind.dtype, d.shape...)
	if err := d.ReadSlab(t, make([]int, len(d.shape))...); err != nil {
		return nil, err
	}
	return t, nil
}

// readableSize returns the size of all elements in bytes. The error wraps [ErrLimit] if the size
// exceeds the limit.
func (d *Dataset) readableSize() (int, error) {
	size, err := d.kind.sizeOf(d.shape...)
	if err == nil {
		err = safefile.CheckSize(int64(size), d.maxExpandedSize(), d.most,
			"raise File.MaxBytes if this is intended, or read slabs")
	}
	return size, err
}

// maxExpandedSize returns the maximum number of bytes that the stored data can plausibly expand
// to, for the limit of [File.MaxBytes].
func (d *Dataset) maxExpandedSize() (n int64) {
	for _, c := range d.chunks {
		n += int64(c.size)
	}
	if n += int64(len(d.compact)); d.store.kind == layoutContiguous && d.address != undefined {
		n += int64(d.size)
	}
	if n = min(n, d.tree.size); len(d.filters) > 0 {
		n = safefile.InflatedSize(n)
	}
	return n
}

// ReadSlab reads the elements of the data set from the offset start into dst, which must be
// contiguous. start must have one index for each dimension. Elements that were never written have
// the fill value of the data set. The error wraps [ErrShape] if dst is out of bounds or has a
// different dtype, [ErrFormat], or [ErrLimit] if a chunk is too large; otherwise it is the error of
// reading.
func (d *Dataset) ReadSlab(dst *tensor.Tensor, start ...int) error {
	if err := checkSlab(d.kind.dtype, d.shape, dst, start); err != nil {
		return err
	}
	b := tensor.Bytes(dst)
	defer runtime.KeepAlive(dst)
	if len(b) == 0 {
		return nil
	}
	if err := d.read(b, start, dst.Shape()); err != nil {
		return err
	}
	if d.kind.swapped {
		numpy.Swap(d.kind.dtype.String(), b)
	}
	numpy.Clean(d.kind.dtype.String(), b)
	dst.Touch()
	return nil
}

// checkSlab returns an error that wraps [ErrShape] if the slab is not contiguous, is out of bounds,
// or has a different dtype.
func checkSlab(dt tensor.DType, shape []int, slab *tensor.Tensor, start []int) error {
	bad := slab.DType() != dt || slab.Dims() != len(shape) || len(start) != len(shape) || !slab.IsContiguous()
	for i := 0; i < len(shape) && !bad; i++ {
		bad = start[i] < 0 || start[i] > shape[i] || slab.Dim(i) > shape[i]-start[i]
	}
	if bad {
		return fmt.Errorf("%w: %v %v at %v of %v %v", ErrShape, slab.DType(), slab.Shape(), start, dt, shape)
	}
	return nil
}

// read fills b with the selected elements in file byte order. b must have the size of the
// selection.
func (d *Dataset) read(b []byte, start, shape []int) error {
	switch {
	case d.store.kind == layoutChunked:
		return d.readChunks(b, start, shape)
	case d.store.kind == layoutContiguous && d.address == undefined:
		d.fillBlank(b)
		return nil
	}
	size := d.kind.size
	return boxOf(d.shape, start, shape).each(func(in, out, n int) error {
		to := b[out*size : (out+n)*size]
		if d.store.kind == layoutCompact {
			copy(to, d.compact[in*size:])
			return nil
		}
		if _, err := d.tree.r.ReadAt(to, int64(d.address)+int64(in*size)); err != nil {
			if err == io.EOF {
				err = malformed("file was truncated")
			}
			return err
		}
		return nil
	})
}

// fillBlank fills b with the fill value, or zeros if there is none. b must contain whole
// elements.
func (d *Dataset) fillBlank(b []byte) {
	clear(b)
	for at := 0; d.fill != nil && at < len(b); at += len(d.fill) {
		copy(b[at:], d.fill)
	}
}

// readChunks reads the selected elements of all chunks that intersect the selection into b, in
// GOMAXPROCS goroutines. It returns one of their errors after all have ended.
func (d *Dataset) readChunks(b []byte, start, shape []int) (err error) {
	type part struct {
		index  int
		common overlap
	}
	parts, errs := make(chan part), make(chan error)
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		go func() {
			var err error
			guarded := tensor.Catch(func() {
				for p := range parts {
					err = cmp.Or(err, d.readPart(b, p.index, p.common))
				}
			})
			for range parts { // drain after a panic
			}
			errs <- errors.Join(err, guarded)
		}()
	}
	eachOverlap(d.shape, d.chunk, start, shape, func(index int, common overlap) error {
		parts <- part{index, common}
		return nil
	})
	close(parts)
	for range workers {
		err = cmp.Or(err, <-errs)
	}
	return err
}

// readPart copies the intersection of the chunk with the given linear index and the selection to
// b. If the chunk was never written, the intersection gets the fill value.
func (d *Dataset) readPart(b []byte, index int, common overlap) error {
	size := d.kind.size
	if _, ok := d.chunks[index]; !ok {
		return common.slab.each(func(in, _, n int) error {
			d.fillBlank(b[in*size : (in+n)*size])
			return nil
		})
	}
	chunk, err := d.readChunk(index)
	if err == nil {
		common.copy(b, chunk, size)
	}
	return err
}

// readChunk returns the decoded elements of the chunk with the given linear index, or fill
// values if the chunk was never written. The error wraps [ErrLimit] if the chunk is too large,
// and [ErrFormat] if it is damaged.
func (d *Dataset) readChunk(index int) ([]byte, error) {
	size, _ := d.kind.sizeOf(d.chunk...)
	s, ok := d.chunks[index]
	if !ok {
		b := make([]byte, size)
		d.fillBlank(b)
		return b, nil
	}
	if err := safefile.CheckSize(int64(size), safefile.InflatedSize(int64(s.size)), d.most,
		"raise File.MaxBytes if a chunk of this size is intended"); err != nil {
		return nil, err
	}
	b, err := d.tree.readAt(s.address, s.size)
	if err != nil {
		return nil, err
	}
	return decode(b, d.filters, s.skipped, size, d.kind.size)
}
