package pixel

// Paeth reverses PNG's Paeth filter for a row. To each byte of raw it adds one of the three
// neighbors at distance step (left, above, and above left): the nearest to left + above - above
// left. It may write one byte beyond dst if the capacity allows it.
func Paeth(dst, raw, above []uint8, step int) {
	n := len(raw)
	current.paeth(dst[:n], raw, above[:n], step)
}

func paethPortable(dst, raw, above []uint8, step int) {
	for i := range min(step, len(raw)) {
		dst[i] = raw[i] + above[i]
	}
	for i := step; i < len(raw); i++ {
		dst[i] = raw[i] + paethPredictor(int32(dst[i-step]), int32(above[i]), int32(above[i-step]))
	}
}

// paethPredictor returns the argument that is nearest to a + b - c. In a tie it prefers a, then b.
func paethPredictor(a, b, c int32) uint8 {
	toA, toB := b-c, a-c
	toC := abs(toA + toB)
	toA, toB = abs(toA), abs(toB)
	if toA <= toB && toA <= toC {
		return uint8(a)
	}
	if toB <= toC {
		return uint8(b)
	}
	return uint8(c)
}

func abs(v int32) int32 {
	sign := v >> 31
	return (v ^ sign) - sign
}

// Add writes the len(a) sums of the bytes of a and b, modulo 256, to dst, which must not overlap
// them.
func Add(dst, a, b []uint8) {
	n := len(a)
	current.add(dst[:n], a, b[:n])
}

func addPortable(dst, a, b []uint8) {
	for i, v := range a {
		dst[i] = v + b[i]
	}
}
