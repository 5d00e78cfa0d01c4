package kernel

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// together is how many elements functions of two numbers compute at a time.
const together = 512

// A desk is room for the numbers between those of a piece and its result.
type desk struct {
	a, b, c [together]float64
	f, g    [together]float32
	bytes   [together]uint8
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// pieces calls do with pieces of x, y and z, which are equally long, and a desk.
func pieces(x, y, z []float32, do func(d *desk, x, y, z []float32)) {
	d := desks.Get().(*desk)
	defer desks.Put(d)
	y, z = y[:len(x)], z[:len(x)]
	for lo := 0; lo < len(x); lo += together {
		hi := min(lo+together, len(x))
		do(d, x[lo:hi], y[lo:hi], z[lo:hi])
	}
}

// widen overwrites y with x.
func widen(x []float32, y []float64) {
	for i := Float32ToFloat64.Do(len(x), raw(y), raw(x)); i < len(x); i++ {
		y[i] = float64(x[i])
	}
}

// round overwrites y with x.
func round(x []float64, y []float32) {
	for i := Float64ToFloat32.Do(len(x), raw(y), raw(x)); i < len(x); i++ {
		y[i] = float32(x[i])
	}
}

// raw returns the memory of x.
func raw[F Float](x []F) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// Power overwrites z with x to the power of y, element by element: 2 to the power of y·log₂|x| in
// float64, which is good to a unit in the last place of float32. What is 0, infinite or NaN is as
// math.Pow has it. z may be x or y, here and below.
func Power(x, y, z []float32) {
	do := inner[float32]().power
	pieces(x, y, z, func(d *desk, x, y, z []float32) {
		sizes := d.f[:len(x)]
		if do != nil {
			do(len(x), &x[0], &y[0], &sizes[0])
		} else {
			powers(d, x, y, sizes)
		}
		if most := Largest(sizes); do == nil || most != most || !(Smallest(x) > 0) {
			for i, size := range sizes {
				if x, y := x[i], y[i]; !(x > 0 && x <= math.MaxFloat32 && y-y == 0) {
					sizes[i] = power(x, y, size)
				}
			}
		}
		copy(z, sizes)
	})
}

func powers(d *desk, x, y, sizes []float32) {
	b, e := d.a[:len(x)], d.b[:len(x)]
	widen(x, b)
	widen(y, e)
	Map(Abs, b, b)
	Map(Log, b, b)
	Mul(b, e, b)
	Exp(b, b)
	round(b, sizes)
}

// power is x to the power of y, where size is |x| to that power.
func power(x, y, size float32) float32 {
	switch {
	case x == 0 || x-x != 0 || y-y != 0:
		return float32(math.Pow(float64(x), float64(y)))
	case x > 0:
		return size
	case float64(y) != math.Trunc(float64(y)):
		return float32(math.NaN())
	case math.Abs(float64(y)) < 1<<24 && int64(y)&1 != 0:
		return -size
	}
	return size
}

// Hypot overwrites z with the square root of x²+y², which float64 has room for.
func Hypot(x, y, z []float32) {
	special(x, y, z, inner[float32]().hypot, hypot, math.Hypot)
}

func hypot(d *desk, x, y, z []float32) {
	sum, squares := d.a[:len(x)], d.b[:len(x)]
	widen(x, sum)
	widen(y, squares)
	Mul(sum, sum, sum)
	Mul(squares, squares, squares)
	Add(sum, squares, sum)
	Map(Sqrt, sum, sum)
	round(sum, z)
}

// special overwrites z with what do makes of x and y, or where there is no such loop, plain. What
// is NaN then, one made of numbers that are not finite or of zeros, is as exact has it.
func special(x, y, z []float32, do func(n int, x, y, z *float32), plain func(d *desk, x, y, z []float32),
	exact func(x, y float64) float64) {
	pieces(x, y, z, func(d *desk, x, y, z []float32) {
		made := d.f[:len(x)]
		if do == nil {
			plain(d, x, y, made)
		} else {
			do(len(x), &x[0], &y[0], &made[0])
		}
		if most := Largest(made); most != most { // one of them at least
			for i, v := range made {
				if v != v {
					made[i] = float32(exact(float64(x[i]), float64(y[i])))
				}
			}
		}
		copy(z, made)
	})
}

// LogAddExp overwrites z with log(eˣ + eʸ): the larger of x and y, and log(1 + e^-|x-y|).
func LogAddExp(x, y, z []float32) {
	pieces(x, y, z, func(d *desk, x, y, z []float32) {
		l, r := d.f[:len(x)], d.g[:len(x)]
		Max(x, y, l)
		Sub(x, y, r)
		Map(Abs, r, r)
		Map(Neg, r, r)
		Exp(r, r)
		Map(Log1p, r, r)
		for i, v := range r {
			if x[i] == y[i] { // infinities have no difference
				v = math.Ln2
			}
			z[i] = l[i] + v
		}
	})
}

// Atan2 overwrites z with the angles of the points (x, y), from -π to π.
func Atan2(y, x, z []float32) {
	special(y, x, z, inner[float32]().atan2, atan2, math.Atan2)
}

func atan2(d *desk, y, x, z []float32) {
	h, w := z, d.g[:len(x)]
	Map(Abs, y, h)
	Map(Abs, x, w)
	Div(h, w, h)
	Map(Atan, h, h)
	for i, a := range h {
		side := math.Copysign(1, float64(x[i])) // without a branch, which would be guessed wrong
		z[i] = float32(math.Copysign(math.Pi/2*(1-side)+side*float64(a), float64(y[i])))
	}
}

// FloorDivide overwrites z with the largest whole numbers up to x/y.
func FloorDivide(x, y, z []float32) {
	pieces(x, y, z, func(d *desk, x, y, z []float32) {
		for i, whole := range d.divide(x, y) {
			if !exact(whole, y[i]) {
				whole = FloorDivideOf(float64(x[i]), float64(y[i]))
			}
			z[i] = float32(whole)
		}
	})
}

// Remainder overwrites z with x less y times the quotient of FloorDivide: it has the sign of y.
func Remainder(x, y, z []float32) {
	pieces(x, y, z, func(d *desk, x, y, z []float32) {
		q, made := d.divide(x, y), d.f[:len(x)]
		rests := d.b[:len(x)]
		Mul(q, rests, rests)
		Sub(d.a[:len(x)], rests, rests)
		round(rests, made)
		all := exact(Largest(q), 0) && exact(Smallest(q), 0) // of an infinite y the rest is NaN
		if least := Smallest(made); !all || least != least || anyZero(made, d.bytes[:len(x)]) {
			for i, rest := range made {
				switch {
				case !exact(q[i], y[i]):
					made[i] = float32(RemainderOf(float64(x[i]), float64(y[i])))
				case rest == 0:
					made[i] = float32(math.Copysign(0, float64(x[i])))
				}
			}
		}
		copy(z, made)
	})
}

// anyZero reports whether an element of x, of a piece, is 0. It uses room of as many bytes.
func anyZero(x []float32, room []uint8) bool {
	done := Compare(Equal, x, zeros[:len(x)], room)
	return bytes.IndexByte(room[:done], 1) >= 0 || slices.Contains(x[done:], 0)
}

var zeros [together]float32

// divide returns the quotients of x and y, rounded down. It leaves x in d.a and y in d.b.
func (d *desk) divide(x, y []float32) []float64 {
	a, b, q := d.a[:len(x)], d.b[:len(x)], d.c[:len(x)]
	widen(x, a)
	widen(y, b)
	Div(a, b, q)
	Map(Floor, q, q)
	return q
}

// exact reports whether the quotient of a number of float32 and y, rounded to float64 and then
// down, is what it should be. Below 2^24 it is, unless y is infinite: a quotient that is no whole
// number is farther from the next one than rounding goes. Its product with y is exact then, and so
// is the difference of that to the dividend.
func exact(whole float64, y float32) bool { return whole > -1<<24 && whole < 1<<24 && y-y == 0 }

// RemainderOf is the remainder of two numbers, with the sign of y.
func RemainderOf(x, y float64) float64 {
	rest := mod(x, y)
	if rest != 0 && (rest < 0) != (y < 0) {
		rest += y
	}
	return rest
}

// mod is math.Mod, and quicker where the quotient is below 2^52. That is rounded up to a whole
// number at most, so what is left of x is exact, and lacks one y if its sign is not that of x.
func mod(x, y float64) float64 {
	q := math.Trunc(x / y)
	if !(math.Abs(q) < 1<<52) || y-y != 0 {
		return math.Mod(x, y)
	}
	rest := math.FMA(-q, y, x)
	switch {
	case rest == 0:
		return math.Copysign(0, x)
	case math.Signbit(rest) != math.Signbit(x):
		return rest + math.Copysign(y, x)
	}
	return rest
}

// FloorDivideOf is the quotient that belongs to RemainderOf.
func FloorDivideOf(x, y float64) float64 {
	quotient := x / y
	if y == 0 {
		return quotient
	}
	if q := math.Floor(quotient); math.Abs(q) < 1<<52 && y-y == 0 { // as in mod
		if rest := math.FMA(-q, y, x); rest != 0 && (rest < 0) != (y < 0) {
			q--
		}
		if q == 0 {
			return math.Copysign(0, quotient)
		}
		return q
	}
	rest := math.Mod(x, y)
	q := (x - rest) / y
	if rest != 0 && (rest < 0) != (y < 0) {
		q--
	}
	if q == 0 {
		return math.Copysign(0, x/y)
	}
	return math.RoundToEven(q) // it is next to a whole number
}
