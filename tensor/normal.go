package tensor

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// Note [Parallel normal numbers] The polar method uses a random number of bits for each element, so
// a goroutine cannot know where in the sequence of bits its elements begin. The serial algorithm
// uses all points of the sequence that are inside the disc, in order. Goroutines therefore compute
// the points of equal parts of the sequence first. The numbers of points in the earlier parts then
// give the place of each part's elements. The elements are the same for any number of goroutines.

// blockPoints is the number of points in a part. It must be a multiple of drawn/2.
const blockPoints = 8 * drawn

// A pointBlock contains the points inside the unit disc of one part of a sequence of random bits.
type pointBlock struct {
	x, y, factor [blockPoints]float64
	n            int // number of points
	first        int // number of points in the earlier parts
}

var pointBlocks = sync.Pool{New: func() any { return new(pointBlock) }}

// drawNormals sets the first elements of values, of dtype dt, to normally distributed numbers
// with mean s.A and standard deviation s.B, on the given number of goroutines, and advances g,
// which must be locked. It returns the number of elements that it set, which is even. The caller
// must set the others; fewer than 2*blockPoints*workers remain.
func drawNormals[F float32 | float64](values []F, dt DType, g *Generator, s device.Sequence, workers int) (done int) {
	blocks := make([]*pointBlock, workers)
	for i := range blocks {
		blocks[i] = pointBlocks.Get().(*pointBlock)
		defer pointBlocks.Put(blocks[i])
	}
	for len(values)-done >= 2*blockPoints*workers { // all points have an element
		kernel.Divide(workers, workers, 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				blocks[i].fill(g.ahead(uint64(2 * blockPoints * i)))
			}
		})
		g.skip(uint64(2 * blockPoints * workers))
		total := 0
		for _, b := range blocks {
			b.first = total
			total += b.n
		}
		kernel.Divide(workers, workers, 1, func(lo, hi int) {
			for _, b := range blocks[lo:hi] {
				writeNormals(b, values[done+2*b.first:], dt, s)
			}
		})
		done += 2 * total
	}
	return done
}

// fill sets b to the points of the next 2*blockPoints numbers of g, which must be locked or owned
// by the caller.
func (b *pointBlock) fill(g *Generator) {
	d := discs.Get().(*disc)
	defer discs.Put(d)
	b.n = 0
	for range 2 * blockPoints / drawn {
		b.n += kernel.Points(d.draw(g, drawn), b.x[b.n:], b.y[b.n:], b.factor[b.n:])
	}
	kernel.Polar(b.factor[:b.n], b.factor[:b.n])
}

// writeNormals sets the first 2*b.n elements of values, of dtype dt, to normally distributed
// numbers with mean s.A and standard deviation s.B.
func writeNormals[F float32 | float64](b *pointBlock, values []F, dt DType, s device.Sequence) {
	convert := castFuncFor(dt, Float64)
	d := discs.Get().(*disc)
	defer discs.Put(d)
	for lo := 0; lo < b.n; lo += drawn / 2 {
		hi := min(lo+drawn/2, b.n)
		numbers := d.numbers[:2*(hi-lo)]
		kernel.Pairs(s.A, s.B, b.x[lo:hi], b.y[lo:hi], b.factor[lo:hi], numbers)
		convert(rawBytes(values[2*lo:]), 1, rawBytes(numbers), 1, len(numbers))
	}
}
