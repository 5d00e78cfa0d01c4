package pixel

// Upsample doubles the width of a row. Each new pixel is 3/4 of the nearest source pixel and 1/4 of
// the next, as in libjpeg. dst must have 2·len(src) pixels.
func Upsample(dst, src []uint8) {
	n := len(src)
	_ = dst[2*n-1]
	if n < 3 {
		doubleRow(dst, src)
		return
	}
	dst[0], dst[1] = src[0], uint8((3*int(src[0])+int(src[1])+2)>>2)
	current.upsample(dst, src, 1, n-2)
	dst[2*n-2], dst[2*n-1] = uint8((3*int(src[n-1])+int(src[n-2])+1)>>2), src[n-1]
}

func upsamplePortable(dst, src []uint8, first, n int) {
	for i := first; i < first+n; i++ {
		v := 3 * int(src[i])
		dst[2*i] = uint8((v + int(src[i-1]) + 1) >> 2)
		dst[2*i+1] = uint8((v + int(src[i+1]) + 2) >> 2)
	}
}

// UpsampleTwo doubles the width of a row between two source rows: 3/4 of near and 1/4 of far. dst
// must have 2·len(near) pixels.
func UpsampleTwo(dst, near, far []uint8) {
	n := len(near)
	_, _ = dst[2*n-1], far[n-1]
	if n < 3 {
		doubleRow(dst, near)
		return
	}
	sum := func(i int) int { return 3*int(near[i]) + int(far[i]) }
	dst[0], dst[1] = uint8((4*sum(0)+8)>>4), uint8((3*sum(0)+sum(1)+7)>>4)
	current.upsampleTwo(dst, near, far, 1, n-2)
	dst[2*n-2], dst[2*n-1] = uint8((3*sum(n-1)+sum(n-2)+8)>>4), uint8((4*sum(n-1)+7)>>4)
}

func upsampleTwoPortable(dst, near, far []uint8, first, n int) {
	last, this := 3*int(near[first-1])+int(far[first-1]), 3*int(near[first])+int(far[first])
	for i := first; i < first+n; i++ {
		next := 3*int(near[i+1]) + int(far[i+1])
		dst[2*i] = uint8((3*this + last + 8) >> 4)
		dst[2*i+1] = uint8((3*this + next + 7) >> 4)
		last, this = this, next
	}
}

// UpsampleDown writes a row of len(near) pixels between two source rows: 3/4 of near and 1/4 of
// far. lower means that the row is below near, which libjpeg rounds differently.
func UpsampleDown(dst, near, far []uint8, lower bool) {
	bias := 1
	if lower {
		bias = 2
	}
	for i, v := range near {
		dst[i] = uint8((3*int(v) + int(far[i]) + bias) >> 2)
	}
}

// doubleRow doubles a row of one or two pixels. libjpeg does not interpolate these.
func doubleRow(dst, src []uint8) {
	for i, v := range src {
		dst[2*i], dst[2*i+1] = v, v
	}
}
