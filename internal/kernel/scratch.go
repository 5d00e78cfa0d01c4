package kernel

import "unsafe"

// Scratch is temporary space that is reused between calls. It grows to the size that the largest
// call needs. The zero value is ready to use. A Scratch must not be used by concurrent calls; keep
// one per layer or per goroutine. Kernels that take a *Scratch accept nil and then allocate.
type Scratch struct{ slots [slotCount][]uint64 }

// slot identifies a buffer of a Scratch. A kernel must use different slots for buffers that it
// needs at the same time.
type slot int

const (
	images    slot = iota // unfolded images, one per worker
	filters               // reordered filters
	gradients             // of the filters, for each group of images
	offsets               // of the rows of a factor
	firsts                // packed first factors
	seconds               // packed second factors
	turned                // offsets of transposed rows
	slotCount
)

// borrowSlice returns n elements of slot i. Their contents are undefined. They are valid until
// the next call with the same slot. If s is nil, it allocates them.
func borrowSlice[T Float | int](s *Scratch, i slot, n int) []T {
	if s == nil {
		return make([]T, n)
	}
	var t T
	words := (n*int(unsafe.Sizeof(t)) + 7) / 8
	if len(s.slots[i]) < words {
		s.slots[i] = make([]uint64, words)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(s.slots[i]))), n)
}
