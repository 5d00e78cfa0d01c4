package image

import (
	"math"
	"math/rand/v2"
)

// applyAffine transforms the image. The pixel in column x and row y becomes the source pixel at
// (m[0]·x + m[1]·y + m[2], m[3]·x + m[4]·y + m[5]), measured at pixel centers, or fill if that is
// outside. filter must be [Nearest] or [Bilinear].
func (im *Image) applyAffine(m [6]float64, filter Filter, fill uint8) {
	h, w, n := im.H, im.W, im.H*im.W
	before := im.setSize(im.C, h, w)
	if filter == Nearest {
		im.applyNearestAffine(before, m, fill)
		return
	}
	for y := range h {
		for x := range w {
			fx, fy := float64(x)+0.5, float64(y)+0.5
			u, v := m[0]*fx+m[1]*fy+m[2], m[3]*fx+m[4]*fy+m[5]
			inside := u >= 0 && v >= 0 && u < float64(w) && v < float64(h)
			for c := range im.C {
				p := fill
				if inside {
					p = interpolateBilinear(before[c*n:][:n], w, h, u-0.5, v-0.5)
				}
				im.Pix[c*n+y*w+x] = p
			}
		}
	}
}

// applyNearestAffine is [Image.applyAffine] with the nearest pixels. before holds the previous
// pixels, of the same size, and the result goes to im.Pix. Coordinates are accumulated with
// 16-bit fractions, as in Pillow.
func (im *Image) applyNearestAffine(before []uint8, m [6]float64, fill uint8) {
	fixed := func(v float64) int64 { return int64(math.Floor(v*65536 + 0.5)) }
	u0, v0 := fixed(m[2]+m[0]*0.5+m[1]*0.5), fixed(m[5]+m[3]*0.5+m[4]*0.5)
	n := im.H * im.W
	for y := range im.H {
		u, v := u0, v0
		for x := range im.W {
			column, row := int(u>>16), int(v>>16)
			inside := column >= 0 && row >= 0 && column < im.W && row < im.H
			for c := range im.C {
				p := fill
				if inside {
					p = before[c*n+row*im.W+column]
				}
				im.Pix[c*n+y*im.W+x] = p
			}
			u, v = u+fixed(m[0]), v+fixed(m[3])
		}
		u0, v0 = u0+fixed(m[1]), v0+fixed(m[4])
	}
}

// interpolateBilinear interpolates the plane p of h rows of w pixels bilinearly at column u and
// row v. Whole numbers are the centers of pixels. Positions outside of the plane take the
// nearest pixel, but v must be less than h.
func interpolateBilinear(p []uint8, w, h int, u, v float64) uint8 {
	x, y := math.Floor(u), math.Floor(v)
	dx, dy := u-x, v-y
	x0, x1 := max(0, min(w-1, int(x))), max(0, min(w-1, int(x)+1))
	line := func(y int) float64 {
		a, b := float64(p[y*w+x0]), float64(p[y*w+x1])
		return a + (b-a)*dx
	}
	above := line(max(0, int(y)))
	below := above
	if y1 := int(y) + 1; y1 >= 0 && y1 < h {
		below = line(y1)
	}
	return uint8(above + (below-above)*dy)
}

// rotationMatrix returns the matrix for [Image.applyAffine] that rotates h×w pixels clockwise
// about their center by degrees, scales and shears them by degrees, and then translates them by
// dx and dy pixels.
func rotationMatrix(h, w int, degrees, dx, dy, scale, shearX, shearY float64) [6]float64 {
	rot, sx, sy := degrees*math.Pi/180, shearX*math.Pi/180, shearY*math.Pi/180
	a := math.Cos(rot-sy) / math.Cos(sy)
	b := -math.Cos(rot-sy)*math.Tan(sx)/math.Cos(sy) - math.Sin(rot)
	c := math.Sin(rot-sy) / math.Cos(sy)
	d := -math.Sin(rot-sy)*math.Tan(sx)/math.Cos(sy) + math.Cos(rot)
	m := [6]float64{d / scale, -b / scale, 0, -c / scale, a / scale, 0}
	cx, cy := float64(w)/2, float64(h)/2
	m[2] = m[0]*(-cx-dx) + m[1]*(-cy-dy) + cx
	m[5] = m[3]*(-cx-dx) + m[4]*(-cy-dy) + cy
	return m
}

// RandomAffine rotates, translates, scales and shears an image by random amounts. Zero fields
// change nothing.
type RandomAffine struct {
	Degrees   float64    // maximum angle, in either direction
	Translate [2]float64 // maximum shift, as fractions of the height and the width
	Scale     [2]float64 // minimum and maximum factor; zeros: 1
	Shear     [2]float64 // maximum angles along rows and columns, in degrees
	Filter    Filter     // Nearest or Bilinear
	Fill      uint8      // value of pixels from outside of the image
}

// Apply transforms im in place by amounts that it draws from r. It returns an error that wraps
// [ErrSize] if im has no pixels, for example after [Normalize].
func (s RandomAffine) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	either := func(most float64) float64 { return drawUniform(r, -most, most) }
	degrees := either(s.Degrees)
	dy, dx := math.RoundToEven(either(s.Translate[0]*float64(im.H))),
		math.RoundToEven(either(s.Translate[1]*float64(im.W)))
	scale := 1.0
	if s.Scale != [2]float64{} {
		scale = drawUniform(r, s.Scale[0], s.Scale[1])
	}
	im.applyAffine(rotationMatrix(im.H, im.W, degrees, dx, dy, scale, either(s.Shear[0]), either(s.Shear[1])),
		s.Filter, s.Fill)
	return nil
}
