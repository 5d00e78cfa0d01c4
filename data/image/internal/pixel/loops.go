package pixel

import "github.com/shoal-mp/shoal/internal/kernel"

// loops holds the functions that differ between processors. The callers have checked the lengths.
type loops struct {
	idct    func(coef *[64]int16, quant *[64]int32, dst []uint8, stride int)
	reduced func(coef *[64]int16, quant *[64]int32, dst []uint8, stride, size int)
	// see Upsample: pixels first … first+n-1, which have neighbors on both sides
	upsample    func(dst, src []uint8, first, n int)
	upsampleTwo func(dst, near, far []uint8, first, n int) // see UpsampleTwo
	rgb         func(r, g, b, y, cb, cr []uint8)
	float       func(dst []float32, src []uint8, scale, bias float32)
	merge       func(packed, r, g, b []uint8)
	split       func(r, g, b, packed []uint8)
	add         func(dst, a, b []uint8)
	paeth       func(dst, raw, above []uint8, step int)
	column      func(dst, src []uint8, stride int, weights []int32)
	row         func(dst, src []uint8, w *Weights)
	bytes       func(dst, src []uint8, width int) // see Mirror
	floats      func(dst, src []float32, width int)
}

var portable = loops{
	idct: idctPortable, reduced: reducedPortable, upsample: upsamplePortable,
	upsampleTwo: upsampleTwoPortable, rgb: rgbPortable, float: floatPortable,
	merge: mergePortable, split: splitPortable, add: addPortable, paeth: paethPortable,
	column: columnPortable, row: rowPortable,
	bytes: mirrorPortable[uint8], floats: mirrorPortable[float32],
}

var current = chooseLoops()

// chooseLoops returns the loops for the level that package kernel uses.
func chooseLoops() *loops {
	if kernel.Level() == "portable" {
		return &portable
	}
	return nativeLoops()
}

// Levels returns the levels for [Use]: portable, and native if there is assembly for this
// processor.
func Levels() []string {
	if nativeLoops() == &portable {
		return []string{"portable"}
	}
	return []string{"portable", "native"}
}

// Use selects a level, one of [Levels], for tests, until restore is called. The level is global:
// no loop may be running in any goroutine, also when restore is called.
func Use(level string) (restore func()) {
	before := current
	if current = &portable; level == "native" {
		current = nativeLoops()
	}
	return func() { current = before }
}
