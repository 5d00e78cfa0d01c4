package devicetest

import (
	"math"
	"math/bits"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// Philox returns the output of Philox 4×32-10 (Salmon et al., 2011) for a counter and a key.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, counter[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return counter
}

// words returns the random words u and v at a place of the [device.Sequence] with this key.
func words(key, place uint64) (u, v uint64) {
	r := Philox([4]uint32{uint32(place), uint32(place >> 32)}, [2]uint32{uint32(key), uint32(key >> 32)})
	return uint64(r[1])<<32 | uint64(r[0]), uint64(r[3])<<32 | uint64(r[2])
}

// Number returns the element of a sequence at a place, before rounding to the dtype. Random
// sequences of floats of less than 8 bytes have the elements of [Narrow] instead.
func Number(s device.Sequence, place uint64) float64 {
	u, v := words(s.Key, place)
	switch s.Kind {
	case device.Arithmetic:
		return s.A + float64(float64(place)*s.B)
	case device.RandomUniform:
		return s.A + float64((s.B-s.A)*float64(u>>(64-s.Bits)))/float64(uint64(1)<<s.Bits)
	case device.RandomNormal:
		z := math.Sqrt(-2*math.Log(float64(u>>11+1)/(1<<53))) * math.Cos(2*math.Pi*float64(v>>11)/(1<<53))
		return s.A + float64(s.B*z)
	}
	return kept(s, float64(u>>11)/(1<<53))
}

// Narrow returns the element of a random sequence at a place, for float dtypes of less than 8
// bytes, before rounding to the dtype.
func Narrow(s device.Sequence, place uint64) float64 {
	four := Philox([4]uint32{uint32(place / 4), uint32(place / 4 >> 32)}, [2]uint32{uint32(s.Key), uint32(s.Key >> 32)})
	w := four[place%4]
	switch s.Kind {
	case device.RandomUniform:
		return s.A + (s.B-s.A)*float64(w>>(32-s.Bits))/float64(uint64(1)<<s.Bits)
	case device.RandomNormal:
		first := float32(float64(float32(four[place%4&^1]))*0x1p-32 + 0x1p-33)
		sin, cos := math.Sincos(2 * math.Pi * float64(four[place%4|1]) / (1 << 32))
		return s.A + s.B*math.Sqrt(-2*math.Log(float64(first)))*[]float64{cos, sin}[place%2]
	}
	return kept(s, float64(w)/(1<<32))
}

// kept returns the element of a RandomBernoulli or RandomKept sequence for a uniform number between
// 0 and 1: 0 if the number is at least s.A, and otherwise 1 or, for RandomKept, s.B.
func kept(s device.Sequence, drawn float64) float64 {
	switch {
	case drawn >= s.A:
		return 0
	case s.Kind == device.RandomKept:
		return s.B
	}
	return 1
}

// Integer returns the element of an integer sequence at a place.
func Integer(s device.Sequence, place uint64) int64 {
	u, _ := words(s.Key, place)
	hi, _ := bits.Mul64(u, s.Count)
	return s.From + int64(hi)
}

// numberOf returns the function for the elements of a kind of sequence: [Narrow] for random
// sequences of floats of less than 8 bytes, and otherwise [Number].
func numberOf(kind device.SequenceKind, dt tensor.DType) func(s device.Sequence, place uint64) float64 {
	narrow := []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32}
	if kind != device.Arithmetic && slices.Contains(narrow, dt) {
		return Narrow
	}
	return Number
}
