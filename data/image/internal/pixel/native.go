//go:build amd64 || arm64

package pixel

// mirrorBy returns a function for [Mirror] that uses loop, which is in assembly, for rows with a
// width of least or more, and the portable loop for others.
func mirrorBy[T uint8 | float32](least int, loop func(rows, width int, src, dst *T)) func(dst, src []T, width int) {
	return func(dst, src []T, width int) {
		if width < least {
			mirrorPortable(dst, src, width)
			return
		}
		for most := max(1, longest/width) * width; len(dst) > 0; {
			n := min(most, len(dst))
			loop(n/width, width, &src[0], &dst[0])
			dst, src = dst[n:], src[n:]
		}
	}
}

// longest is the approximate maximum number of elements for one call of an assembly loop, because
// the scheduler cannot preempt it.
const longest = 1 << 16
