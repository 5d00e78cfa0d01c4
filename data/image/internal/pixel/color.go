package pixel

// Coefficients of JPEG's color conversion, with 16-bit fractions.
const (
	redOfCr   = 91881  // 1.402
	greenOfCb = -22554 // -0.344136286
	greenOfCr = -46802 // -0.714136286
	blueOfCb  = 116130 // 1.772
	oneHalf   = 1 << 15
)

// RGB converts a row of JPEG's luma y and chroma cb and cr to red, green and blue. All slices
// must be at least as long as y.
func RGB(r, g, b, y, cb, cr []uint8) {
	n := len(y)
	current.rgb(r[:n], g[:n], b[:n], y, cb[:n], cr[:n])
}

func rgbPortable(r, g, b, y, cb, cr []uint8) {
	for i, l := range y {
		blue, red := int32(cb[i])-128, int32(cr[i])-128
		r[i] = clamp(int32(l) + (redOfCr*red+oneHalf)>>16)
		g[i] = clamp(int32(l) + (greenOfCb*blue+greenOfCr*red+oneHalf)>>16)
		b[i] = clamp(int32(l) + (blueOfCb*blue+oneHalf)>>16)
	}
}

// Float writes scale·x + bias for each x of src. src must be at least as long as dst.
func Float(dst []float32, src []uint8, scale, bias float32) {
	current.float(dst, src[:len(dst)], scale, bias)
}

func floatPortable(dst []float32, src []uint8, scale, bias float32) {
	for i, v := range src {
		dst[i] = float32(float32(v)*scale) + bias
	}
}

// Merge interleaves three planes to packed pixels: r, g, b, r, g, b. g and b must be at least as
// long as r, and packed must have 3·len(r) bytes.
func Merge(packed, r, g, b []uint8) {
	n := len(r)
	current.merge(packed[:3*n], r, g[:n], b[:n])
}

func mergePortable(packed, r, g, b []uint8) {
	for i, v := range r {
		p := packed[3*i:][:3]
		p[0], p[1], p[2] = v, g[i], b[i]
	}
}

// Split writes len(r) packed pixels of three bytes to three planes. g and b must be at least as
// long as r, and packed must have 3·len(r) bytes.
func Split(r, g, b, packed []uint8) {
	n := len(r)
	current.split(r, g[:n], b[:n], packed[:3*n])
}

func splitPortable(r, g, b, packed []uint8) {
	for i := range r {
		p := packed[3*i:][:3]
		r[i], g[i], b[i] = p[0], p[1], p[2]
	}
}

// Gray writes the luma of a row of len(dst) pixels, as Pillow's conversion to "L" does.
func Gray(dst, r, g, b []uint8) {
	for i := range dst {
		dst[i] = uint8((19595*uint32(r[i]) + 38470*uint32(g[i]) + 7471*uint32(b[i]) + oneHalf) >> 16)
	}
}
