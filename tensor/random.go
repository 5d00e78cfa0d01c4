package tensor

import (
	"math"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// Rand returns uniformly distributed numbers in [0, 1). dt must be a floating-point dtype. If g is
// nil, it uses the default generator.
func Rand(dt DType, g *Generator, shape ...int) *Tensor {
	return Empty(dt, shape...).FillUniform(g, 0, 1)
}

// RandN returns normally distributed numbers with mean 0 and standard deviation 1, like
// torch.randn. dt must be a floating-point dtype. If g is nil, it uses the default generator.
func RandN(dt DType, g *Generator, shape ...int) *Tensor {
	return Empty(dt, shape...).FillNormal(g, 0, 1)
}

// RandInt returns uniformly distributed integers in [lo, hi), as Int64. hi must be greater than lo.
// If g is nil, it uses the default generator.
func RandInt(g *Generator, lo, hi int, shape ...int) *Tensor {
	return New(Int64, shape...).fillIntegers(g, lo, hi)
}

func (t *Tensor) fillIntegers(g *Generator, lo, hi int) *Tensor {
	if hi <= lo {
		misuse(ErrArgument, "RandInt: got the range [%d, %d), want at least one integer in it", lo, hi)
	}
	count := uint64(hi) - uint64(lo)
	s := device.Sequence{Kind: device.RandomInteger, From: int64(lo), Count: count}
	backendOf(t).generate(t, g, s, func() {
		values := Data[int64](t)
		g.withLock(func(g *Generator) {
			for i := range values {
				values[i] = int64(lo) + int64(g.uniformBelow(count))
			}
		})
	})
	return t
}

// RandPerm returns a random permutation of the numbers 0 to n-1, as Int64. If g is nil, it uses the
// default generator.
func RandPerm(g *Generator, n int) *Tensor {
	t := Empty(Int64, n)
	p := bytesAs[int64](t.contiguousBytes())
	for i := range p {
		p[i] = int64(i)
	}
	d := discs.Get().(*disc)
	defer discs.Put(d)
	g.withLock(func(g *Generator) { // like Shuffle, but it locks g only once
		var bits []uint64
		for i := n - 1; i > 0; {
			if len(bits) == 0 {
				bits = d.draw(g, min(i, drawn)) // every drawn number is used
			}
			j, ok := scaleRandom(bits[0], uint64(i+1))
			if bits = bits[1:]; ok {
				p[i], p[j] = p[j], p[i]
				i--
			}
		}
	})
	return t
}

// FillUniform sets the elements to uniformly distributed numbers in [lo, hi). lo must not exceed
// hi; both and their difference must be in the range of t's dtype. If g is nil, it uses the default
// generator.
func (t *Tensor) FillUniform(g *Generator, lo, hi float64) *Tensor {
	if !t.dtype.isFloat() {
		misuse(ErrOperand, "Uniform: got a tensor of %v, want floats", t.dtype)
	}
	if most := t.dtype.maxFinite(); !(lo >= -most && hi <= most && lo <= hi && hi-lo <= most) {
		misuse(ErrArgument, "Uniform: got bounds %v and %v, want an ascending range of %v", lo, hi, t.dtype)
	}
	s := device.Sequence{Kind: device.RandomUniform, A: lo, B: hi, Bits: t.dtype.fractionBits()}
	return t.fillRandom(g, s, func(d *disc, g *Generator, s device.Sequence, out []float64) {
		kernel.Fractions(d.draw(g, len(out)), s.Bits, s.A, s.B-s.A, out)
	})
}

// maxFinite returns the largest finite value of a floating-point dtype.
func (d DType) maxFinite() float64 {
	switch d {
	case Float16:
		return 65504
	case BFloat16:
		return 0xffp120
	case Float32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// fractionBits returns the number of random bits in a number in [0, 1), chosen so that it does not
// round up to 1.
func (d DType) fractionBits() int {
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

// FillNormal sets the elements to normally distributed numbers. std must not be negative. If g is
// nil, it uses the default generator.
func (t *Tensor) FillNormal(g *Generator, mean, std float64) *Tensor {
	if !t.dtype.isFloat() {
		misuse(ErrOperand, "Normal: got a tensor of %v, want floats", t.dtype)
	}
	if !(std >= 0) {
		misuse(ErrArgument, "Normal: got standard deviation %v, want at least 0", std)
	}
	s := device.Sequence{Kind: device.RandomNormal, A: mean, B: std}
	return t.fillRandom(g, s, func(d *disc, g *Generator, s device.Sequence, out []float64) {
		d.fillNormal(g, out, s.A, s.B)
	})
}

// A disc contains buffers for random bits, points of the unit disc, the factors of normal, and
// results.
type disc struct {
	bits         [drawn]uint64
	x, y, factor [drawn / 2]float64
	numbers      [drawn]float64
}

// draw returns the next n numbers of g, which must be locked or owned by the caller. n must not
// exceed drawn. The result is valid until the next call.
func (d *disc) draw(g *Generator, n int) []uint64 {
	g.fill(d.bits[:n])
	return d.bits[:n]
}

// drawn is the number of values drawn at a time. It must be even, so that only the last piece may
// leave one of a pair unused.
const drawn = 1024

var discs = sync.Pool{New: func() any { return new(disc) }}

// fillNormal sets the elements of out to normally distributed numbers from g, which must be
// locked or owned by the caller. len(out) must not exceed drawn. It uses Marsaglia's polar
// method: each point in the unit disc gives two numbers. It draws as many points as needed, and
// then as many as were outside of the disc.
func (d *disc) fillNormal(g *Generator, out []float64, mean, std float64) {
	pairs := (len(out) + 1) / 2
	for i := 0; i < pairs; {
		i += kernel.Points(d.draw(g, 2*(pairs-i)), d.x[i:], d.y[i:], d.factor[i:])
	}
	factors := d.factor[:pairs]
	kernel.Polar(factors, factors)
	kernel.Pairs(mean, std, d.x[:pairs], d.y[:pairs], factors, out)
}

// FillBernoulli sets each element to 1 with probability p, and to 0 otherwise. p must be in [0, 1].
// If g is nil, it uses the default generator.
func (t *Tensor) FillBernoulli(g *Generator, p float64) *Tensor {
	if !(p >= 0 && p <= 1) {
		misuse(ErrArgument, "Bernoulli: got probability %v, want 0 to 1", p)
	}
	return t.fillRandom(g, device.Sequence{Kind: device.RandomBernoulli, A: p},
		func(d *disc, g *Generator, s device.Sequence, out []float64) {
			for i, bits := range d.draw(g, len(out)) {
				out[i] = float64(boolToUint8(unitFloat(bits) < s.A))
			}
		})
}

// fillRandom sets the elements to random numbers and returns t. On the host, f computes them in
// pieces; a device computes them according to s. f must draw one number for each element, unless
// s.Kind is device.RandomNormal.
func (t *Tensor) fillRandom(g *Generator, s device.Sequence, f drawFunc) *Tensor {
	backendOf(t).generate(t, g, s, func() { t.draw(g, s, f) })
	return t
}

// A drawFunc sets the elements of out to random numbers of s from g, which is locked or has no
// other user. len(out) must not exceed drawn. It must not capture variables, because they would
// be allocated.
type drawFunc = func(d *disc, g *Generator, s device.Sequence, out []float64)

// draw sets the elements, in index order, to the numbers that f computes, and returns t. It locks
// g, or the default generator if g is nil.
func (t *Tensor) draw(g *Generator, s device.Sequence, f drawFunc) *Tensor {
	switch {
	case t.dtype == Float32 && t.IsContiguous():
		return drawInto[float32](t, g, s, f)
	case t.dtype == Float64 && t.IsContiguous():
		return drawInto[float64](t, g, s, f)
	}
	numbers := drawInto[float64](Empty(Float64, t.Shape()...), g, s, f)
	defer numbers.release()
	return t.CopyFrom(numbers)
}

// drawInto is draw for contiguous tensors with elements of type F. Goroutines compute parts of a
// large one.
func drawInto[F float32 | float64](t *Tensor, g *Generator, s device.Sequence, f drawFunc) *Tensor {
	values := Data[F](t)
	g.withLock(func(g *Generator) {
		const cost = 32 // operations of an element
		rest := values
		if workers := kernel.Workers(len(values)/drawn, len(values)*cost); workers > 1 {
			if s.Kind == device.RandomNormal {
				rest = rest[drawNormals(values, t.dtype, g, s, workers):]
			} else {
				kernel.Divide(workers, len(values), drawn, func(lo, hi int) {
					drawPieces(values[lo:hi], t.dtype, g.ahead(uint64(lo)), s, f)
				})
				g.skip(uint64(len(values)))
				rest = nil
			}
		}
		drawPieces(rest, t.dtype, g, s, f)
	})
	runtime.KeepAlive(t)
	return t.Touch()
}

// drawPieces sets values, of dtype dt, to the numbers that f computes in pieces. g must be locked
// or owned by the caller.
func drawPieces[F float32 | float64](values []F, dt DType, g *Generator, s device.Sequence, f drawFunc) {
	convert := castFuncFor(dt, Float64)
	d := discs.Get().(*disc)
	defer discs.Put(d)
	for at := 0; at < len(values); at += drawn {
		numbers := d.numbers[:min(drawn, len(values)-at)]
		f(d, g, s, numbers)
		convert(rawBytes(values[at:]), 1, rawBytes(numbers), 1, len(numbers))
	}
}

func (g *Generator) generatorOrDefault() *Generator {
	if g == nil {
		return defaultGenerator
	}
	return g
}

// withLock calls f with g locked, or with the default generator locked if g is nil. f must not
// call exported methods of the generator, because they lock it.
func (g *Generator) withLock(f func(g *Generator)) {
	g = g.generatorOrDefault()
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g)
}
