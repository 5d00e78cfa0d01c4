package datasets

import (
	"math"
	"math/rand/v2"
)

// far is the initial squared distance of a pixel that no stroke has come near.
const far = 1e9

// A digitRenderer draws one image at a time. Strokes record the distance of each pixel from the
// nearest stroke, relative to the stroke's width. Ink is computed from the distances at the end,
// so that crossings are not darker than the rest. The zero value is ready for drawDigit. Only
// one goroutine may use it at a time.
type digitRenderer struct {
	src rand.PCG
	rng *rand.Rand

	// affine map from the unit square to pixels: x' = a·x + b·y + tx, y' = c·x + d·y + ty
	a, b, c, d, tx, ty float64
	wobble             float64 // deviation of points from the model, in the unit square
	radius             float64 // half of the stroke width, in pixels
	near               [side * side]float32
	path               []point // in pixels; kept to reuse its memory
}

// drawUniform returns a uniformly distributed number from lo to hi.
func (p *digitRenderer) drawUniform(lo, hi float64) float64 { return lo + (hi-lo)*p.rng.Float64() }

// drawNormal returns a number from -3·dev to 3·dev with mean 0 and a bell-shaped distribution: the
// sum of three uniform numbers approximates a normal distribution.
func (p *digitRenderer) drawNormal(dev float64) float64 {
	return dev * 2 * (p.rng.Float64() + p.rng.Float64() + p.rng.Float64() - 1.5)
}

// drawHandwriting sets the parameters of a random handwriting for the next strokes: size, slant,
// rotation, position and stroke width.
func (p *digitRenderer) drawHandwriting() {
	turn, slant := p.drawNormal(.08), p.drawNormal(.11)
	w, h := p.drawUniform(12, 17), p.drawUniform(17.5, 20.5)
	sin, cos := math.Sincos(turn)
	// rotation · slant · scale
	p.a, p.b = cos*w, (-cos*slant-sin)*h
	p.c, p.d = sin*w, (-sin*slant+cos)*h
	p.tx = side/2 - (p.a+p.b)/2 + p.drawNormal(.6)
	p.ty = side/2 - (p.c+p.d)/2 + p.drawNormal(.6)
	p.wobble = p.drawUniform(.01, .04)
	p.radius = p.drawUniform(.95, 1.75)
}

// mapPoint maps a point of a model to pixels, with a random deviation.
func (p *digitRenderer) mapPoint(m point) point {
	x, y := m.x+p.drawNormal(p.wobble), m.y+p.drawNormal(p.wobble)
	return point{p.a*x + p.b*y + p.tx, p.c*x + p.d*y + p.ty}
}

// draw maps a stroke to pixels and records its distances in p.near. drawHandwriting must be
// called before.
func (p *digitRenderer) draw(s stroke) {
	p.path = p.path[:0]
	for _, m := range s.points {
		p.path = append(p.path, p.mapPoint(m))
	}
	width := p.radius * p.drawUniform(.9, 1.1)
	for i := range len(p.path) - 1 {
		if !s.smooth {
			p.drawSegment(p.path[i], p.path[i+1], width)
			continue
		}
		before, after := p.path[max(i-1, 0)], p.path[min(i+2, len(p.path)-1)]
		p.drawSpline(before, p.path[i], p.path[i+1], after, width)
	}
}

// drawSpline draws the segment from a to b of a Catmull-Rom spline that comes from before and
// continues to after. width is half the stroke's width in pixels.
func (p *digitRenderer) drawSpline(before, a, b, after point, width float64) {
	const pieces = 4
	from := a
	for k := 1; k <= pieces; k++ {
		t := float64(k) / pieces
		to := point{catmullRom(before.x, a.x, b.x, after.x, t), catmullRom(before.y, a.y, b.y, after.y, t)}
		p.drawSegment(from, to, width)
		from = to
	}
}

// catmullRom returns the uniform Catmull-Rom polynomial through b at t = 0 and c at t = 1.
func catmullRom(a, b, c, d, t float64) float64 {
	return b + t/2*(c-a+t*(2*a-5*b+4*c-d+t*(3*(b-c)+d-a)))
}

// drawSegment updates near for the pixels around the line a–b. near holds the squared distance
// divided by the squared width, where width is half the stroke's width in pixels.
func (p *digitRenderer) drawSegment(a, b point, width float64) {
	reach := width + 1.3 // plus the widest soft edge of develop
	x0, x1 := pixelRange(min(a.x, b.x)-reach, max(a.x, b.x)+reach)
	y0, y1 := pixelRange(min(a.y, b.y)-reach, max(a.y, b.y)+reach)
	dx, dy := float32(b.x-a.x), float32(b.y-a.y)
	ax, ay := float32(a.x), float32(a.y)
	perLength := 1 / max(dx*dx+dy*dy, 1e-6)
	perWidth := float32(1 / (width * width))
	for y := y0; y < y1; y++ {
		row := p.near[y*side : (y+1)*side]
		py := float32(y) + .5 - ay
		for x := x0; x < x1; x++ {
			px := float32(x) + .5 - ax
			t := min(max((px*dx+py*dy)*perLength, 0), 1)
			ex, ey := px-t*dx, py-t*dy
			row[x] = min(row[x], (ex*ex+ey*ey)*perWidth)
		}
	}
}

// pixelRange returns a half-open range [from, to) of all pixels with centers between lo and hi,
// clipped to the side of an image. It may include one more pixel at each end.
func pixelRange(lo, hi float64) (from, to int) {
	return min(max(int(lo), 0), side), min(max(int(hi)+1, 0), side)
}

// drawNoiseLine draws a short random line, as noise.
func (p *digitRenderer) drawNoiseLine() {
	a := point{p.drawUniform(2, side-2), p.drawUniform(2, side-2)}
	b := point{a.x + p.drawNormal(2.5), a.y + p.drawNormal(2.5)}
	p.drawSegment(a, b, p.drawUniform(.5, .9))
}

// renderInk converts the distances to grey values and writes them to img, which must have 28×28
// pixels: solid ink within the strokes, falling off over a soft edge, with some noise in the
// background.
func (p *digitRenderer) renderInk(img []uint8) {
	soft := float32(p.drawUniform(.55, 1.1) / p.radius) // half of the edge, in stroke widths
	ink := float32(p.drawUniform(225, 255))
	grain := float32(0)
	if p.rng.IntN(3) == 0 {
		grain = float32(p.drawUniform(4, 24))
	}
	for k, n := range p.near {
		v := float32(0)
		if edge := 1 + soft; n < edge*edge {
			v = ink * min(1, (edge-float32(math.Sqrt(float64(n))))/(2*soft))
		}
		if grain > 0 {
			v += grain * (float32(p.src.Uint64()>>40)/(1<<23) - 1)
		}
		img[k] = uint8(min(max(v, 0), 255))
	}
}
