package tensor

import "math"

// A float8Format is an 8-bit floating-point format with a sign, an exponent and a mantissa.
type float8Format struct {
	mantissa int // number of bits
	bias     int
	// largest is infinity if infinite is set. Otherwise it is the result for larger numbers, as in
	// PyTorch since 2.15.
	largest  uint8
	infinite bool
}

var float8Formats = map[DType]float8Format{Float8E4M3FN: {3, 7, 0x7e, false}, Float8E5M2: {2, 15, 0x7c, true}}

const float8NaN = 0x7f

// float32 returns the value of the bits b, exactly.
func (f float8Format) float32(b uint8) float32 {
	abs, sign := b&0x7f, 1-2*float64(b>>7)
	exponent, fraction := int(abs>>f.mantissa), int(abs&(1<<f.mantissa-1))
	switch {
	case abs == f.largest && f.infinite:
		return float32(math.Inf(int(sign)))
	case abs > f.largest:
		return float32(math.NaN())
	case exponent == 0:
		exponent = 1
	default:
		fraction |= 1 << f.mantissa
	}
	return float32(sign * math.Ldexp(float64(fraction), exponent-f.bias-f.mantissa))
}

// round returns the bits of the value nearest to v; ties round to even. A number out of range
// becomes infinity, or the largest finite value if the format has no infinity.
func (f float8Format) round(v float32) uint8 {
	bits := math.Float32bits(v)
	sign, abs := uint8(bits>>24&0x80), bits&0x7fffffff
	shift := 23 - f.mantissa
	switch {
	case v != v:
		return sign | float8NaN
	case abs < uint32(128-f.bias)<<23: // subnormal: equal steps
		return sign | uint8(math.RoundToEven(math.Ldexp(float64(math.Float32frombits(abs)), f.bias-1+f.mantissa)))
	}
	abs += 1<<(shift-1) - 1 + abs>>shift&1
	return sign | uint8(min(abs>>shift-uint32(127-f.bias)<<f.mantissa, uint32(f.largest)))
}
