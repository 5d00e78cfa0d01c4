package kernel

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// A level is the inner loops for a kind of processor. Everything else is the same code on all of
// them.
type level struct {
	name string
	f32  loops[float32]
	f64  loops[float64]

	// convert n elements, a multiple of 8; nil where there are no instructions for it
	casts [casts]func(n int, x, y *byte)
	// compare n elements, a multiple of 32, of each kind; nil where there are no instructions for
	// it
	compare [comparisons][elements]func(n int, x, y, z *byte)
	// combine n bytes, a multiple of 32, of each kind of integers; nil where there are no
	// instructions for it
	wholes [wholes][integers]func(n int, x, y, z *byte)
	// compute n floats of two bytes, a multiple of 16, in single precision; nil where there are no
	// instructions for it
	shorts [arithmetics][shorts]func(n int, x, y, z *byte)
	// the sum of n of them, a multiple of 64 and at least that, and the larger of each and 0; may
	// be nil
	shortSums  [shorts]func(n int, x *byte) float64
	shortRelus [shorts]func(n int, x, y *byte)
	// products of BFloat16 by a matrix unit, if the processor has one; may be nil
	brain *brainLoops
	// write n bytes of x, a multiple of 32, to y, the last element first, and every other element
	// of 2·n bytes, by the logarithm of an element's size; may be nil
	reverse, others [4]func(n int, x, y *byte)
	// folds of n integers, a multiple of 32 and at least that; may be nil. beyond is negative if
	// one of them is below 0 or above last.
	sumLongs, largestLong, smallestLong func(n int, x *int64) int64
	beyond                              func(n, last int, x *int64) int64
	// writes the element of src, of four bytes, at each of n places, a multiple of 8; may be nil
	gather func(n int, places *int, src, dst *byte)
	// moves sixteen states of a generator on, for n numbers, a multiple of 16; may be nil
	congruence func(n int, state, rule, to *uint64)
	// Fractions, Points and Pairs of n numbers or points, a multiple of 8; may be nil
	fractions func(n int, bits *uint64, shift uint64, width, part, lo float64, to *float64)
	points    func(n int, bits *uint64, x, y, s *float64) int
	pairs     func(n int, mean, std float64, x, y, factor, to *float64)
	// fills whole lines of 128 bytes past the caches, with 32; nil where there is no such store
	stream func(n int, pattern, dst *byte)
}

