package tensor

import "math"

// F16 is an element of a Float16 tensor: the bits of an IEEE 754 binary16 number.
type F16 uint16

// BF16 is an element of a BFloat16 tensor: the upper half of the bits of a float32.
type BF16 uint16

// MakeF16 rounds v to the nearest F16; ties round to even. Numbers that overflow become infinite.
func MakeF16(v float32) F16 {
	bits := math.Float32bits(v)
	sign := F16(bits >> 16 & 0x8000)
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN
		return sign | 0x7e00
	case abs >= 0x477ff000: // rounds to at least 65536
		return sign | 0x7c00
	case abs < 0x38800000: // subnormal: multiples of 2^-24
		return sign | F16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	abs += 0xfff + abs>>13&1
	return sign | F16((abs-0x38000000)>>13)
}

// Float32 returns the value, exactly.
func (h F16) Float32() float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// MakeBF16 rounds v to the nearest BF16; ties round to even.
func MakeBF16(v float32) BF16 {
	bits := math.Float32bits(v)
	if v != v {
		return 0x7fc0
	}
	return BF16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 returns the value, exactly.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }
