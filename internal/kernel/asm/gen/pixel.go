package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writePixels emits the loops over pixels. Pixels are integers, and AVX2 suffices.
func writePixels([]vector) {
	idct()
	reducedIDCT(4)
	reducedIDCT(2)
	upsample("UpsampleAVX2",
		"writes two pixels for each of n, a multiple of 16: three parts of it and one of that before, or "+
			"behind it.", false)
	upsample("UpsampleTwoAVX2", "is the same for a row that is three parts near and one part far.", true)
	rgb()
	float()
	merge()
	split()
	add()
	paeth(3)
	paeth(4)
	column()
	row()
	mirror("MirrorBytesAVX2", "uint8", 1)
	mirror("MirrorFloatsAVX2", "float32", 4)
}

// pixels begins the function name without results. params are its parameters in Go syntax, and
// doc is its doc comment without the name.
func pixels(name, params, doc string) {
	TEXT(name, NOSPLIT, "func("+params+")")
	Pragma("noescape")
	Doc(name + " " + doc)
}

// loop emits body in a loop that counts n down to 0 by step, and then the return from the
// function. It does not run the body if n is 0. n must be a multiple of step.
func loop(n reg.GPVirtual, step int, body func()) {
	Label("loop")
	TESTQ(n, n)
	JLE(LabelRef("done"))
	if onARM64 { // checks once at the begin and once an iteration
		Label("again")
		body()
		SUBQ(Imm(uint64(step)), n)
		JG(LabelRef("again"))
	} else {
		body()
		SUBQ(Imm(uint64(step)), n)
		JMP(LabelRef("loop"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// words returns a constant of eight 32-bit numbers, which repeats the values. Calls with the
// same name return the same constant.
func words(name string, values ...int32) Mem {
	name = "pixel" + name
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(uint32(values[i%len(values)])))
	}
	constants[name] = m
	return m
}

// shorts returns a constant of sixteen 16-bit numbers, all equal to value.
func shorts(name string, value int16) Mem {
	both := int32(value)<<16 | int32(value)&0xFFFF
	return words("Short"+name, both)
}

func at(base reg.GPVirtual, disp int) Mem { return Mem{Base: base, Disp: disp} }

// idct emits the function for the inverse DCT of 8×8 coefficients: columns, then rows, then the
// conversion to bytes. Each register holds a row.
func idct() {
	pixels("IDCTAVX2", "coef *int16, quant *int32, dst *uint8, stride int",
		"writes the pixels of a block of coefficients, in rows.")
	coef, quant, dst, stride := pointer("coef"), pointer("quant"), pointer("dst"), pointer("stride")
	var v [8]reg.VecVirtual
	for i := range v {
		v[i] = YMM()
		VPMOVSXWD(at(coef, 16*i), v[i])
		VPMULLD(at(quant, 32*i), v[i], v[i])
	}
	transform(&v, 11)
	transpose(&v)
	transform(&v, 18)
	transpose(&v)
	middle := YMM()
	VMOVDQU(shorts("128", 128), middle)
	for i := 0; i < 8; i += 4 {
		VPACKSSDW(v[i+1], v[i], v[i])     // 128-bit lanes: left halves of rows i and i+1; right halves
		VPACKSSDW(v[i+3], v[i+2], v[i+2]) // the same for the next two rows
		VPADDSW(middle, v[i], v[i])
		VPADDSW(middle, v[i+2], v[i+2])
		VPACKUSWB(v[i+2], v[i], v[i]) // left halves of four rows; right halves
		right := YMM()
		VEXTRACTI128(Imm(1), v[i], right.AsX())
		VPUNPCKLDQ(right.AsX(), v[i].AsX(), v[i+1].AsX())
		VPUNPCKHDQ(right.AsX(), v[i].AsX(), v[i+2].AsX())
		for _, two := range []reg.VecVirtual{v[i+1], v[i+2]} {
			VMOVQ(two.AsX(), at(dst, 0))
			ADDQ(stride, dst)
			VPEXTRQ(Imm(1), two.AsX(), at(dst, 0))
			ADDQ(stride, dst)
		}
	}
	VZEROUPPER()
	RET()
}

// transform emits the inverse DCT of Loeffler, Ligtenberg and Moschytz (Practical Fast 1-D DCT
// Algorithms with 11 Multiplications, 1989) on eight registers, in place, and shifts the
// results right by shift bits with rounding.
func transform(v *[8]reg.VecVirtual, shift uint64) {
	e := times(sum(v[2], v[6]), 4433)
	e2, e3 := sum(e, times(v[6], -15137)), sum(e, times(v[2], 6270))
	e0, e1 := sum(v[0], v[4]), less(v[0], v[4])
	VPSLLD(Imm(13), e0, e0)
	VPSLLD(Imm(13), e1, e1)
	half := words(fmt.Sprint("Half", shift), 1<<(shift-1))
	VPADDD(half, e0, e0)
	VPADDD(half, e1, e1)
	even := [4]reg.VecVirtual{sum(e0, e3), sum(e1, e2), less(e1, e2), less(e0, e3)}

	z3, z4 := sum(v[7], v[3]), sum(v[5], v[1])
	z5 := times(sum(z3, z4), 9633)
	z3, z4 = sum(z5, times(z3, -16069)), sum(z5, times(z4, -3196))
	z1, z2 := times(sum(v[7], v[1]), -7373), times(sum(v[5], v[3]), -20995)
	odd := [4]reg.VecVirtual{
		sum(times(v[1], 12299), sum(z1, z4)),
		sum(times(v[3], 25172), sum(z2, z3)),
		sum(times(v[5], 16819), sum(z2, z4)),
		sum(times(v[7], 2446), sum(z1, z3)),
	}
	for i := range even {
		v[i], v[7-i] = sum(even[i], odd[i]), less(even[i], odd[i])
		VPSRAD(Imm(shift), v[i], v[i])
		VPSRAD(Imm(shift), v[7-i], v[7-i])
	}
}

// times emits x·c in a new register, and returns it.
func times(x reg.VecVirtual, c int32) reg.VecVirtual {
	y := YMM()
	name := fmt.Sprint("C", c)
	if c < 0 {
		name = fmt.Sprint("N", -c)
	}
	VPMULLD(words(name, c), x, y)
	return y
}

func sum(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPADDD(b, a, y); return y }

func less(a, b reg.VecVirtual) reg.VecVirtual { y := YMM(); VPSUBD(b, a, y); return y }

// reducedIDCT emits the function for the inverse DCT of 8×8 coefficients to size×size pixels;
// size must be 4 or 2.
func reducedIDCT(size int) {
	pixels(fmt.Sprintf("Reduced%dAVX2", size), "coef *int16, quant *int32, dst *uint8, stride int",
		fmt.Sprintf("writes the %d×%d pixels of a block of coefficients, in rows.", size, size))
	coef, quant, dst, stride := pointer("coef"), pointer("quant"), pointer("dst"), pointer("stride")
	transform, first := toFour, uint64(12)
	if size == 2 {
		transform, first = toTwo, 13
	}
	var v [8]reg.VecVirtual
	for i := range v {
		if i == 4 || size == 2 && i%2 == 0 && i > 0 {
			continue // not used by the result
		}
		v[i] = YMM()
		VPMOVSXWD(at(coef, 16*i), v[i])
		VPMULLD(at(quant, 32*i), v[i], v[i])
	}
	for _, shift := range []uint64{first, first + 7} {
		out := transform(&v, shift)
		for i := range v {
			v[i] = out[i%size] // transpose needs eight rows
		}
		transpose(&v)
	}
	middle := YMM()
	VMOVDQU(words("128", 128), middle)
	for i := range size {
		x := sum(v[i], middle).AsX()
		VPACKSSDW(x, x, x)
		VPACKUSWB(x, x, x)
		if size == 4 {
			VMOVD(x, at(dst, 0))
		} else {
			VPEXTRW(Imm(0), x, at(dst, 0))
		}
		ADDQ(stride, dst)
	}
	VZEROUPPER()
	RET()
}

// rounded emits the shift of x to the right by shift bits with rounding, in place, and returns
// x.
func rounded(x reg.VecVirtual, shift uint64) reg.VecVirtual {
	VPADDD(words(fmt.Sprint("Half", shift), 1<<(shift-1)), x, x)
	VPSRAD(Imm(shift), x, x)
	return x
}

// toFour emits the transform of eight registers to four, which it returns, as [transform] does
// for eight. It does not use register 4.
func toFour(v *[8]reg.VecVirtual, shift uint64) []reg.VecVirtual {
	dc := YMM()
	VPSLLD(Imm(14), v[0], dc)
	even := sum(times(v[2], 15137), times(v[6], -6270))
	inner := sum(sum(times(v[1], 8697), times(v[3], -17799)), sum(times(v[5], 11893), times(v[7], -1730)))
	outer := sum(sum(times(v[1], 20995), times(v[3], 7373)), sum(times(v[5], -4926), times(v[7], -4176)))
	far, near := sum(dc, even), less(dc, even)
	return []reg.VecVirtual{
		rounded(sum(far, outer), shift), rounded(sum(near, inner), shift), rounded(less(near, inner), shift),
		rounded(less(far, outer), shift),
	}
}

// toTwo emits the transform of eight registers to two, which it returns, as [transform] does
// for eight. It uses the first register and the odd ones.
func toTwo(v *[8]reg.VecVirtual, shift uint64) []reg.VecVirtual {
	dc := YMM()
	VPSLLD(Imm(15), v[0], dc)
	odd := sum(sum(times(v[1], 29692), times(v[3], -10426)), sum(times(v[5], 6967), times(v[7], -5906)))
	return []reg.VecVirtual{rounded(sum(dc, odd), shift), rounded(less(dc, odd), shift)}
}

// transpose emits the transposition of the 8×8 matrix in eight registers, and replaces the
// registers in v.
func transpose(v *[8]reg.VecVirtual) {
	var a, b [8]reg.VecVirtual
	for i := 0; i < 8; i += 2 {
		a[i], a[i+1] = YMM(), YMM()
		VPUNPCKLDQ(v[i+1], v[i], a[i])
		VPUNPCKHDQ(v[i+1], v[i], a[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			b[i+2*j], b[i+2*j+1] = YMM(), YMM()
			VPUNPCKLQDQ(a[i+2+j], a[i+j], b[i+2*j])
			VPUNPCKHQDQ(a[i+2+j], a[i+j], b[i+2*j+1])
		}
	}
	for i := range 4 {
		v[i], v[i+4] = YMM(), YMM()
		VPERM2I128(Imm(0x20), b[i+4], b[i], v[i])
		VPERM2I128(Imm(0x31), b[i+4], b[i], v[i+4])
	}
}

// upsample emits the function name, which doubles a row of pixels by linear interpolation. If
// two is set, the function first interpolates between two rows.
func upsample(name, doc string, two bool) {
	params := "n int, src, dst *uint8"
	if two {
		params = "n int, near, far, dst *uint8"
	}
	pixels(name, params, doc)
	n, dst := pointer("n"), pointer("dst")
	var near, far reg.GPVirtual
	before, behind, shift := shorts("1", 1), shorts("2", 2), uint64(2)
	if two {
		near, far = pointer("near"), pointer("far")
		before, behind, shift = shorts("8", 8), shorts("7", 7), 4
	} else {
		near = pointer("src")
	}
	first, second := YMM(), YMM()
	VMOVDQU(before, first)
	VMOVDQU(behind, second)
	triple := func(x reg.VecVirtual) reg.VecVirtual {
		y := YMM()
		VPADDW(x, x, y)
		VPADDW(x, y, y)
		return y
	}
	load := func(disp int) reg.VecVirtual {
		x := YMM()
		VPMOVZXBW(at(near, disp), x)
		if !two {
			return x
		}
		x, y := triple(x), YMM()
		VPMOVZXBW(at(far, disp), y)
		VPADDW(y, x, x)
		return x
	}
	loop(n, 16, func() {
		left, here, right := load(-1), triple(load(0)), load(1)
		VPADDW(here, left, left)
		VPADDW(first, left, left)
		VPADDW(here, right, right)
		VPADDW(second, right, right)
		VPSRLW(Imm(shift), left, left)
		VPSRLW(Imm(shift), right, right)
		VPSLLW(Imm(8), right, right) // even pixels are low bytes, odd pixels high bytes
		VPOR(left, right, left)
		VMOVDQU(left, at(dst, 0))
		ADDQ(Imm(16), near)
		if two {
			ADDQ(Imm(16), far)
		}
		ADDQ(Imm(32), dst)
	})
}

// narrow emits the store of eight 32-bit numbers as bytes, with saturation. It does not
// overwrite x.
func narrow(x reg.VecVirtual, to Mem) {
	high := XMM()
	VEXTRACTI128(Imm(1), x, high)
	VPACKSSDW(high, x.AsX(), high)
	VPACKUSWB(high, high, high)
	VMOVQ(high, to)
}

func rgb() {
	pixels("RGBAVX2", "n int, y, cb, cr, red, green, blue *uint8",
		"writes the colours of n pixels, a multiple of 8, of luminance and chrominance.")
	n := pointer("n")
	at3 := map[string]reg.GPVirtual{}
	for _, p := range []string{"y", "cb", "cr", "red", "green", "blue"} {
		at3[p] = pointer(p)
	}
	var fixed [6]reg.VecVirtual
	for i, m := range []Mem{words("128", 128), words("Round", 1<<15), words("C91881", 91881),
		words("N22554", -22554), words("N46802", -46802), words("C116130", 116130)} {
		fixed[i] = YMM()
		VMOVDQU(m, fixed[i])
	}
	i := GP64()
	XORQ(i, i)
	loop(n, 8, func() {
		y, cb, cr := YMM(), YMM(), YMM()
		for name, x := range []reg.VecVirtual{y, cb, cr} {
			VPMOVZXBD(Mem{Base: at3[[]string{"y", "cb", "cr"}[name]], Index: i, Scale: 1}, x)
		}
		VPSUBD(fixed[0], cb, cb)
		VPSUBD(fixed[0], cr, cr)
		r, g, b, t := YMM(), YMM(), YMM(), YMM()
		VPMULLD(fixed[2], cr, r)
		VPMULLD(fixed[3], cb, g)
		VPMULLD(fixed[4], cr, t)
		VPMULLD(fixed[5], cb, b)
		VPADDD(t, g, g)
		for name, x := range []reg.VecVirtual{r, g, b} {
			VPADDD(fixed[1], x, x)
			VPSRAD(Imm(16), x, x)
			VPADDD(y, x, x)
			narrow(x, Mem{Base: at3[[]string{"red", "green", "blue"}[name]], Index: i, Scale: 1})
		}
		ADDQ(Imm(8), i)
	})
}

func float() {
	pixels("FloatAVX2", "n int, scale, bias float32, src *uint8, dst *float32",
		"writes scale·x + bias for n bytes, a multiple of 8.")
	n, src, dst := pointer("n"), pointer("src"), pointer("dst")
	v := avx2(4)
	scale, bias := v.scalar("scale"), v.scalar("bias")
	loop(n, 8, func() {
		x := YMM()
		VPMOVZXBD(at(src, 0), x)
		VCVTDQ2PS(x, x)
		VMULPS(scale, x, x)
		VADDPS(bias, x, x)
		VMOVUPS(x, at(dst, 0))
		ADDQ(Imm(8), src)
		ADDQ(Imm(32), dst)
	})
}

// shuffle returns a constant, a VPSHUFB mask of sixteen positions. Position i selects byte
// from(i), or zero if that is not from 0 to 15.
func shuffle(name string, from func(i int) int) Mem {
	m := GLOBL("pixel"+name, RODATA|NOPTR)
	for i := range 16 {
		place := uint8(0x80)
		if f := from(i); f >= 0 && f < 16 {
			place = uint8(f)
		}
		DATA(i, U8(place))
	}
	return m
}

func merge() {
	pixels("MergeAVX2", "n int, packed, red, green, blue *uint8", "packs n pixels of three planes, a multiple of 16.")
	n, packed := pointer("n"), pointer("packed")
	planes := []reg.GPVirtual{pointer("red"), pointer("green"), pointer("blue")}
	var places [3][3]Mem
	for part := range 3 {
		for c := range 3 {
			places[part][c] = shuffle(fmt.Sprintf("Merge%d%d", part, c), func(i int) int {
				if k := 16*part + i; k%3 == c {
					return k / 3
				}
				return -1
			})
		}
	}
	loop(n, 16, func() {
		var x [3]reg.VecVirtual
		for c := range x {
			x[c] = XMM()
			VMOVDQU(at(planes[c], 0), x[c])
			ADDQ(Imm(16), planes[c])
		}
		for part := range 3 {
			all, y := XMM(), XMM()
			VPSHUFB(places[part][0], x[0], all)
			VPSHUFB(places[part][1], x[1], y)
			VPOR(y, all, all)
			VPSHUFB(places[part][2], x[2], y)
			VPOR(y, all, all)
			VMOVDQU(all, at(packed, 16*part))
		}
		ADDQ(Imm(48), packed)
	})
}

func split() {
	pixels("SplitAVX2", "n int, packed, red, green, blue *uint8",
		"writes n packed pixels, a multiple of 16, to three planes.")
	n, packed := pointer("n"), pointer("packed")
	planes := []reg.GPVirtual{pointer("red"), pointer("green"), pointer("blue")}
	var places [3][3]Mem
	for part := range 3 {
		for c := range 3 {
			places[part][c] = shuffle(fmt.Sprintf("Split%d%d", part, c), func(i int) int { return 3*i + c - 16*part })
		}
	}
	loop(n, 16, func() {
		var x [3]reg.VecVirtual
		for part := range x {
			x[part] = XMM()
			VMOVDQU(at(packed, 16*part), x[part])
		}
		for c := range 3 {
			all, y := XMM(), XMM()
			VPSHUFB(places[0][c], x[0], all)
			VPSHUFB(places[1][c], x[1], y)
			VPOR(y, all, all)
			VPSHUFB(places[2][c], x[2], y)
			VPOR(y, all, all)
			VMOVDQU(all, at(planes[c], 0))
			ADDQ(Imm(16), planes[c])
		}
		ADDQ(Imm(48), packed)
	})
}

func add() {
	pixels("AddBytesAVX2", "n int, a, b, dst *uint8", "writes the sums of n bytes, a multiple of 32.")
	n, a, b, dst := pointer("n"), pointer("a"), pointer("b"), pointer("dst")
	loop(n, 32, func() {
		x := YMM()
		VMOVDQU(at(a, 0), x)
		VPADDB(at(b, 0), x, x)
		VMOVDQU(x, at(dst, 0))
		for _, p := range []reg.GPVirtual{a, b, dst} {
			ADDQ(Imm(32), p)
		}
	})
}

// paeth emits the decoder of the Paeth filter for pixels of size bytes, 3 or 4, see
// https://www.w3.org/TR/png-3/#9Filter-type-4-Paeth. A pixel is in the low lanes of a register,
// 16 bits per byte.
func paeth(size int) {
	pixels(fmt.Sprintf("Paeth%dAVX2", size), "n int, raw, above, dst *uint8",
		fmt.Sprintf("undoes a filter of PNG for n pixels of %d bytes. It reads and writes four at a time.", size))
	n, raw, above, dst := pointer("n"), pointer("raw"), pointer("above"), pointer("dst")
	a, c, low := XMM(), XMM(), XMM()
	VPXOR(a, a, a)
	VPXOR(c, c, c)
	VMOVDQU(shorts("255", 255), low)
	loop(n, 1, func() {
		x, b, toA, toB, toC, least := XMM(), XMM(), XMM(), XMM(), XMM(), XMM()
		VMOVD(at(raw, 0), x)
		VMOVD(at(above, 0), b)
		VPMOVZXBW(x, x)
		VPMOVZXBW(b, b)
		VPSUBW(c, b, toA)
		VPSUBW(c, a, toB)
		VPADDW(toA, toB, toC)
		VPABSW(toA, toA)
		VPABSW(toB, toB)
		VPABSW(toC, toC)
		VPMINSW(toA, toB, least)
		VPMINSW(toC, least, least)
		VPCMPEQW(least, toA, toA)
		VPCMPEQW(least, toB, toB)
		VPBLENDVB(toB, b, c, c) // choose between b and c, ignoring a
		VPBLENDVB(toA, a, c, c)
		VPADDW(c, x, a)
		VPAND(low, a, a)
		VMOVDQA(b, c)
		y := XMM()
		VPACKUSWB(a, a, y)
		VMOVD(y, at(dst, 0))
		for _, p := range []reg.GPVirtual{raw, above, dst} {
			ADDQ(Imm(uint64(size)), p)
		}
	})
}

// column emits the function for a weighted sum of rows.
func column() {
	pixels("ColumnAVX2", "n, taps, stride int, weights *int32, src, dst *uint8",
		"writes the sums of taps rows, stride apart, each times its weight of 22 bits, for n pixels, a multiple of 8.")
	n, taps, stride, weights, src, dst := pointer("n"), pointer("taps"), pointer("stride"),
		pointer("weights"), pointer("src"), pointer("dst")
	half := YMM()
	VMOVDQU(words("Half22", 1<<21), half)
	loop(n, 8, func() {
		sum, k, from := YMM(), GP64(), GP64()
		VMOVDQA(half, sum)
		XORQ(k, k)
		MOVQ(src, from)
		Label("taps")
		x, w := YMM(), YMM()
		VPBROADCASTD(Mem{Base: weights, Index: k, Scale: 4}, w)
		VPMOVZXBD(at(from, 0), x)
		VPMULLD(w, x, x)
		VPADDD(x, sum, sum)
		ADDQ(stride, from)
		INCQ(k)
		CMPQ(k, taps)
		JLT(LabelRef("taps"))
		VPSRAD(Imm(22), sum, sum)
		narrow(sum, at(dst, 0))
		ADDQ(Imm(8), src)
		ADDQ(Imm(8), dst)
	})
}

// row emits the function for weighted sums of adjacent pixels.
func row() {
	if !onARM64 {
		rowOfHalves()
		return
	}
	pixels("RowAVX2", "n, taps int, first, weights *int32, src, dst *uint8",
		"writes n pixels, each the sum of taps, a multiple of 8, from its first on, times its weights of 22 bits.")
	n, taps, first, weights, src, dst := pointer("n"), pointer("taps"), pointer("first"), pointer("weights"),
		pointer("src"), pointer("dst")
	half := XMM()
	VMOVDQU(words("Half22", 1<<21), half)
	loop(n, 1, func() {
		sum, from, k := YMM(), GP64(), GP64()
		VPXOR(sum, sum, sum)
		MOVLQSX(at(first, 0), from)
		ADDQ(src, from)
		MOVQ(taps, k)
		Label("taps")
		x := YMM()
		VPMOVZXBD(at(from, 0), x)
		VPMULLD(at(weights, 0), x, x)
		VPADDD(x, sum, sum)
		ADDQ(Imm(8), from)
		ADDQ(Imm(32), weights)
		SUBQ(Imm(8), k)
		JNZ(LabelRef("taps"))
		high, low := XMM(), sum.AsX()
		VEXTRACTI128(Imm(1), sum, high)
		VPADDD(high, low, high)
		VPSHUFD(Imm(0x4E), high, low)
		VPADDD(low, high, high)
		VPSHUFD(Imm(0xB1), high, low)
		VPADDD(low, high, high)
		VPADDD(half, high, high)
		VPSRAD(Imm(22), high, high)
		VPACKSSDW(high, high, high)
		VPACKUSWB(high, high, high)
		VPEXTRB(Imm(0), high, at(dst, 0))
		ADDQ(Imm(4), first)
		INCQ(dst)
	})
}

// rowOfHalves is [row] for amd64, with weights in two halves, because the processor multiplies
// and adds numbers of 16 bits much faster. Each register has eight products of the lower halves
// and eight of the upper ones.
func rowOfHalves() {
	pixels("RowAVX2", "n, taps int, first *int32, halves *int16, src, dst *uint8",
		"writes n pixels, a multiple of 4, each the sum of taps, a multiple of 8, from its first on, times its weights "+
			"of 22 bits. Of eight weights, halves has the lower 11 bits of each, and then the others.")
	n, taps, first, halves, src, dst := pointer("n"), pointer("taps"), pointer("first"), pointer("halves"),
		pointer("src"), pointer("dst")
	half, zero := XMM(), YMM()
	VMOVDQU(words("Half22", 1<<21), half)
	VPXOR(zero, zero, zero)
	loop(n, 4, func() {
		var sums [4]reg.VecVirtual
		for i := range sums {
			x, from, k := YMM(), GP64(), GP64()
			products := func(to reg.VecVirtual) {
				VPBROADCASTQ(at(from, 0), x)
				VPUNPCKLBW(zero, x, x)
				VPMADDWD(at(halves, 0), x, to)
				ADDQ(Imm(32), halves)
			}
			sums[i] = YMM()
			MOVLQSX(at(first, 4*i), from)
			ADDQ(src, from)
			MOVQ(taps, k)
			products(sums[i])
			more, end := fmt.Sprint("taps", i), fmt.Sprint("end", i)
			Label(more)
			SUBQ(Imm(8), k)
			JZ(LabelRef(end))
			ADDQ(Imm(8), from)
			products(x)
			VPADDD(x, sums[i], sums[i])
			JMP(LabelRef(more))
			Label(end)
		}
		VPHADDD(sums[1], sums[0], sums[0])
		VPHADDD(sums[3], sums[2], sums[2])
		VPHADDD(sums[2], sums[0], sums[0])
		high, low := XMM(), sums[0].AsX()
		VEXTRACTI128(Imm(1), sums[0], high)
		VPSLLD(Imm(11), high, high)
		VPADDD(low, high, high)
		VPADDD(half, high, high)
		VPSRAD(Imm(22), high, high)
		VPACKSSDW(high, high, high)
		VPACKUSWB(high, high, high)
		VMOVD(high, at(dst, 0))
		ADDQ(Imm(16), first)
		ADDQ(Imm(4), dst)
	})
}

// mirror emits the function name that reverses rows one register at a time, for elements of the
// Go type kind, of size bytes, 1 or 4. The last register of a row overlaps with the one before.
func mirror(name, kind string, size int) {
	x := XMM()
	if size == 4 {
		x = YMM()
	}
	step := 32 // bytes
	if size == 1 {
		step = 16
	}
	pixels(name, fmt.Sprintf("rows, width int, src, dst *%s", kind),
		fmt.Sprintf("writes rows from right to left, each of width elements, at least %d.", step/size))
	rows, width, src, dst := pointer("rows"), pointer("width"), pointer("src"), pointer("dst")
	var turn func()
	if size == 1 {
		backwards := shuffle("Backwards", func(i int) int { return 15 - i })
		turn = func() { VPSHUFB(backwards, x, x) }
	} else {
		backwards := YMM()
		VMOVDQU(words("Backwards8", 7, 6, 5, 4, 3, 2, 1, 0), backwards)
		turn = func() { VPERMD(x, backwards, x) }
		SHLQ(Imm(2), width)
	}
	from, to, last := GP64(), GP64(), GP64()
	MOVQ(width, last)
	SUBQ(Imm(uint64(step)), last)
	Label("row")
	TESTQ(rows, rows)
	JLE(LabelRef("done"))
	XORQ(from, from)
	MOVQ(last, to)
	Label("register")
	VMOVDQU(Mem{Base: src, Index: from, Scale: 1}, x) // ascending addresses, for the hardware prefetcher
	turn()
	VMOVDQU(x, Mem{Base: dst, Index: to, Scale: 1})
	ADDQ(Imm(uint64(step)), from)
	SUBQ(Imm(uint64(step)), to)
	JGE(LabelRef("register"))
	ADDQ(Imm(uint64(step)), to)
	JZ(LabelRef("next")) // the row is complete
	VMOVDQU(Mem{Base: src, Index: last, Scale: 1}, x)
	turn()
	VMOVDQU(x, at(dst, 0))
	Label("next")
	ADDQ(width, src)
	ADDQ(width, dst)
	DECQ(rows)
	JMP(LabelRef("row"))
	Label("done")
	VZEROUPPER()
	RET()
}
