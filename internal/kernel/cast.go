package kernel

// A Cast is a conversion of elements for which there are instructions.
type Cast int

// The casts. Half is binary16 of IEEE 754, Brain the upper half of a float32; what rounds, rounds
// to the nearest, ties to even. NaN stays NaN, of whatever bits.
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

// castSizes are the bytes of an element before and after.
var castSizes = [casts][2]int{{2, 4}, {4, 2}, {2, 4}, {4, 2}, {1, 4}, {4, 4}, {4, 8}, {8, 4}, {4, 8}, {8, 4}}

// Do converts elements of src, the first of n, to dst, and returns how many: on a machine with
// instructions for it all but the last few, on others none. It leaves the others to its caller, who
// has a way to convert each of them.
func (c Cast) Do(n int, dst, src []byte) int {
	do, size := current.casts[c], castSizes[c]
	if n &^= 7; do == nil || n == 0 {
		return 0
	}
	dst, src = dst[:n*size[1]], src[:n*size[0]]
	for i, m := range short(n) {
		do(m, &src[i*size[0]], &dst[i*size[1]])
	}
	return n
}
