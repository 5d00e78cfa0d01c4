package pixel

// Constants of the inverse DCT by Loeffler, Ligtenberg and Moschytz, with 13-bit fractions.
const (
	fraction = 13
	extra    = 2 // bits of additional precision between the passes

	c0298631336 = 2446
	c0390180644 = 3196
	c0541196100 = 4433
	c0765366865 = 6270
	c0899976223 = 7373
	c1175875602 = 9633
	c1501321110 = 12299
	c1847759065 = 15137
	c1961570560 = 16069
	c2053119869 = 16819
	c2562915447 = 20995
	c3072711026 = 25172
)

// IDCT writes the 8×8 pixels of a block to dst with the given row stride. coef and quant must be in
// row-major order, not in zigzag order. The pixels equal the output of libjpeg's accurate integer
// IDCT.
func IDCT(coef *[64]int16, quant *[64]int32, dst []uint8, stride int) {
	_ = dst[7*stride+7]
	current.idct(coef, quant, dst, stride)
}

// Flat writes the size×size equal pixels of a block that has only the DC coefficient dc, with
// the quantizer quant, to dst with the given row stride.
func Flat(dc int16, quant int32, dst []uint8, stride, size int) {
	v := clamp((int32(dc)*quant+4)>>3 + 128)
	for y := range size {
		row := dst[y*stride:][:size]
		for x := range row {
			row[x] = v
		}
	}
}

func clamp(v int32) uint8 { return uint8(max(0, min(255, v))) }

func idctPortable(coef *[64]int16, quant *[64]int32, dst []uint8, stride int) {
	var work [64]int32
	for x := range 8 {
		var v [8]int32
		for y := range v {
			v[y] = int32(coef[8*y+x]) * quant[8*y+x]
		}
		transformIDCT(&v, fraction-extra)
		for y := range v {
			work[8*y+x] = v[y]
		}
	}
	for y := range 8 {
		v := (*[8]int32)(work[8*y:])
		transformIDCT(v, fraction+extra+3)
		row := dst[y*stride:][:8]
		for x := range row {
			row[x] = clamp(v[x] + 128)
		}
	}
}

// transformIDCT computes a one-dimensional inverse DCT, and rounds the result by shift bits.
func transformIDCT(v *[8]int32, shift uint) {
	e := (v[2] + v[6]) * c0541196100
	e2, e3 := e-v[6]*c1847759065, e+v[2]*c0765366865
	e0, e1 := (v[0]+v[4])<<fraction, (v[0]-v[4])<<fraction
	even := [4]int32{e0 + e3, e1 + e2, e1 - e2, e0 - e3}

	z1, z2, z3, z4 := v[7]+v[1], v[5]+v[3], v[7]+v[3], v[5]+v[1]
	z5 := (z3 + z4) * c1175875602
	z1, z2 = z1*-c0899976223, z2*-c2562915447
	z3, z4 = z5-z3*c1961570560, z5-z4*c0390180644
	odd := [4]int32{
		v[1]*c1501321110 + z1 + z4,
		v[3]*c3072711026 + z2 + z3,
		v[5]*c2053119869 + z2 + z4,
		v[7]*c0298631336 + z1 + z3,
	}
	half := int32(1) << (shift - 1)
	for i := range even {
		v[i] = (even[i] + odd[i] + half) >> shift
		v[7-i] = (even[i] - odd[i] + half) >> shift
	}
}
