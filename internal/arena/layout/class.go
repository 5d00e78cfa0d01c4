package layout

import "math/bits"

// Size classes are multiples of 64 bytes up to 512, then four steps per doubling up to 1 TiB. Class
// 0 has no bytes. It is used for tokens, and for headers without an extent.
const (
	ClassCount = 136
	SlabSize   = 64 << 10 // small classes are carved from slabs of this size
	HugeAlign  = 2 << 20
)

// ClassOf returns the smallest class with at least size bytes.
func ClassOf(size uint64) int {
	u := (size + 63) / 64
	if u <= 8 {
		return int(u)
	}
	e := bits.Len64(u-1) - 3
	m := (u + 1<<e - 1) >> e // 5 to 8
	return 4*e + int(m)
}

// ClassSize returns the size of class c in bytes.
func ClassSize(c int) uint64 {
	if c <= 8 {
		return uint64(c) * 64
	}
	e := (c - 5) / 4
	return uint64(5+(c-5)%4) << e * 64
}

// IsSmall reports whether the blocks of a class share the pages of a slab.
func IsSmall(class int) bool { return class > 0 && ClassSize(class) < PageSize }

// ExtentSize returns the size of the address space of one block of class c.
func ExtentSize(c int) uint64 {
	if IsSmall(c) {
		return ClassSize(c)
	}
	return RoundUp(ClassSize(c), PageSize)
}

// ExtentAlign returns the alignment of the address space of one block of class c, which is not
// small.
func ExtentAlign(c int) uint64 {
	if ClassSize(c) >= HugeAlign {
		return HugeAlign
	}
	return PageSize
}

// RoundUp rounds n up to a multiple of to.
func RoundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }
