package hdf5

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Unlimited is the value in Options.MaxShape for a dimension without a maximum size.
const Unlimited = -1

// MaxShape returns the maximum size of each dimension, or [Unlimited]. It equals [Dataset.Shape] if
// the data set cannot grow. The caller may modify the returned slice.
func (d *Dataset) MaxShape() []int { return slices.Clone(d.limit) }

// checkLimit validates Options.MaxShape and sets d.limit, to d.shape if MaxShape is nil. The
// error wraps [ErrShape].
func (d *Output) checkLimit() error {
	if d.limit = d.o.MaxShape; d.limit == nil {
		d.limit = d.shape
		return nil
	}
	d.limit = slices.Clone(d.limit)
	if len(d.limit) != len(d.shape) || len(d.shape) == 0 {
		return fmt.Errorf("%w: a maximum shape of %v for %v", ErrShape, d.limit, d.shape)
	}
	for i, most := range d.limit {
		if most != Unlimited && most < d.shape[i] {
			return fmt.Errorf("%w: a maximum shape of %v for %v", ErrShape, d.limit, d.shape)
		}
	}
	return nil
}

// Resize changes the shape of the data set, which must stay within Options.MaxShape. New elements
// are zero. Elements outside of the new shape are lost, even if the data set grows again. The error
// wraps [ErrShape] if the shape is invalid; otherwise it is the error of writing.
func (d *Output) Resize(shape ...int) error {
	if len(shape) != len(d.shape) {
		return fmt.Errorf("%w: %v of %d dimensions", ErrShape, shape, len(d.shape))
	}
	for i, n := range shape {
		if n < 0 || d.limit[i] != Unlimited && n > d.limit[i] {
			return fmt.Errorf("%w: to %v, and the maximum shape is %v", ErrShape, shape, d.limit)
		}
	}
	if _, err := d.kind.sizeOf(shape...); err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	if slices.Equal(shape, d.shape) {
		return nil
	}
	return d.renumberChunks(slices.Clone(shape))
}

// renumberChunks renumbers the chunks for a new shape and sets d.shape. Chunks outside of the
// new shape are dropped, and the parts of others are zeroed. On an error, the shape is
// unchanged.
func (d *Output) renumberChunks(shape []int) error {
	before, after := gridCounts(d.shape, d.chunk), gridCounts(shape, d.chunk)
	if slices.Equal(before[1:], after[1:]) && shape[0] >= d.shape[0] && slices.Equal(shape[1:], d.shape[1:]) {
		d.shape = shape // indices are stable if only the first dimension grows
		return nil
	}
	chunks := map[int]stored{}
	for index, c := range d.chunks {
		at := before.coordinatesOf(index)
		if !isInGrid(at, after) {
			continue
		}
		c, err := d.zeroOutside(index, at, c, shape)
		if err != nil {
			return err
		}
		chunks[after.index(at)] = c
	}
	d.shape, d.chunks = shape, chunks
	return nil
}

func isInGrid(at []int, c counts) bool {
	for i, n := range at {
		if n >= c[i] {
			return false
		}
	}
	return true
}

// zeroOutside zeroes the elements of a chunk that are outside of the new shape, and returns the
// chunk's location, c itself if there are none. index and at are the linear index and the grid
// coordinates of the chunk in the old shape.
func (d *Output) zeroOutside(index int, at []int, c stored, shape []int) (stored, error) {
	start, inside := make([]int, len(at)), make([]int, len(at))
	cut := false
	for i := range at {
		inside[i] = min(d.chunk[i], shape[i]-at[i]*d.chunk[i])
		cut = cut || inside[i] < min(d.chunk[i], d.shape[i]-at[i]*d.chunk[i])
	}
	if !cut {
		return c, nil
	}
	old, err := d.readChunk(index)
	if err != nil {
		return c, err
	}
	kept := make([]byte, len(old))
	size := d.kind.size
	if err := boxOf(d.chunk, start, inside).each(func(in, _, n int) error {
		copy(kept[in*size:(in+n)*size], old[in*size:])
		return nil
	}); err != nil {
		return c, err
	}
	err = d.writeChunk(index, kept)
	return d.chunks[index], err
}

// Append writes src after the last element of the first dimension, and grows the data set
// accordingly. The other dimensions of src must equal those of the data set. The error wraps
// [ErrShape] if they do not, or if the result exceeds Options.MaxShape; otherwise it is an error
// of [Output.WriteSlab].
func (d *Output) Append(src *tensor.Tensor) error {
	if src.Dims() != len(d.shape) || src.Dims() == 0 || src.DType() != d.kind.dtype ||
		!slices.Equal(src.Shape()[1:], d.shape[1:]) {
		return fmt.Errorf("%w: %v %v behind %v %v", ErrShape, src.DType(), src.Shape(), d.kind.dtype, d.shape)
	}
	longer, start := slices.Clone(d.shape), make([]int, len(d.shape))
	start[0] = longer[0]
	longer[0] += src.Dim(0)
	if err := d.Resize(longer...); err != nil {
		return err
	}
	return d.WriteSlab(src, start...)
}
