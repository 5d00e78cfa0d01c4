package asm

// ProductBrainAMX computes panels of 32 rows of a product of BFloat16 in float32, by the
// processor's matrix unit: c, whose rows are ldc bytes apart, is a times b. a has 32 rows of
// depth·32 elements, lda bytes apart. A panel of b is 32 columns of c: for each two of its rows, of
// which there are depth·16, 32 pairs of elements, one below the other. Panels are step bytes apart.
// What is too small to be normal is 0.
//
//go:noescape
func ProductBrainAMX(depth, panels int, a *byte, lda int, b *byte, step int, c *float32, ldc int)

// PairBrainAVX512 writes, for each two of 2·rows rows of elements of two bytes, ld bytes apart, the
// pairs of those one below the other. columns is a multiple of 16, and rows of pairs are ldy bytes
// apart.
//
//go:noescape
func PairBrainAVX512(rows, columns int, x *byte, ld int, y *byte, ldy int)
