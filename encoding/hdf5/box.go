package hdf5

// A box is a part of an array: for each dimension of the array where the part begins, and how long
// it is.
type box struct{ array, start, shape []int }

// boxOf returns a box with as few dimensions as will do: the last ones that are whole are one with
// that before them.
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

// each calls do for each run of n elements of the box: where it begins in the array, and where in
// the box itself.
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
		if err := do(in, out, b.shape[last]); err != nil || !next(at, b.shape[:last]) {
			return err
		}
	}
}

// next counts at up to shape, the last dimension first, and says if there was more.
func next(at, shape []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < shape[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// counts is how many chunks there are in each dimension.
type counts []int

func grid(shape, chunk []int) counts {
	c := make(counts, len(shape))
	for i := range shape {
		c[i] = (shape[i] + chunk[i] - 1) / chunk[i]
	}
	return c
}

// index is the number of a chunk, in the order of C.
func (c counts) index(at []int) (n int) {
	for i := range c {
		n = n*c[i] + at[i]
	}
	return n
}

// place is the inverse of index.
func (c counts) place(n int) []int {
	at := make([]int, len(c))
	for i := len(c) - 1; i >= 0; i-- {
		at[i] = n % c[i]
		n /= c[i]
	}
	return at
}

// An overlap is what a box and a chunk have in common.
type overlap struct {
	slab, chunk box // in the box's own elements, and in the chunk's
}

// whole reports whether all elements of the chunk that are in an array are in common.
func (o overlap) whole(array, chunk, at []int) bool {
	for i := range array {
		if o.chunk.shape[i] != min(chunk[i], array[i]-at[i]*chunk[i]) {
			return false
		}
	}
	return true
}

// copy copies what is common from the chunk to the slab.
func (o overlap) copy(slab, chunk []byte, size int) { o.move(slab, chunk, size, false) }

// move copies what is common, to the chunk or from it.
func (o overlap) move(slab, chunk []byte, size int, to bool) {
	o.slab.runs(o.chunk, func(s, c, n int) {
		inSlab, inChunk := slab[s*size:(s+n)*size], chunk[c*size:(c+n)*size]
		if to {
			copy(inChunk, inSlab)
		} else {
			copy(inSlab, inChunk)
		}
	})
}

// runs calls do for each run of n elements of two boxes of one shape: where it begins in both
// arrays.
func (b box) runs(o box, do func(at, other, n int)) {
	var places []int
	b.each(func(in, _, _ int) error { places = append(places, in); return nil })
	i := 0
	o.each(func(in, _, n int) error { do(places[i], in, n); i++; return nil })
}

// meet calls do for each chunk of an array that a box meets.
func meet(array, chunk, start, shape []int, do func(index int, common overlap) error) error {
	rank, all := len(array), grid(array, chunk)
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
		if err := do(all.index(place), o); err != nil || !next(at, several) {
			return err
		}
	}
}
