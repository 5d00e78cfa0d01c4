package tensor

import (
	"math"
	"runtime"

	"github.com/shoal-mp/shoal/internal/device"
)

// Rand returns numbers of [0, 1), uniformly distributed, in a dtype of floats. They come from g, or
// from the default generator if g is nil.
func Rand(dt DType, g *Generator, shape ...int) *Tensor { return Empty(dt, shape...).Uniform(g, 0, 1) }

// RandN returns numbers of the normal distribution with mean 0 and standard deviation 1, in a dtype
// of floats: torch.randn. They come from g, or from the default generator if g is nil.
func RandN(dt DType, g *Generator, shape ...int) *Tensor { return Empty(dt, shape...).Normal(g, 0, 1) }

// RandInt returns integers of [lo, hi), as Int64, equally likely. They come from g, or from the
// default generator if g is nil.
func RandInt(g *Generator, lo, hi int, shape ...int) *Tensor {
	return New(Int64, shape...).integers(g, lo, hi)
}

func (t *Tensor) integers(g *Generator, lo, hi int) *Tensor {
	if hi <= lo {
		misuse("RandInt from %d to %d: no integer is between", lo, hi)
	}
	count := uint64(hi) - uint64(lo)
	s := device.Sequence{Kind: device.RandomInteger, From: int64(lo), Count: count}
	backendOf(t).generate(t, g, s, func() {
		values := Data[int64](t)
		g.locked(func(g *Generator) {
			for i := range values {
				values[i] = int64(lo) + int64(g.below(count))
			}
		})
	})
	return t
}

// RandPerm returns the numbers 0 to n-1 in random order, as Int64. The order comes from g, or from
// the default generator if g is nil.
func RandPerm(g *Generator, n int) *Tensor {
	p := make([]int64, n)
	for i := range p {
		p[i] = int64(i)
	}
	g.orDefault().Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return FromSlice(p, n)
}

// Uniform sets the elements to numbers of [lo, hi).
func (t *Tensor) Uniform(g *Generator, lo, hi float64) *Tensor {
	if !t.dtype.isFloat() {
		misuse("Uniform for a tensor of %v: want floats", t.dtype)
	}
	width := hi - lo
	fraction := t.dtype.fraction()
	s := device.Sequence{Kind: device.RandomUniform, A: lo, B: hi, Bits: fraction}
	return t.random(g, s, func(g *Generator) float64 {
		return lo + float64(width*float64(g.next()>>(64-fraction)))/float64(uint64(1)<<fraction)
	})
}

// fraction returns how many random bits a number of [0, 1) has: so many that it does not round up
// to 1.
func (d DType) fraction() int {
	switch d {
	case Float16:
		return 11
	case BFloat16:
		return 8
	case Float32:
		return 24
	}
	return 53
}

// Normal sets the elements to numbers of the normal distribution.
func (t *Tensor) Normal(g *Generator, mean, std float64) *Tensor {
	if !t.dtype.isFloat() {
		misuse("Normal for a tensor of %v: want floats", t.dtype)
	}
	var spare float64
	var has bool
	s := device.Sequence{Kind: device.RandomNormal, A: mean, B: std}
	return t.random(g, s, func(g *Generator) float64 {
		z := spare
		if !has {
			z, spare = pair(g)
		}
		has = !has
		return mean + float64(std*z)
	})
}

// pair returns two independent numbers of the normal distribution by Marsaglia's polar method. Its
// steps, the logarithm included, are rounded one by one (a conversion to float64 keeps the compiler
// from fusing a product with a sum), so that all machines make the same numbers.
func pair(g *Generator) (x, y float64) {
	for {
		x, y = 2*unit(g.next())-1, 2*unit(g.next())-1
		if s := float64(x*x) + float64(y*y); s > 0 && s < 1 {
			f := math.Sqrt(-2 * logarithm(s) / s)
			return x * f, y * f
		}
	}
}

// logarithm returns the natural logarithm of a positive number, by the series of atanh((m-1)/(m+1))
// for a mantissa m near 1. Its error is some units in the last place.
func logarithm(v float64) float64 {
	m, e := math.Frexp(v)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	square := float64(s * s)
	sum := 0.0
	for _, c := range oddParts {
		sum = float64(sum*square) + c
	}
	return float64(2*s*sum) + float64(float64(e)*math.Ln2)
}

// oddParts are 1/25, 1/23 and so on to 1.
var oddParts = [...]float64{
	1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1,
}

// Bernoulli sets each element to 1 with probability p, and to 0 otherwise.
func (t *Tensor) Bernoulli(g *Generator, p float64) *Tensor {
	if !(p >= 0 && p <= 1) {
		misuse("Bernoulli with probability %v", p)
	}
	return t.random(g, device.Sequence{Kind: device.RandomBernoulli, A: p},
		func(g *Generator) float64 { return float64(number(unit(g.next()) < p)) })
}

// random sets the elements to numbers that f makes on the host, and a device by s.
func (t *Tensor) random(g *Generator, s device.Sequence, f func(g *Generator) float64) *Tensor {
	backendOf(t).generate(t, g, s, func() { t.draw(g, f) })
	return t
}

// draw sets the elements, in the order of their indices, to what f makes.
func (t *Tensor) draw(g *Generator, f func(g *Generator) float64) *Tensor {
	switch {
	case t.dtype == Float32 && t.IsContiguous():
		return drawInto[float32](t, g, f)
	case t.dtype == Float64 && t.IsContiguous():
		return drawInto[float64](t, g, f)
	}
	return t.CopyFrom(drawInto[float64](Empty(Float64, t.Shape()...), g, f))
}

func drawInto[F float32 | float64](t *Tensor, g *Generator, f func(g *Generator) float64) *Tensor {
	values := Data[F](t)
	g.locked(func(g *Generator) {
		for i := range values {
			values[i] = F(f(g))
		}
	})
	runtime.KeepAlive(t)
	return t.Touch()
}

func (g *Generator) orDefault() *Generator {
	if g == nil {
		return defaultGenerator
	}
	return g
}

// locked runs f, which draws by next and below, as the generator's only user.
func (g *Generator) locked(f func(g *Generator)) {
	g = g.orDefault()
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g)
}
