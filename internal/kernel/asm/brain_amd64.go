package asm

// ProductBrainAMX computes c = a·b of BFloat16 in float32 by the processor's matrix unit (AMX), for
// 32 rows and the given number of panels. The processor must have the unit, and the operating
// system must have permitted its use.
//
// a has 32 rows of depth·32 elements, lda bytes apart. A panel of b holds 32 columns. It consists
// of depth·16 rows of 32 pairs; a pair is two vertically adjacent elements. Panels are step bytes
// apart. Rows of c are ldc bytes apart. Subnormal numbers count as 0.
//
//go:noescape
func ProductBrainAMX(depth, panels int, a *byte, lda int, b *byte, step int, c *float32, ldc int)

// PairBrainAVX512 interleaves pairs of rows of two-byte elements for [ProductBrainAMX]. x has
// 2·rows rows, ld bytes apart; each row of y holds the pairs of vertically adjacent elements of two
// of them. Rows of y are ldy bytes apart. columns must be a multiple of 16.
//
//go:noescape
func PairBrainAVX512(rows, columns int, x *byte, ld int, y *byte, ldy int)
