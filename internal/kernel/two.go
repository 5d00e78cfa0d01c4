package kernel

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// together is the number of elements that functions of two numbers process at a time.
const together = 512

// desk holds the intermediate results of one piece of at most 512 elements. It comes from the
// pool desks, and one goroutine may use it at a time.
type desk struct {
	a, b, c [together]float64
	f, g    [together]float32
	bytes   [together]uint8
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// eachPiece calls do with pieces of x, y and z of at most 512 elements, one after the other,
// and a desk that do may overwrite. y and z must be at least as long as x.
func eachPiece(x, y, z []float32, do func(d *desk, x, y, z []float32)) {
	d := desks.Get().(*desk)
	defer desks.Put(d)
	y, z = y[:len(x)], z[:len(x)]
	for lo := 0; lo < len(x); lo += together {
		hi := min(lo+together, len(x))
		do(d, x[lo:hi], y[lo:hi], z[lo:hi])
	}
}

// toFloat64 overwrites y with x converted to float64. y must be at least as long as x.
func toFloat64(x []float32, y []float64) {
	for i := Float32ToFloat64.Do(len(x), rawBytes(y), rawBytes(x)); i < len(x); i++ {
		y[i] = float64(x[i])
	}
}

// toFloat32 overwrites y with x converted to float32. y must be at least as long as x.
func toFloat32(x []float64, y []float32) {
	for i := Float64ToFloat32.Do(len(x), rawBytes(y), rawBytes(x)); i < len(x); i++ {
		y[i] = float32(x[i])
	}
}

// rawBytes returns the memory of x, or nil if x is empty.
func rawBytes[F Float](x []F) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// Power overwrites z with x to the power of y, element by element. It computes the power of |x|
// in float64 by a logarithm and an exponential, with an error of at most one unit in the last
// place of float32. Zeros, infinities and NaN are treated like [math.Pow]. y and z must be at
// least as long as x. z may be x or y.
func Power(x, y, z []float32) {
	do := loopsFor[float32]().power
	eachPiece(x, y, z, func(d *desk, x, y, z []float32) {
		sizes := d.f[:len(x)]
		if do != nil {
			do(len(x), &x[0], &y[0], &sizes[0])
		} else {
			powerRow(d, x, y, sizes)
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

func powerRow(d *desk, x, y, sizes []float32) {
	b, e := d.a[:len(x)], d.b[:len(x)]
	toFloat64(x, b)
	toFloat64(y, e)
	Map(Abs, b, b)
	Map(Log, b, b)
	Mul(b, e, b)
	Exp(b, b)
	toFloat32(b, sizes)
}

// power returns x to the power of y. size must be |x| to the power of y.
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

// Hypot overwrites z with the square root of x²+y², element by element, like [Power]. The
// squares cannot overflow in float64. z may be x or y.
func Hypot(x, y, z []float32) {
	overwriteSpecial(x, y, z, loopsFor[float32]().hypot, hypot, math.Hypot)
}

func hypot(d *desk, x, y, z []float32) {
	sum, squares := d.a[:len(x)], d.b[:len(x)]
	toFloat64(x, sum)
	toFloat64(y, squares)
	Mul(sum, sum, sum)
	Mul(squares, squares, squares)
	Add(sum, squares, sum)
	Map(Sqrt, sum, sum)
	toFloat32(sum, z)
}

// overwriteSpecial overwrites z with the results of do, or of plain if do is nil. It replaces
// NaN, which these functions return for non-finite operands or for zeros, by the results of
// exact. y and z must be at least as long as x. z may be x or y.
func overwriteSpecial(x, y, z []float32, do func(n int, x, y, z *float32), plain func(d *desk, x, y, z []float32),
	exact func(x, y float64) float64) {
	eachPiece(x, y, z, func(d *desk, x, y, z []float32) {
		made := d.f[:len(x)]
		if do == nil {
			plain(d, x, y, made)
		} else {
			do(len(x), &x[0], &y[0], &made[0])
		}
		if most := Largest(made); most != most { // at least one is NaN
			for i, v := range made {
				if v != v {
					made[i] = float32(exact(float64(x[i]), float64(y[i])))
				}
			}
		}
		copy(z, made)
	})
}

// LogAddExp overwrites z with log(eˣ + eʸ), computed as max(x, y) + log(1 + e^-|x-y|), element
// by element. y and z must be at least as long as x. z may be x or y.
func LogAddExp(x, y, z []float32) {
	eachPiece(x, y, z, func(d *desk, x, y, z []float32) {
		l, r := d.f[:len(x)], d.g[:len(x)]
		Max(x, y, l)
		Sub(x, y, r)
		Map(Abs, r, r)
		Map(Neg, r, r)
		Exp(r, r)
		Map(Log1p, r, r)
		for i, v := range r {
			if x[i] == y[i] { // the difference of equal infinities is NaN
				v = math.Ln2
			}
			z[i] = l[i] + v
		}
	})
}

// Atan2 overwrites z with the angles of the points (x, y), from -π to π, element by element. x
// and z must be at least as long as y. z may be x or y.
func Atan2(y, x, z []float32) {
	overwriteSpecial(y, x, z, loopsFor[float32]().atan2, atan2, math.Atan2)
}

func atan2(d *desk, y, x, z []float32) {
	h, w := z, d.g[:len(x)]
	Map(Abs, y, h)
	Map(Abs, x, w)
	Div(h, w, h)
	Map(Atan, h, h)
	for i, a := range h {
		side := math.Copysign(1, float64(x[i])) // without a branch, which would be unpredictable
		z[i] = float32(math.Copysign(math.Pi/2*(1-side)+side*float64(a), float64(y[i])))
	}
}

// FloorDivide overwrites z with x/y rounded down, element by element; see [FloorDivideOf]. y
// and z must be at least as long as x. z may be x or y.
func FloorDivide(x, y, z []float32) {
	eachPiece(x, y, z, func(d *desk, x, y, z []float32) {
		for i, whole := range d.divide(x, y) {
			if !isExact(whole, y[i]) {
				whole = FloorDivideOf(float64(x[i]), float64(y[i]))
			}
			z[i] = float32(whole)
		}
	})
}

// Remainder overwrites z with x - y·floor(x/y), element by element. It has the sign of y; see
// [RemainderOf]. y and z must be at least as long as x. z may be x or y.
func Remainder(x, y, z []float32) {
	eachPiece(x, y, z, func(d *desk, x, y, z []float32) {
		q, made := d.divide(x, y), d.f[:len(x)]
		rests := d.b[:len(x)]
		Mul(q, rests, rests)
		Sub(d.a[:len(x)], rests, rests)
		toFloat32(rests, made)
		all := isExact(Largest(q), 0) && isExact(Smallest(q), 0) // for an infinite y the remainder is NaN
		if least := Smallest(made); !all || least != least || containsZero(made, d.bytes[:len(x)]) {
			for i, rest := range made {
				switch {
				case !isExact(q[i], y[i]):
					made[i] = float32(RemainderOf(float64(x[i]), float64(y[i])))
				case rest == 0:
					made[i] = float32(math.Copysign(0, float64(x[i])))
				}
			}
		}
		copy(z, made)
	})
}

// containsZero reports whether x, at most 512 elements, contains 0. It overwrites room, which
// must be at least as long as x.
func containsZero(x []float32, room []uint8) bool {
	done := Compare(Equal, x, zeros[:len(x)], room)
	return bytes.IndexByte(room[:done], 1) >= 0 || slices.Contains(x[done:], 0)
}

var zeros [together]float32

// divide returns the quotients of x and y, rounded down, in d.c. It leaves x in d.a and y in
// d.b. y must be at least as long as x, which has at most 512 elements.
func (d *desk) divide(x, y []float32) []float64 {
	a, b, q := d.a[:len(x)], d.b[:len(x)], d.c[:len(x)]
	toFloat64(x, a)
	toFloat64(y, b)
	Div(a, b, q)
	Map(Floor, q, q)
	return q
}

// isExact reports whether the quotient of a float32 number and y, rounded to float64 and then down,
// is correct. This holds below 2^24 if y is finite: a quotient that is not an integer is farther
// from the next integer than the rounding error. Its product with y, and the difference to the
// dividend, are then exact too.
func isExact(whole float64, y float32) bool { return whole > -1<<24 && whole < 1<<24 && y-y == 0 }

// RemainderOf returns the remainder of x and y, with the sign of y. It is NaN if y is 0 or x
// infinite.
func RemainderOf(x, y float64) float64 {
	rest := fastMod(x, y)
	if rest != 0 && (rest < 0) != (y < 0) {
		rest += y
	}
	return rest
}

// fastMod is [math.Mod], but faster if the quotient is below 2^52. Such a quotient is rounded up to
// at most the next integer, so the remainder is exact. It must be corrected by y if its sign
// differs from x.
func fastMod(x, y float64) float64 {
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

// FloorDivideOf returns the quotient x/y rounded down, consistent with [RemainderOf]. If y is
// 0, it returns x/y: ±∞ or NaN.
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
	return math.RoundToEven(q) // q is close to an integer
}
