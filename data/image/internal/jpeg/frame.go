package jpeg

import (
	"encoding/binary"
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// readFrame reads an SOF segment: the dimensions and components of the image. It calls place to
// allocate the image. The error wraps [pixel.ErrCorrupt], [pixel.ErrUnsupported] or
// [pixel.ErrTruncated], or is the error of place or Scale.
func (d *Decoder) readFrame(body []byte, place pixel.Place) error {
	switch {
	case d.planes != 0:
		return fmt.Errorf("%w: a second frame", pixel.ErrUnsupported)
	case len(body) < 6:
		return pixel.ErrCorrupt
	case body[0] != 8:
		return fmt.Errorf("%w: %d bits to a pixel", pixel.ErrUnsupported, body[0])
	}
	d.h, d.w = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	n := int(body[5])
	switch {
	case n != 1 && n != 3 && n != 4:
		return fmt.Errorf("%w: %d components", pixel.ErrUnsupported, n)
	case len(body) < 6+3*n:
		return pixel.ErrCorrupt
	case d.w == 0:
		return fmt.Errorf("%w: no pixels", pixel.ErrCorrupt)
	case d.h == 0:
		return fmt.Errorf("%w: the height comes after the pixels", pixel.ErrUnsupported)
	}
	if err := d.readSampling(body[6:6+3*n], n); err != nil {
		return err
	}
	d.planes = n
	return d.allocateComponents(place)
}

// readSampling reads the sampling factors of n components, three bytes each, into d.components.
// The error wraps [pixel.ErrCorrupt].
func (d *Decoder) readSampling(body []byte, n int) error {
	d.maxH, d.maxV = 1, 1
	for i := range n {
		c, s := &d.components[i], body[3*i:]
		*c = component{id: s[0], h: int(s[1] >> 4), v: int(s[1] & 15), table: s[2], plane: c.plane[:0],
			blocks: c.blocks[:0]}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.table > 3 {
			return fmt.Errorf("%w: component %d", pixel.ErrCorrupt, i)
		}
		if n == 1 {
			c.h, c.v = 1, 1 // the factors of a single component have no meaning
		}
		for j := range i {
			if d.components[j].id == c.id {
				return fmt.Errorf("%w: two components %d", pixel.ErrCorrupt, c.id)
			}
		}
		d.maxH, d.maxV = max(d.maxH, c.h), max(d.maxV, c.v)
	}
	return nil
}

// allocateComponents allocates the components, and calls place to allocate the image. Errors are
// as with readFrame.
func (d *Decoder) allocateComponents(place pixel.Place) error {
	mcusX, mcusY := ceilDiv(d.w, 8*d.maxH), ceilDiv(d.h, 8*d.maxV)
	fullW, fullH := d.w, d.h
	if err := d.applyScale(); err != nil {
		return err
	}
	blocks := 0
	for i := range d.planes {
		c := &d.components[i]
		if d.maxH%c.h != 0 || d.maxV%c.v != 0 {
			return fmt.Errorf("%w: component %d is %d×%d of %d×%d", pixel.ErrUnsupported, i, c.h, c.v, d.maxH, d.maxV)
		}
		c.size = d.size
		for c.size < 8 && d.maxH*d.size%(2*c.h*c.size) == 0 && d.maxV*d.size%(2*c.v*c.size) == 0 {
			c.size *= 2 // larger blocks instead of upsampling
		}
		c.w, c.hgt = ceilDiv(fullW*c.h*c.size, 8*d.maxH), ceilDiv(fullH*c.v*c.size, 8*d.maxV)
		c.coded = [2]int{ceilDiv(fullW*c.h, 8*d.maxH), ceilDiv(fullH*c.v, 8*d.maxV)}
		c.across, c.down = mcusX*c.h, mcusY*c.v
		blocks += c.coded[0] * c.coded[1]
	}
	if blocks > 8*len(d.data) { // a block has at least one bit
		return fmt.Errorf("%w: it cannot hold %d×%d pixels", pixel.ErrTruncated, fullW, fullH)
	}
	d.setWindow()
	var err error
	if d.dst, err = place(d.channels, d.h, d.w); err != nil {
		return err
	}
	for i := range d.planes {
		c := &d.components[i]
		c.plane = resizeSlice(c.plane, c.size*c.size*c.across*c.down)
		if d.progressive {
			c.blocks = resizeSlice(c.blocks, c.across*c.down)
			clear(c.blocks)
		}
	}
	return nil
}

// windowMargin is the number of pixels of a component around the window that upsampling needs,
// or that it computes otherwise at the edge of a row.
const windowMargin = 2

// setWindow sets d.window, the whole image by default, and the blocks of each component that it
// needs.
func (d *Decoder) setWindow() {
	d.window = Window{0, 0, d.h, d.w}
	if d.Window != nil {
		d.window = d.Window(d.h, d.w)
	}
	for i := range d.planes {
		c := &d.components[i]
		y, x := spanOf(d.window.Y, d.window.H, d.maxV*d.size/(c.v*c.size), c.hgt),
			spanOf(d.window.X, d.window.W, d.maxH*d.size/(c.h*c.size), c.w)
		c.begin = [2]int{y[0] / c.size, x[0] / c.size}
		c.end = [2]int{ceilDiv(y[1], c.size), ceilDiv(x[1], c.size)}
	}
}

// spanOf returns the first of a component's pixels that n pixels of the image from at on need,
// and the one after the last. times is the subsampling factor, and size the number of pixels
// that there are.
func spanOf(at, n, times, size int) [2]int {
	return [2]int{max(0, at/times-windowMargin), min(size, ceilDiv(at+n, times)+windowMargin)}
}

// applyScale applies the reduction factor that Scale returns to the size of the image and of its
// blocks. It returns the error of Scale.
func (d *Decoder) applyScale() error {
	d.size = 8
	if d.Scale == nil {
		return nil
	}
	times, err := d.Scale(d.h, d.w)
	if err != nil {
		return err
	}
	d.size /= times
	d.w, d.h = ceilDiv(d.w, times), ceilDiv(d.h, times)
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// resizeSlice returns a slice of n elements with undefined values, in the memory of s if it is
// large enough.
func resizeSlice[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
