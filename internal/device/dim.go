package device

// A Dim is a dimension of several operands at once: its size, and how far neighbours are apart in
// each of them. S has a number for each operand.
type Dim[S any] struct {
	Size  int
	Steps S
}

// Merge makes one dimension of neighbours, of which the outer comes first, where the outer steps
// over all of the inner one in every operand: operands that are contiguous have one dimension. It
// changes dims; steps returns the numbers of an S.
func Merge[S any](dims []Dim[S], steps func(s *S) []int) []Dim[S] {
	kept := dims[:0]
	for i := range dims {
		d, last := &dims[i], len(kept)-1
		if last >= 0 && continues(steps(&kept[last].Steps), steps(&d.Steps), d.Size) {
			kept[last] = Dim[S]{kept[last].Size * d.Size, d.Steps}
		} else {
			kept = append(kept, *d)
		}
	}
	return kept
}

// continues reports whether a step of the outer dimension is n steps of the inner one.
func continues(outer, inner []int, n int) bool {
	for k, step := range inner {
		if outer[k] != step*n {
			return false
		}
	}
	return true
}
