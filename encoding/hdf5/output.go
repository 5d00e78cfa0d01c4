package hdf5

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/tensor"
)

// Output is a data set opened for writing, as returned by [Writer.Dataset] and [Writer.Open].
// The methods of its [Dataset] read the elements written so far. It must not be used while
// another goroutine uses the [Writer], or after [Writer.Close].
type Output struct {
	Dataset
	w *sink
	o Options
}

// chunkBytes is the approximate size in bytes of a chunk if [Options] does not specify one.
const chunkBytes = 1 << 20

// planLayout validates the options, chooses the layout and the filters, and allocates space for a
// contiguous layout. It returns an error that wraps [ErrShape] or [ErrUnsupported] if an option is
// invalid.
func (d *Output) planLayout() error {
	size, err := d.kind.sizeOf(d.shape...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	if d.o.Gzip < 0 || d.o.Gzip > 9 || d.o.Gzip > 0 && d.o.LZF {
		return unsupported("got gzip level %d, want 0 to 9 and not both gzip and lzf", d.o.Gzip)
	}
	if err := d.checkLimit(); err != nil {
		return err
	}
	if d.o.Chunk == nil && !d.o.Shuffle && d.o.Gzip == 0 && !d.o.LZF && d.o.MaxShape == nil {
		d.store.kind, d.size = layoutContiguous, uint64(size)
		if d.address = undefined; size > 0 {
			d.address = d.w.reserveBytes(size)
		}
		return d.w.err
	}
	if d.chunk = d.o.Chunk; d.chunk == nil {
		d.chunk = d.guessChunk()
	}
	bytes, err := d.kind.sizeOf(d.chunk...)
	if err != nil || bytes == 0 || bytes > maxChunk || len(d.chunk) != len(d.shape) || len(d.shape) == 0 {
		return fmt.Errorf("%w: chunks of %v for a shape of %v", ErrShape, d.chunk, d.shape)
	}
	d.store.kind, d.chunks = layoutChunked, map[int]stored{}
	if d.o.Shuffle && d.kind.size > 1 {
		d.filters = append(d.filters, filter{id: filterShuffle, values: []uint32{uint32(d.kind.size)}})
	}
	if d.o.Gzip > 0 {
		d.filters = append(d.filters, filter{id: filterGzip, values: []uint32{uint32(d.o.Gzip)}})
	}
	if d.o.LZF {
		d.filters = append(d.filters, filter{id: filterLZF, flags: optional,
			values: []uint32{lzfRevision, lzfVersion, uint32(bytes)}})
	}
	return nil
}

// growing is the minimum chunk length in an unlimited dimension, before [Output.guessChunk] reduces
// it to the chunk size limit.
const growing = 1024

// guessChunk returns a chunk shape for d.shape and d.limit. It halves the leading dimensions
// until the chunk has at most chunkBytes, 1 MiB.
func (d *Output) guessChunk() []int {
	chunk := make([]int, len(d.shape))
	for i, n := range d.shape {
		if chunk[i] = max(n, 1); d.limit[i] == Unlimited {
			chunk[i] = max(n, growing)
		}
	}
	for i := 0; i < len(chunk); {
		if size, _ := d.kind.sizeOf(chunk...); size <= chunkBytes {
			break
		}
		if chunk[i] == 1 {
			i++
			continue
		}
		chunk[i] = (chunk[i] + 1) / 2
	}
	return chunk
}

// WriteSlab writes src at the offset start, which must have one index for each dimension. src may
// be any view, but must have the dtype and the number of dimensions of the data set. A chunk that
// src covers only partially is read and rewritten. The error wraps [ErrShape] if src is out of
// bounds, or [tensor.ErrClosed]; otherwise it is the error of writing, after which [Writer.Close]
// fails, too.
func (d *Output) WriteSlab(src *tensor.Tensor, start ...int) (err error) {
	if err := foreignTensors.Check(src); err != nil {
		return err
	}
	guarded := tensor.Catch(func() {
		whole := src.Contiguous()
		defer whole.Close()
		if err = checkSlab(d.kind.dtype, d.shape, whole, start); err == nil && whole.Numel() > 0 {
			err = d.write(tensor.Bytes(whole), start, whole.Shape())
		}
		runtime.KeepAlive(whole)
	})
	if err = errors.Join(err, guarded); err == nil {
		return d.w.err
	}
	if d.w.err == nil && !errors.Is(err, ErrShape) {
		d.w.err = err // the file may contain a partial write
	}
	return err
}

func (d *Output) write(b []byte, start, shape []int) error {
	size := d.kind.size
	if d.store.kind == layoutContiguous {
		return boxOf(d.shape, start, shape).each(func(in, out, n int) error {
			d.w.writeAt(d.address+uint64(in*size), b[out*size:(out+n)*size])
			return d.w.err
		})
	}
	all := gridCounts(d.shape, d.chunk)
	return eachOverlap(d.shape, d.chunk, start, shape, func(index int, common overlap) (err error) {
		bytes, _ := d.kind.sizeOf(d.chunk...)
		chunk := make([]byte, bytes)
		if !common.coversChunk(d.shape, d.chunk, all.coordinatesOf(index)) {
			if chunk, err = d.readChunk(index); err != nil {
				return err
			}
		}
		common.copyElements(b, chunk, size, true)
		return d.writeChunk(index, chunk)
	})
}

// writeChunk encodes and writes the chunk with the given linear index. It overwrites the
// previous version of the chunk if the new one fits and the old one is not fixed, and appends
// otherwise. The error wraps [ErrUnsupported] if the encoded chunk exceeds 4 GiB - 1; otherwise
// it is the error of writing.
func (d *Output) writeChunk(index int, b []byte) error {
	b, skipped, err := encode(b, d.filters, d.kind.size)
	if err != nil {
		return err
	}
	if len(b) > maxChunk {
		return unsupported("a chunk of %d bytes", len(b))
	}
	old, ok := d.chunks[index]
	if ok && !old.fixed && len(b) <= old.size {
		d.w.writeAt(old.address, b)
	} else {
		old.address = d.w.append(b)
	}
	old.size, old.skipped, old.fixed = len(b), skipped, false
	d.chunks[index] = old
	return d.w.err
}