// loops is what the kernels spend their time in. None of it checks a bound, starts a goroutine or
// runs for as long as a millisecond.
type loops[F Float] struct {
	lanes int         // numbers in a register
	tiles [][]tile[F] // of a product, by registers and rows, from 1 each; wide ones of few rows
	few   int         // rows or columns of a product up to which each element is a sum of its own
	tiny  int         // multiplications up to which it takes longer to prepare a product than to compute it

	// copyRows writes rows of n elements to dst, and addRows adds them. lds and ldd are the
	// distances between rows.
	copyRows, addRows func(rows, n int, src *F, lds int, dst *F, ldd int)

	// transpose writes dst[j·ldd + i] = src[off[i] + j] for i < rows and j < cols, up to columns
	// rows at once.
	transpose func(rows, cols int, src *F, off *int, dst *F, ldd int)
	columns   int
	// transposeSixteen is that of sixteen rows, lds apart, and n columns, a multiple of 16 and at
	// least that; may be nil
	transposeSixteen func(n int, src *F, lds int, dst *F, ldd int)

	// rowSums writes the sums of rows of n elements to y; nil where sum64 does as well. columnSums
	// adds the columns of rows of n elements, ld apart, to y. columnsLargest and columnsSmallest
	// make y the largest and smallest of itself and of columns, NaN if one is.
	rowSums                         func(rows, n int, x *F, y *float64)
	columnSums                      func(rows, n int, x *F, ld int, y *float64)
	columnsLargest, columnsSmallest func(rows, n int, x *F, ld int, y *F)

	axpy         func(n int, alpha F, x, y *F)  // adds alpha·x to y
	scale        func(n int, alpha F, x, y *F)  // writes alpha·x to y
	shift        func(n int, alpha F, x, y *F)  // writes x+alpha to y
	add          func(n int, x, y, z *F)        // writes x+y to z
	sub          func(n int, x, y, z *F)        // writes x-y to z
	mul          func(n int, x, y, z *F)        // writes x·y to z
	div          func(n int, x, y, z *F)        // writes x/y to z
	max          func(n int, x, y, z *F)        // writes the larger of x and y to z, NaN if one is
	min          func(n int, x, y, z *F)        // writes the smaller of x and y to z, NaN if one is
	clamp        func(n int, lo, hi F, x, y *F) // writes x, moved up to lo and down to hi, to y
	largest      func(n int, x *F) F            // of x, NaN if one is; n is at least lanes
	smallest     func(n int, x *F) F            // the same
	relu         func(n int, x, y *F)           // writes the larger of x and zero to y
	reluBackward func(n int, y, dy, dx *F)      // writes dy to dx where y is above zero, and zero elsewhere
	sum          func(n int, x *F) F            // of x
	sum64        func(n int, x *F) float64      // of x, in double precision
	dot          func(n int, x, y *F) F         // the sum of the products of x and y

	product      func(n int, x *F) float64 // of n numbers, a multiple of 32, in double precision; may be nil
	hypot, atan2 func(n int, x, y, z *F)   // what is not finite is left to the caller; may be nil
	power        func(n int, x, y, z *F)   // of |x|, NaN where it is 0 or x or y is not finite; may be nil

	functions [functions]func(n int, x, y *F) // of Map
	polar     func(n int, x, y *F)            // writes √(-2·log(x)/x) to y; of float64

	exp     func(n int, x, y *F)               // writes e to the power of x to y
	sigmoid func(n int, x, y *F)               // writes 1/(1+exp(-x)) to y
	tanh    func(n int, x, y *F)               // writes the hyperbolic tangent of x to y
	expSum  func(n int, x *F, shift F) F       // the sum of e to the power of x-shift
	expTo   func(n int, x *F, shift F, y *F) F // the same, of what it writes to y
	lessExp func(n int, alpha F, x, y, z *F)   // writes y - alpha·exp(x) to z

	gelu, geluSlope   func(n int, x, y *F)         // writes x·Φ(x), and its derivative, to y
	gated, gatedSlope func(n int, a, b F, x, y *F) // writes x·σ(a·x + b·x³), and its derivative, to y

	// lstm makes the sigmoids of in, keep and out and the hyperbolic tangent of fresh, in place,
	// next keep·cell + in·fresh, and state out·tanh(next). lstmBackward writes the gradients of
	// what lstm activated over in, keep, fresh and out, and over dcell, that of next, that of cell.
	lstm         func(n int, in, keep, fresh, out, cell, next, state *F)
	lstmBackward func(n int, in, keep, fresh, out, cell, next, dstate, dcell *F)

	// gru makes the sigmoids of r+xr and z+xz, in place of r and z, fresh tanh(xn + r·own), and
	// state fresh + z·(last-fresh). gruBackward writes the gradients of what gru activated to dr,
	// dz and dn, the first two also over r and z, that of own over it, and over dstate, that of
	// state, that of last.
	gru         func(n int, xr, xz, xn, r, z, own, fresh, last, state *F)
	gruBackward func(n int, r, z, own, fresh, last, dr, dz, dn, dstate *F)

	// centre writes x - shift to y, and returns its sum and that of its squares. affine makes y
	// (alpha·y + beta)·w + b.
	centre func(n int, shift F, x, y *F) (sum, squares F)
	affine func(n int, alpha, beta F, w, b, y *F)

	// normSums adds dy·y to dw, where y is (x - shift)·scale + left, and dy to db, and returns the
	// sums of dy·w and of dy·w·y. normSlope writes (dy·w - mean - along·y)·scale to dx.
	normSums  func(n int, shift, scale, left F, x, dy, w, dw, db *F) (sum, along F)
	normSlope func(n int, shift, scale, left, mean, along F, x, dy, w, dx *F)

	// descend makes buf keep·buf + take·(g + decay·p), and p loses lr times that.
	descend func(n int, p, g, buf *F, lr, decay, keep, take F)

	// adam, with g = grad + decay·p, moves mean by fresh1·(g - mean), makes square keep2·square +
	// fresh2·g², and p loses shrink·p + rate·mean/(root·√square + eps).
	adam func(n int, p, grad, mean, square *F, rate, root, fresh1, keep2, fresh2, eps, decay, shrink F)

	// rmsprop, with g = grad + decay·p, makes square kept·square + fresh·g², and p loses
	// rate·g/(√square + eps).
	rmsprop func(n int, p, grad, square *F, rate, kept, fresh, eps, decay F)

	// pool writes the largest pixels of windows of 2×2, n to a row, and their indices, where the
	// first pixel has index base and rows are w apart. poolBackward writes dy to these pixels, and
	// zero to the others of the windows.
	pool         func(rows, n int, x *F, w int, y *F, idx *int32, base int)
	poolBackward func(rows, n int, dy *F, idx *int32, dx *F, w int, base int)
}

// longest is how many elements one call of a loop is given at most.
const longest = 1 << 16

// short yields pieces of n elements, where they begin and how many there are, that are not too long
// for one call.
func short(n int) func(yield func(lo, n int) bool) {
	return func(yield func(lo, n int) bool) {
		for lo := 0; lo < n && yield(lo, min(longest, n-lo)); lo += longest {
		}
	}
}

// A tile writes a part of a product that fits into registers: for all its rows i and columns j
//
//	c[i·ldc + j] = alpha · sum over l < k of a[i·rsa + l·csa] · b[off[l] + j]   + c[i·ldc + j] if add
//
// n is how many columns its last register has. k is at least 1.
type tile[F Float] = func(k int, a *F, rsa, csa int, b *F, off *int, c *F, ldc, n int, alpha F, add bool)

// levels are those of this machine, the best one first.
var levels = append(native(), &portable)

// current is the level in use.
var current = choose(os.Getenv("SHOAL_KERNELS"))

// choose returns the level that the environment asks for, or the best one. A level that is not here
// ends the program: a user who forces one wants to know what it does.
func choose(name string) *level {
	if name == "" {
		return levels[0]
	}
	var names []string
	for _, l := range levels {
		if l.name == name {
			return l
		}
		names = append(names, l.name)
	}
	fmt.Fprintf(os.Stderr, "SHOAL_KERNELS=%s: this machine has %s\n", name, strings.Join(names, ", "))
	os.Exit(2)
	return nil
}

// Level returns the name of the inner loops in use: avx512, avx2 or portable. The environment
// variable SHOAL_KERNELS forces one.
func Level() string { return current.name }

// inner returns the loops for F.
func inner[F Float]() *loops[F] {
	if single[F]() {
		return (*loops[F])(unsafe.Pointer(&current.f32))
	}
	return (*loops[F])(unsafe.Pointer(&current.f64))
}
