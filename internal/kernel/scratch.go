package kernel

import "unsafe"

// Scratch is temporary space that grows to what the largest call needs and is used again by the next one. The zero
// value is ready. One Scratch serves one call at a time; keep one per layer or per goroutine. Kernels that
// take a *Scratch accept nil, and then allocate.
type Scratch struct{ slots [slotCount][]uint64 }

// slot names the purposes for which one kernel needs space at the same time.
type slot int

const (
	columns   slot = iota // patches of images as matrix
	gradients             // partial gradients of workers
	products              // results before they are brought in order
	slotCount
)

// borrow returns n elements of slot i with unknown contents.
func borrow[F Float](s *Scratch, i slot, n int) []F {
	if s == nil {
		return make([]F, n)
	}
	var f F
	words := (n*int(unsafe.Sizeof(f)) + 7) / 8
	if len(s.slots[i]) < words {
		s.slots[i] = make([]uint64, words)
	}
	return unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(s.slots[i]))), n)
}
