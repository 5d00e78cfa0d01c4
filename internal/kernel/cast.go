package kernel

// Cast is a conversion of elements for which there are vector instructions.
type Cast int

// The casts. Half is IEEE 754 binary16, Brain is the upper half of a float32. Rounding is to
// nearest, ties to even. NaN stays NaN, but its payload is not specified.
const (
	HalfToFloat32 Cast = iota
	Float32ToHalf
	BrainToFloat32
	Float32ToBrain
	Uint8ToFloat32
	Int32ToFloat32
	Float32ToFloat64
	Float64ToFloat32
	Float32ToInt64
	Int64ToFloat32

	casts = iota
)

// castSizes holds the element sizes in bytes of source and destination.
var castSizes = [casts][2]int{{2, 4}, {4, 2}, {2, 4}, {4, 2}, {1, 4}, {4, 4}, {4, 8}, {8, 4}, {4, 8}, {8, 4}}

// Do converts elements of src to dst and returns the number of converted elements. With vector
// instructions for c it converts n rounded down to a multiple of 8, otherwise none. The caller
// must convert the rest. dst and src must have room for n elements.
func (c Cast) Do(n int, dst, src []byte) int {
	do, size := current.casts[c], castSizes[c]
	if n &^= 7; do == nil || n == 0 {
		return 0
	}
	dst, src = dst[:n*size[1]], src[:n*size[0]]
	for i, m := range shortPieces(n) {
		do(m, &src[i*size[0]], &dst[i*size[1]])
	}
	return n
}
