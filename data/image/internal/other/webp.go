package other

import "image"

// webpColors converts the planes of a lossy WEBP as libwebp does: chroma is interpolated, and the
// values follow BT.601 with luma from 16 to 235. Package image would treat any YCbCr as JPEG's
// full-range values.
//
// See src/dsp/upsampling.c and yuv.h at https://github.com/webmproject/libwebp/tree/v1.6.0.
func webpColors(r, g, b []uint8, m *image.YCbCr) {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	chroma := func(y int) (cb, cr []uint8) { return m.Cb[y*m.CStride:], m.Cr[y*m.CStride:] }
	u, v := make([]uint8, w), make([]uint8, w)
	for y := range h {
		// A row between two chroma rows takes three quarters of the nearer one.
		near := y / 2
		far := min(max(near-1+2*(y&1), 0), (h+1)/2-1)
		nearU, nearV := chroma(near)
		farU, farV := chroma(far)
		upsampleRow(u, nearU, farU)
		upsampleRow(v, nearV, farV)
		luma := m.Y[y*m.YStride:]
		for x := range w {
			at := y*w + x
			Y, U, V := int32(luma[x])*19077>>8, int32(u[x]), int32(v[x])
			r[at] = clipToByte(Y + V*26149>>8 - 14234)
			g[at] = clipToByte(Y - U*6419>>8 - V*13320>>8 + 8708)
			b[at] = clipToByte(Y + U*33050>>8 - 17685)
		}
	}
}

// upsampleRow interpolates a row of len(dst) chroma values from the two nearest rows, which have
// half as many values, rounded up.
func upsampleRow(dst, near, far []uint8) {
	w := len(dst)
	edge := func(x int) uint8 { return uint8((3*int(near[x]) + int(far[x]) + 2) >> 2) }
	dst[0] = edge(0)
	for k := 1; k <= (w-1)/2; k++ {
		a, b, c, d := int(near[k-1]), int(near[k]), int(far[k-1]), int(far[k])
		sum := a + b + c + d + 8
		dst[2*k-1] = uint8(((sum+2*(b+c))>>3 + a) >> 1)
		dst[2*k] = uint8(((sum+2*(a+d))>>3 + b) >> 1)
	}
	if w > 1 && w%2 == 0 {
		dst[w-1] = edge(w/2 - 1)
	}
}

// clipToByte converts a number with a 6-bit fraction to a byte.
func clipToByte(v int32) uint8 { return uint8(min(max(v>>6, 0), 255)) }
