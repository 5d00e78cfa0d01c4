package pixel

import "fmt"

// Mirror copies rows of width elements from src to dst and reverses each. dst and src must not
// overlap. Mirror panics unless they have the same length, a multiple of width.
func Mirror[T uint8 | float32](dst, src []T, width int) {
	if width < 1 || len(dst) != len(src) || len(src)%width != 0 {
		panic(fmt.Sprintf("pixel: mirror %d elements, rows of %d, to %d", len(src), width, len(dst)))
	}
	switch dst := any(dst).(type) {
	case []uint8:
		current.bytes(dst, any(src).([]uint8), width)
	case []float32:
		current.floats(dst, any(src).([]float32), width)
	}
}

func mirrorPortable[T uint8 | float32](dst, src []T, width int) {
	for ; len(src) > 0; dst, src = dst[width:], src[width:] {
		row := src[:width]
		for i := range dst[:width] {
			dst[i] = row[width-1-i]
		}
	}
}
