package kernel

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// level is a set of inner loops for one kind of processor. All other code is common. Loops
// documented as optional may be nil if the processor has no instructions for them.
type level struct {
	name string
	f32  loops[float32]
	f64  loops[float64]

	// casts convert n elements; n must be a multiple of 8. Optional.
	casts [casts]func(n int, x, y *byte)
	// compare compares n elements of each kind; n must be a multiple of 32. Optional.
	compare [comparisons][elements]func(n int, x, y, z *byte)
	// wholes combine n bytes of each kind of integers; n must be a multiple of 32. Optional.
	wholes [wholes][integers]func(n int, x, y, z *byte)
	// shorts compute n two-byte floats in single precision; n must be a multiple of 16. Optional.
	shorts [arithmetics][shorts]func(n int, x, y, z *byte)
	// shortSums return the sum of n two-byte floats, and shortRelus write max(x, 0). n must be a
	// positive multiple of 64 for shortSums, and a multiple of 16 for shortRelus. Optional.
	shortSums  [shorts]func(n int, x *byte) float64
	shortRelus [shorts]func(n int, x, y *byte)
	// brain holds the products of BFloat16 by a matrix unit. The loops may exist although the
	// processor lacks the unit, see HasBrainProduct. Optional.
	brain *brainLoops
	// reverse writes n bytes of x to y with the elements in reverse order. others writes every
	// other element of 2·n bytes. They are indexed by the logarithm of the element size; n must be
	// a multiple of 32. Optional.
	reverse, others [4]func(n int, x, y *byte)
	// Reductions of n integers; n must be a positive multiple of 32. beyond returns a negative
	// number if any element is below 0 or above last. Optional.
	sumLongs, largestLong, smallestLong func(n int, x *int64) int64
	beyond                              func(n, last int, x *int64) int64
	// gather copies the four-byte elements of src at n places to dst; n must be a multiple of 8.
	// Optional.
	gather func(n int, places *int, src, dst *byte)
	// congruence advances sixteen generator states and writes n numbers; n must be a multiple of
	// 16. Optional.
	congruence func(n int, state, rule, to *uint64)
	// Loops of Fractions, Points and Pairs for n numbers or points; n must be a multiple of 8.
	// Optional.
	fractions func(n int, bits *uint64, shift uint64, width, part, lo float64, to *float64)
	points    func(n int, bits *uint64, x, y, s *float64) int
	pairs     func(n int, mean, std float64, x, y, factor, to *float64)
	// stream fills whole lines of 128 bytes with a pattern of 32 bytes, by non-temporal stores.
	// Optional.
	stream func(n int, pattern, dst *byte)
}

