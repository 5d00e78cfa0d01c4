package device

// A Dim is one dimension of several operands: its size, and the stride of each operand. S holds one
// stride per operand.
type Dim[S any] struct {
	Size  int
	Steps S
}

// Merge merges adjacent dimensions that all operands traverse contiguously: the outer stride is the
// inner stride times the inner size. dims begins with the outermost dimension. If all operands are
// contiguous, one dimension remains. Merge reuses the memory of dims for its result. steps must
// return the strides in an S, which Merge only reads.
func Merge[S any](dims []Dim[S], steps func(s *S) []int) []Dim[S] {
	kept := dims[:0]
	for i := range dims {
		d, last := &dims[i], len(kept)-1
		if last >= 0 && canMerge(steps(&kept[last].Steps), steps(&d.Steps), d.Size) {
			kept[last] = Dim[S]{kept[last].Size * d.Size, d.Steps}
		} else {
			kept = append(kept, *d)
		}
	}
	return kept
}

// canMerge reports whether two dimensions can be merged, because all operands traverse them
// contiguously: each outer stride is n times the inner stride, and n is the size of the inner
// dimension. Both slices must have the same length.
func canMerge(outer, inner []int, n int) bool {
	for k, step := range inner {
		if outer[k] != step*n {
			return false
		}
	}
	return true
}
