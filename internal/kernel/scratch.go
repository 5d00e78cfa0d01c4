package kernel

import "unsafe"

// Scratch is temporary space that grows to what the largest call needs and is used again by the
// next one. The zero value is ready. One Scratch serves one call at a time; keep one per layer or
// per goroutine. Kernels that take a *Scratch accept nil, and then allocate.
type Scratch struct{ slots [slotCount][]uint64 }

// slot names the purposes for which one kernel needs space at the same time.
type slot int

const (
	images    slot = iota // unfolded, for each worker
	filters               // in another order
	gradients             // of the filters, for each group of images
	offsets               // of the rows of a factor
	firsts                // packed first factors
	seconds               // packed second factors
	turned                // offsets of rows that become columns
	slotCount
)

// borrow returns n elements of slot i with unknown contents.
func borrow[T Float | int](s *Scratch, i slot, n int) []T {
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