// loops are the inner loops of the kernels. They do not check bounds and do not start goroutines.
// Each call must be short, below a millisecond, because assembly cannot be preempted. Optional
// loops may be nil.
type loops[F Float] struct {
	lanes int         // numbers in a register
	tiles [][]tile[F] // tiles of a product, indexed by registers-1 and rows-1; the wide ones have few rows
	few   int         // products with up to so many rows or columns compute each element by a dot product
	tiny  int         // products of up to so many multiplications are computed without preparation

	// copyRows copies rows of n elements from src to dst; addRows adds them to dst. lds and ldd are
	// the distances between rows.
	copyRows, addRows func(rows, n int, src *F, lds int, dst *F, ldd int)

	// transpose writes dst[j·ldd + i] = src[off[i] + j] for i < rows and j < cols. rows must not
	// exceed columns.
	transpose func(rows, cols int, src *F, off *int, dst *F, ldd int)
	columns   int
	// transposeSixteen transposes sixteen rows, lds apart, of n columns; n must be a positive
	// multiple of 16. Optional.
	transposeSixteen func(n int, src *F, lds int, dst *F, ldd int)

	// rowSums writes the sums of rows of n elements to y; it is nil if sum64 is as fast. columnSums
	// adds the columns of rows of n elements, ld apart, to y. columnsLargest and columnsSmallest
	// replace y by the maximum or minimum of y and the columns, or NaN if an element is NaN.
	rowSums                         func(rows, n int, x *F, y *float64)
	columnSums                      func(rows, n int, x *F, ld int, y *float64)
	columnsLargest, columnsSmallest func(rows, n int, x *F, ld int, y *F)

	axpy         func(n int, alpha F, x, y *F)  // y += alpha·x
	scale        func(n int, alpha F, x, y *F)  // y = alpha·x
	shift        func(n int, alpha F, x, y *F)  // y = x + alpha
	add          func(n int, x, y, z *F)        // z = x + y
	sub          func(n int, x, y, z *F)        // z = x - y
	mul          func(n int, x, y, z *F)        // z = x · y
	div          func(n int, x, y, z *F)        // z = x / y
	max          func(n int, x, y, z *F)        // z = max(x, y), NaN if either is NaN
	min          func(n int, x, y, z *F)        // z = min(x, y), NaN if either is NaN
	clamp        func(n int, lo, hi F, x, y *F) // y = min(max(x, lo), hi)
	largest      func(n int, x *F) F            // maximum of x, NaN if any is NaN; n must be at least lanes
	smallest     func(n int, x *F) F            // minimum of x, under the same conditions
	relu         func(n int, x, y *F)           // y = max(x, 0)
	reluBackward func(n int, y, dy, dx *F)      // dx = dy if y is positive or NaN, and 0 otherwise
	sum          func(n int, x *F) F            // sum of x
	sum64        func(n int, x *F) float64      // sum of x in double precision
	dot          func(n int, x, y *F) F         // dot product of x and y

	product      func(n int, x *F) float64 // product of x in double precision; n must be a multiple of 32; optional
	hypot, atan2 func(n int, x, y, z *F)   // NaN for non-finite operands, which the caller must handle; optional
	power        func(n int, x, y, z *F)   // |x|^y; NaN if x is 0 or an operand is not finite; optional

	functions [functions]func(n int, x, y *F) // loops of Map
	polar     func(n int, x, y *F)            // y = √(-2·log(x)/x); only float64

	exp     func(n int, x, y *F)               // y = exp(x)
	sigmoid func(n int, x, y *F)               // y = 1/(1+exp(-x))
	tanh    func(n int, x, y *F)               // y = tanh(x)
	expSum  func(n int, x *F, shift F) F       // sum of exp(x-shift)
	expTo   func(n int, x *F, shift F, y *F) F // y = exp(x-shift); returns the sum of y
	lessExp func(n int, alpha F, x, y, z *F)   // z = y - alpha·exp(x)

	gelu, geluSlope   func(n int, x, y *F)         // y = x·Φ(x), and its derivative
	gated, gatedSlope func(n int, a, b F, x, y *F) // y = x·σ(a·x + b·x³), and its derivative

	// lstm applies the sigmoid to in, keep and out and tanh to fresh, in place. Then next =
	// keep·cell + in·fresh and state = out·tanh(next). lstmBackward gets these activations and
	// dstate. It overwrites in, keep, fresh and out with the gradients of the inputs of the
	// activations, and dcell, the gradient of next, with the gradient of cell.
	lstm         func(n int, in, keep, fresh, out, cell, next, state *F)
	lstmBackward func(n int, in, keep, fresh, out, cell, next, dstate, dcell *F)

	// gru computes r = σ(r+xr) and z = σ(z+xz) in place, fresh = tanh(xn + r·own), and state =
	// fresh + z·(last-fresh). gruBackward writes the gradients of the inputs of the activations to
	// dr, dz and dn, and the first two also to r and z. It overwrites own with its gradient, and
	// dstate, the gradient of state, with the part of the gradient of last that does not pass
	// through r and z.
	gru         func(n int, xr, xz, xn, r, z, own, fresh, last, state *F)
	gruBackward func(n int, r, z, own, fresh, last, dr, dz, dn, dstate *F)

	// centre writes x - shift to y, and returns the sum of y and the sum of its squares. affine
	// computes y = (alpha·y + beta)·w + b.
	centre func(n int, shift F, x, y *F) (sum, squares F)
	affine func(n int, alpha, beta F, w, b, y *F)

	// normSums adds dy·y to dw, where y = (x - shift)·scale + left, and dy to db. It returns the
	// sums of dy·w and of dy·w·y. normSlope writes (dy·w - mean - along·y)·scale to dx.
	normSums  func(n int, shift, scale, left F, x, dy, w, dw, db *F) (sum, along F)
	normSlope func(n int, shift, scale, left, mean, along F, x, dy, w, dx *F)

	// descend computes buf = keep·buf + take·(g + decay·p), and then p -= lr·buf.
	descend func(n int, p, g, buf *F, lr, decay, keep, take F)

	// adam computes g = grad + decay·p, mean += fresh1·(g - mean), square = keep2·square +
	// fresh2·g², and then p -= shrink·p + rate·mean/(root·√square + eps).
	adam func(n int, p, grad, mean, square *F, rate, root, fresh1, keep2, fresh2, eps, decay, shrink F)

	// rmsprop computes g = grad + decay·p, square = kept·square + fresh·g², and then p -=
	// rate·g/(√square + eps).
	rmsprop func(n int, p, grad, square *F, rate, kept, fresh, eps, decay F)

	// pool writes the maxima of 2×2 windows, n per row, and their indices. The first pixel has
	// index base, and rows are w apart. poolBackward writes dy to the pixels at these indices, and
	// zero to the other pixels of the windows.
	pool         func(rows, n int, x *F, w int, y *F, idx *int32, base int)
	poolBackward func(rows, n int, dy *F, idx *int32, dx *F, w int, base int)
}

// longest is the maximum number of elements that a call of a loop may process.
const longest = 1 << 16

// shortPieces divides n elements into pieces of at most longest elements. It yields their offsets
// and lengths.
func shortPieces(n int) func(yield func(lo, n int) bool) {
	return func(yield func(lo, n int) bool) {
		for lo := 0; lo < n && yield(lo, min(longest, n-lo)); lo += longest {
		}
	}
}

// tile computes a part of a product that fits into registers: for all its rows i and columns j
//
//	c[i·ldc + j] = alpha · sum over l < k of a[i·rsa + l·csa] · b[off[l] + j]   + c[i·ldc + j] if add
//
// n is the number of columns in its last register. k must be at least 1.
type tile[F Float] = func(k int, a *F, rsa, csa int, b *F, off *int, c *F, ldc, n int, alpha F, add bool)

// levels are the levels that this machine supports, the fastest first.
var levels = append(nativeLevels(), &portable)

// current is the level in use.
var current = chooseLevel(os.Getenv("SHOAL_KERNELS"))

// chooseLevel returns the level with the given name, or the fastest one if name is empty. It exits
// the process if this machine does not support the level, because a silent fallback would mislead
// the user.
func chooseLevel(name string) *level {
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
	fmt.Fprintf(os.Stderr, "SHOAL_KERNELS=%s: unknown or not supported by this machine, want one of %s\n", name,
		strings.Join(names, ", "))
	os.Exit(2)
	return nil
}

// Level returns the name of the inner loops in use: avx512, avx2, neon-bf16, neon or portable. The
// environment variable SHOAL_KERNELS selects one.
func Level() string { return current.name }

// loopsFor returns the current loops for F.
func loopsFor[F Float]() *loops[F] {
	if isFloat32[F]() {
		return (*loops[F])(unsafe.Pointer(&current.f32))
	}
	return (*loops[F])(unsafe.Pointer(&current.f64))
}
