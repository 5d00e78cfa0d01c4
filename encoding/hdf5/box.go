package hdf5

// box is a hyperrectangular selection of an array: the shape of the array, and the start and the
// shape of the selection, with one element for each dimension of the array.
type box struct{ array, start, shape []int }

// boxOf returns an equivalent selection with as few dimensions as possible: trailing dimensions
// that are selected as a whole are merged with the preceding one.
func boxOf(array, start, shape []int) box {
	b := box{append([]int{1}, array...), append([]int{0}, start...), append([]int{1}, shape...)}
	for n := len(b.array) - 1; n > 0 && b.shape[n] == b.array[n]; n-- {
		last := b.array[n]
		b.array, b.start, b.shape = b.array[:n], b.start[:n], b.shape[:n]
		b.array[n-1] *= last
		b.start[n-1] *= last
		b.shape[n-1] *= last
	}
	return b
}

// each calls do for each contiguous run of n elements of the selection. in is the offset of the
// run in the array, and out is its offset in the selection, both in elements. It stops at the
// first error and returns it. The selection must not be empty.
func (b box) each(do func(in, out, n int) error) error {
	last := len(b.shape) - 1
	at := make([]int, last)
	for out := 0; ; out += b.shape[last] {
		in := 0
		for i := range b.shape {
			in *= b.array[i]
			if in += b.start[i]; i < last {
				in += at[i]
			}
		}
		if err := do(in, out, b.shape[last]); err != nil || !advanceIndex(at, b.shape[:last]) {
			return err
		}
	}
}

// advanceIndex advances the multi-dimensional index at within shape, last dimension fastest. It
// returns true, or false when the index wraps around to the start.
func advanceIndex(at, shape []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < shape[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// counts is the number of chunks in each dimension of a data set, as gridCounts returns it.
type counts []int

func gridCounts(shape, chunk []int) counts {
	c := make(counts, len(shape))
	for i := range shape {
		c[i] = (shape[i] + chunk[i] - 1) / chunk[i]
	}
	return c
}

// index returns the linear index, in row-major order, of the chunk at the given grid
// coordinates.
func (c counts) index(at []int) (n int) {
	for i := range c {
		n = n*c[i] + at[i]
	}
	return n
}

// coordinatesOf returns the grid coordinates of the n-th chunk. It is the inverse of
// [counts.index].
func (c counts) coordinatesOf(n int) []int {
	at := make([]int, len(c))
	for i := len(c) - 1; i >= 0; i-- {
		at[i] = n % c[i]
		n /= c[i]
	}
	return at
}

// overlap is the intersection of a slab and a chunk. [eachOverlap] makes it.
type overlap struct {
	slab, chunk box // relative to the slab, and to the chunk
}

// coversChunk reports whether the overlap covers all elements of the chunk that lie inside the
// array. array and chunk are shapes, and at is the grid coordinates of the chunk. A chunk on the
// edge may extend past the array.
func (o overlap) coversChunk(array, chunk, at []int) bool {
	for i := range array {
		if o.chunk.shape[i] != min(chunk[i], array[i]-at[i]*chunk[i]) {
			return false
		}
	}
	return true
}

// copy copies the overlapping elements from the chunk to the slab. size is the element size in
// bytes.
func (o overlap) copy(slab, chunk []byte, size int) { o.copyElements(slab, chunk, size, false) }

// copyElements copies the overlapping elements: to the chunk if to is true, from the chunk
// otherwise.
func (o overlap) copyElements(slab, chunk []byte, size int, to bool) {
	o.slab.eachRun(o.chunk, func(s, c, n int) {
		inSlab, inChunk := slab[s*size:(s+n)*size], chunk[c*size:(c+n)*size]
		if to {
			copy(inChunk, inSlab)
		} else {
			copy(inSlab, inChunk)
		}
	})
}

// eachRun calls do for each contiguous run of n elements of b and o, with the offset of the run
// in each array, in elements. b and o must select the same shape.
func (b box) eachRun(o box, do func(at, other, n int)) {
	var places []int
	b.each(func(in, _, _ int) error { places = append(places, in); return nil })
	i := 0
	o.each(func(in, _, n int) error { do(places[i], in, n); i++; return nil })
}

// eachOverlap calls do for each chunk of an array that intersects the selection given by start
// and shape, with the linear index of the chunk. array and chunk are shapes, and the selection
// must not be empty. It stops at the first error and returns it.
func eachOverlap(array, chunk, start, shape []int, do func(index int, common overlap) error) error {
	rank, all := len(array), gridCounts(array, chunk)
	first, several := make([]int, rank), make([]int, rank)
	for i := range array {
		first[i] = start[i] / chunk[i]
		several[i] = (start[i]+shape[i]-1)/chunk[i] - first[i] + 1
	}
	for at := make([]int, rank); ; {
		o := overlap{box{shape, make([]int, rank), make([]int, rank)}, box{chunk, make([]int, rank), make([]int, rank)}}
		place := make([]int, rank)
		for i := range at {
			place[i] = first[i] + at[i]
			low := max(start[i], place[i]*chunk[i])
			high := min(start[i]+shape[i], (place[i]+1)*chunk[i])
			o.slab.start[i], o.chunk.start[i] = low-start[i], low-place[i]*chunk[i]
			o.slab.shape[i], o.chunk.shape[i] = high-low, high-low
		}
		if err := do(all.index(place), o); err != nil || !advanceIndex(at, several) {
			return err
		}
	}
}
