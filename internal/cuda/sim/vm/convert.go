package vm

import "math"

// convert returns the function of cvt between two types, or nil if the conversion is not
// supported. It removes the rounding modifier from o. Floats are converted to integers as PTX
// 9.0 specifies: values out of range are clamped, and NaN becomes the highest bit alone, or 0
// if neither type has 64 bits.
func (o *opcode) convert(to, from scalar) function {
	whole := roundModifier(o)
	switch {
	case to.kind == 'p' || from.kind == 'p':
		return nil
	case to.kind != 'f' && from.kind != 'f':
		if from.kind == 's' {
			shift := 64 - 8*from.size
			return func(a, _, _ uint64) uint64 { return to.truncateBits(uint64(int64(a) << shift >> shift)) }
		}
		return func(a, _, _ uint64) uint64 { return to.truncateBits(from.truncateBits(a)) }
	case to.kind != 'f':
		read := readerFor(from)
		low, high := bounds(to)
		var nan uint64
		if max(to.size, from.size) == 8 {
			nan = 1 << (8*to.size - 1)
		}
		return func(a, _, _ uint64) uint64 {
			v := whole(read(a))
			switch {
			case v != v:
				return nan
			case v <= low.float:
				return to.truncateBits(low.bits)
			case v >= high.float:
				return to.truncateBits(high.bits)
			case to.kind == 's':
				return to.truncateBits(uint64(int64(v)))
			}
			return to.truncateBits(uint64(v))
		}
	case from.kind == 's':
		shift, write := 64-8*from.size, writerFor(to)
		if to.size == 4 {
			return func(a, _, _ uint64) uint64 { return uint64(math.Float32bits(float32(int64(a) << shift >> shift))) }
		}
		return func(a, _, _ uint64) uint64 { return write(float64(int64(a) << shift >> shift)) }
	case from.kind != 'f':
		write := writerFor(to)
		if to.size == 4 {
			return func(a, _, _ uint64) uint64 { return uint64(math.Float32bits(float32(from.truncateBits(a)))) }
		}
		return func(a, _, _ uint64) uint64 { return write(float64(from.truncateBits(a))) }
	}
	read, write := readerFor(from), writerFor(to)
	return func(a, _, _ uint64) uint64 { return write(whole(read(a))) }
}

// roundModifier removes the modifier for rounding to an integer from o, and returns its
// function. Without a modifier it returns the identity.
func roundModifier(o *opcode) func(float64) float64 {
	switch {
	case o.takeModifier("rni"):
		return math.RoundToEven
	case o.takeModifier("rzi"):
		return math.Trunc
	case o.takeModifier("rmi"):
		return math.Floor
	case o.takeModifier("rpi"):
		return math.Ceil
	}
	return func(v float64) float64 { return v }
}

// A bound is the smallest or largest value of an integer type.
type bound struct {
	float float64
	bits  uint64
}

func bounds(t scalar) (low, high bound) {
	n := 8 * t.size
	if t.kind == 's' {
		n--
		least := -1 << 63 >> (63 - n)
		return bound{float64(least), uint64(least)}, bound{math.Ldexp(1, n), ^uint64(0) >> (64 - n)}
	}
	return bound{}, bound{math.Ldexp(1, n), ^uint64(0) >> (64 - n)}
}

func readerFor(t scalar) func(uint64) float64 {
	switch t.size {
	case 2:
		return ReadFloat16
	case 4:
		return readFloat32
	}
	return math.Float64frombits
}

func writerFor(t scalar) func(float64) uint64 {
	switch t.size {
	case 2:
		return WriteFloat16
	case 4:
		return writeFloat32
	}
	return math.Float64bits
}

// ReadFloat16 returns the value of the float16 in the low 16 bits.
func ReadFloat16(bits uint64) float64 {
	sign, exponent, fraction := 1-2*float64(bits>>15&1), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// WriteFloat16 returns the bits of v as float16, rounded to nearest, ties to even. The spacing of
// float16 numbers doubles with each exponent, down to 2^-24.
func WriteFloat16(v float64) uint64 {
	sign := math.Float64bits(v) >> 63 << 15
	switch a := math.Abs(v); {
	case a != a:
		return 0x7fff
	case a == 0:
		return sign
	case a >= 65520:
		return sign | 0x7c00
	default:
		_, e := math.Frexp(a)
		e = max(e, -13)
		steps := uint64(math.RoundToEven(math.Ldexp(a, 11-e))) // at most 2^11
		return sign | (uint64(e+13)<<10 + steps)
	}
}
