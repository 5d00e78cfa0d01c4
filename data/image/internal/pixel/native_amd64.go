package pixel

import (
	"golang.org/x/sys/cpu"

	"github.com/shoal-mp/shoal/internal/kernel/asm"
)

// avx2 uses assembly for whole vector registers and the portable loops for the remaining elements.
var avx2 = loops{
	idct: func(coef *[64]int16, quant *[64]int32, dst []uint8, stride int) {
		asm.IDCTAVX2(&coef[0], &quant[0], &dst[0], stride)
	},
	reduced: func(coef *[64]int16, quant *[64]int32, dst []uint8, stride, size int) {
		loop := asm.Reduced4AVX2
		if size == 2 {
			loop = asm.Reduced2AVX2
		}
		loop(&coef[0], &quant[0], &dst[0], stride)
	},
	upsample: func(dst, src []uint8, first, n int) {
		if n < 16 {
			upsamplePortable(dst, src, first, n)
			return
		}
		asm.UpsampleAVX2(n&^15, &src[first], &dst[2*first])
		if n%16 > 0 { // the last sixteen, which overlap the ones above
			last := first + n - 16
			asm.UpsampleAVX2(16, &src[last], &dst[2*last])
		}
	},
	upsampleTwo: func(dst, near, far []uint8, first, n int) {
		if n < 16 {
			upsampleTwoPortable(dst, near, far, first, n)
			return
		}
		asm.UpsampleTwoAVX2(n&^15, &near[first], &far[first], &dst[2*first])
		if n%16 > 0 {
			last := first + n - 16
			asm.UpsampleTwoAVX2(16, &near[last], &far[last], &dst[2*last])
		}
	},
	rgb: func(r, g, b, y, cb, cr []uint8) {
		m := len(y) &^ 7
		if m > 0 {
			asm.RGBAVX2(m, &y[0], &cb[0], &cr[0], &r[0], &g[0], &b[0])
		}
		rgbPortable(r[m:], g[m:], b[m:], y[m:], cb[m:], cr[m:])
	},
	float: func(dst []float32, src []uint8, scale, bias float32) {
		m := len(dst) &^ 7
		if m > 0 {
			asm.FloatAVX2(m, scale, bias, &src[0], &dst[0])
		}
		floatPortable(dst[m:], src[m:], scale, bias)
	},
	merge: func(packed, r, g, b []uint8) {
		m := len(r) &^ 15
		if m > 0 {
			asm.MergeAVX2(m, &packed[0], &r[0], &g[0], &b[0])
		}
		mergePortable(packed[3*m:], r[m:], g[m:], b[m:])
	},
	split: func(r, g, b, packed []uint8) {
		m := len(r) &^ 15
		if m > 0 {
			asm.SplitAVX2(m, &packed[0], &r[0], &g[0], &b[0])
		}
		splitPortable(r[m:], g[m:], b[m:], packed[3*m:])
	},
	add: func(dst, a, b []uint8) {
		m := len(a) &^ 31
		if m > 0 {
			asm.AddBytesAVX2(m, &a[0], &b[0], &dst[0])
		}
		addPortable(dst[m:], a[m:], b[m:])
	},
	paeth: func(dst, raw, above []uint8, step int) {
		n := len(raw) / max(1, step)
		spare := min(cap(dst), cap(raw), cap(above)) > len(raw) // 3 bytes are accessed as 4
		switch {
		case step == 3 && spare && n > 0:
			asm.Paeth3AVX2(n, &raw[0], &above[0], &dst[0])
		case step == 4 && n > 0:
			asm.Paeth4AVX2(n, &raw[0], &above[0], &dst[0])
		default:
			paethPortable(dst, raw, above, step)
		}
	},
	column: func(dst, src []uint8, stride int, weights []int32) {
		m := len(dst) &^ 7
		if m > 0 {
			asm.ColumnAVX2(m, len(weights), stride, &weights[0], &src[0], &dst[0])
		}
		columnPortable(dst[m:], src[m:], stride, weights)
	},
	row: func(dst, src []uint8, w *Weights) {
		m := len(dst) &^ 3
		if m > 0 {
			_, _ = src[int(w.last)+w.Taps-1], w.halves[2*m*w.Taps-1]
			asm.RowAVX2(m, w.Taps, &w.First[0], &w.halves[0], &src[0], &dst[0])
		}
		rest := w.Part(m, len(dst)-m)
		rowPortable(dst[m:], src, &rest)
	},
	bytes:  mirrorBy(16, asm.MirrorBytesAVX2),
	floats: mirrorBy(8, asm.MirrorFloatsAVX2),
}

func nativeLoops() *loops {
	if !cpu.X86.HasAVX2 {
		return &portable
	}
	return &avx2
}
