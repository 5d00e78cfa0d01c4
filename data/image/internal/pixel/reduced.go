package pixel

// Constants of the inverse DCTs to four and two pixels, with the same fractions as for [IDCT].
const (
	c0211164243 = 1730
	c0509795579 = 4176
	c0601344887 = 4926
	c0720959822 = 5906
	c0850430095 = 6967
	c1061594337 = 8697
	c1272758580 = 10426
	c1451774981 = 11893
	c2172734803 = 17799
	c3624509785 = 29692
)

// Reduced writes a block as 4×4 or 2×2 pixels, as libjpeg does when it reduces an image. size must
// be 4 or 2. See [IDCT] for the other arguments.
func Reduced(coef *[64]int16, quant *[64]int32, dst []uint8, stride, size int) {
	_ = dst[(size-1)*stride+size-1]
	current.reduced(coef, quant, dst, stride, size)
}

func reducedPortable(coef *[64]int16, quant *[64]int32, dst []uint8, stride, size int) {
	transform, last := idctFour, fraction+extra+4
	if size == 2 {
		transform, last = idctTwo, fraction+extra+5
	}
	shift := last - 3 - 2*extra
	var work [4][8]int32 // result of the column pass
	for x := range 8 {
		if x == 4 || size == 2 && x%2 == 0 && x > 0 {
			continue // not needed for the result
		}
		var v [8]int32
		for y := range v {
			v[y] = int32(coef[8*y+x]) * quant[8*y+x]
		}
		out := transform(&v, shift)
		for y := range size {
			work[y][x] = out[y]
		}
	}
	for y := range size {
		out := transform(&work[y], last)
		for x := range size {
			dst[y*stride+x] = clamp(out[x] + 128)
		}
	}
}

// idctFour computes a one-dimensional inverse DCT to four pixels, and rounds the result by shift
// bits. It ignores the coefficient in the middle.
func idctFour(v *[8]int32, shift int) [4]int32 {
	dc, even := v[0]<<(fraction+1), v[2]*c1847759065-v[6]*c0765366865
	inner := v[1]*c1061594337 - v[3]*c2172734803 + v[5]*c1451774981 - v[7]*c0211164243
	outer := v[1]*c2562915447 + v[3]*c0899976223 - v[5]*c0601344887 - v[7]*c0509795579
	half := int32(1) << (shift - 1)
	return [4]int32{
		(dc + even + outer + half) >> shift,
		(dc - even + inner + half) >> shift,
		(dc - even - inner + half) >> shift,
		(dc + even - outer + half) >> shift,
	}
}

// idctTwo computes a one-dimensional inverse DCT to two pixels, the first two elements of the
// result, and shifts them right by shift bits with rounding. It uses only v[0] and the odd elements
// of v. The result has the type of idctFour's.
func idctTwo(v *[8]int32, shift int) [4]int32 {
	dc := v[0] << (fraction + 2)
	odd := v[1]*c3624509785 - v[3]*c1272758580 + v[5]*c0850430095 - v[7]*c0720959822
	half := int32(1) << (shift - 1)
	return [4]int32{(dc + odd + half) >> shift, (dc - odd + half) >> shift}
}
