package arena

import "math/bits"

// Size classes are multiples of 64 bytes up to 512, then four steps per doubling up to 1 TiB. Class
// 0 has no bytes. It is used for tokens, and for headers without an extent.
const (
	classCount = 136
	slabSize   = 64 << 10 // small classes are carved from slabs of this size
	hugeAlign  = 2 << 20
)

// classOf returns the smallest class with at least size bytes.
func classOf(size uint64) int {
	u := (size + 63) / 64
	if u <= 8 {
		return int(u)
	}
	e := bits.Len64(u-1) - 3
	m := (u + 1<<e - 1) >> e // 5 to 8
	return 4*e + int(m)
}

// classSize returns the size of class c in bytes.
func classSize(c int) uint64 {
	if c <= 8 {
		return uint64(c) * 64
	}
	e := (c - 5) / 4
	return uint64(5+(c-5)%4) << e * 64
}

func isSmall(class int) bool { return class > 0 && classSize(class) < pageSize }

// extentSize returns the size of the address space of one block of class c.
func extentSize(c int) uint64 {
	if isSmall(c) {
		return classSize(c)
	}
	return roundUp(classSize(c), pageSize)
}

func extentAlign(c int) uint64 {
	if classSize(c) >= hugeAlign {
		return hugeAlign
	}
	return pageSize
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }
