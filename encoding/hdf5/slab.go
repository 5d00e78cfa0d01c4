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

// Read reads the whole data set to the heap. The caller closes the tensor. The error wraps
// ErrFormat or ErrLimit, or is the error of reading.
func (d *Dataset) Read() (*tensor.Tensor, error) {
	if _, err := d.readable(); err != nil {
		return nil, err
	}
	t := tensor.Empty(d.kind.dtype, d.shape...)
	if err := d.ReadSlab(t, make([]int, len(d.shape))...); err != nil {
		return nil, err
	}
	return t, nil
}

// readable returns how many bytes all elements have, unless a file asks for too many.
func (d *Dataset) readable() (int, error) {
	size, err := d.kind.sizeOf(d.shape...)
	if err == nil {
		err = safefile.CheckSize(int64(size), d.fills(), d.most, "raise File.MaxBytes if that is meant, or read slabs")
	}
	return size, err
}

// fills is how many bytes of elements can come out of what the file has of them.
func (d *Dataset) fills() (n int64) {
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

// ReadSlab fills dst, which must be contiguous, with the elements of the data set from start on.
// start has one index for each dimension. An element that was never written is the fill value of
// the data set. The error wraps ErrShape where dst does not lie in the data set or has another
// dtype, ErrFormat, or is the error of reading.
func (d *Dataset) ReadSlab(dst *tensor.Tensor, start ...int) error {
	if err := fits(d.kind.dtype, d.shape, dst, start); err != nil {
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

// fits checks a slab.
func fits(dt tensor.DType, shape []int, slab *tensor.Tensor, start []int) error {
	bad := slab.DType() != dt || slab.Dims() != len(shape) || len(start) != len(shape) || !slab.IsContiguous()
	for i := 0; i < len(shape) && !bad; i++ {
		bad = start[i] < 0 || start[i] > shape[i] || slab.Dim(i) > shape[i]-start[i]
	}
	if bad {
		return fmt.Errorf("%w: %v %v at %v of %v %v", ErrShape, slab.DType(), slab.Shape(), start, dt, shape)
	}
	return nil
}

// read fills b with a box of elements as they are in the file.
func (d *Dataset) read(b []byte, start, shape []int) error {
	switch {
	case d.store.kind == layoutChunked:
		return d.readChunks(b, start, shape)
	case d.store.kind == layoutContiguous && d.address == undefined:
		d.blank(b)
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
				err = malformed("the file was cut short")
			}
			return err
		}
		return nil
	})
}

// blank writes the fill value.
func (d *Dataset) blank(b []byte) {
	clear(b)
	for at := 0; d.fill != nil && at < len(b); at += len(d.fill) {
		copy(b[at:], d.fill)
	}
}

// readChunks copies from each chunk that the box meets what is in both, on all processors.
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
			for range parts { // what is left after a fault
			}
			errs <- errors.Join(err, guarded)
		}()
	}
	meet(d.shape, d.chunk, start, shape, func(index int, common overlap) error {
		parts <- part{index, common}
		return nil
	})
	close(parts)
	for range workers {
		err = cmp.Or(err, <-errs)
	}
	return err
}

// readPart copies what a box has of a chunk, of which there is nothing in memory where the file has
// none.
func (d *Dataset) readPart(b []byte, index int, common overlap) error {
	size := d.kind.size
	if _, ok := d.chunks[index]; !ok {
		return common.slab.each(func(in, _, n int) error {
			d.blank(b[in*size : (in+n)*size])
			return nil
		})
	}
	chunk, err := d.readChunk(index)
	if err == nil {
		common.copy(b, chunk, size)
	}
	return err
}

// readChunk returns a chunk's elements.
func (d *Dataset) readChunk(index int) ([]byte, error) {
	size, _ := d.kind.sizeOf(d.chunk...)
	s, ok := d.chunks[index]
	if !ok {
		b := make([]byte, size)
		d.blank(b)
		return b, nil
	}
	if err := safefile.CheckSize(int64(size), safefile.InflatedSize(int64(s.size)), d.most,
		"raise File.MaxBytes if a chunk of that size is meant"); err != nil {
		return nil, err
	}
	b, err := d.tree.at(s.address, s.size)
	if err != nil {
		return nil, err
	}
	return decode(b, d.filters, s.skipped, size, d.kind.size)
}
