package jpeg

import (
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// writeImage converts the components to the pixels of the window. The error wraps
// [pixel.ErrCorrupt] if there is no frame, or [pixel.ErrTruncated] if scans are missing.
func (d *Decoder) writeImage() error {
	if d.planes == 0 {
		return fmt.Errorf("%w: there is no image in it", pixel.ErrCorrupt)
	}
	for i := range d.planes {
		c := &d.components[i]
		if !c.seen {
			return fmt.Errorf("%w: component %d is missing", pixel.ErrTruncated, c.id)
		}
		if d.progressive {
			if err := c.checkComplete(); err != nil {
				return err
			}
			for at := range c.blocks {
				d.draw(c, at, &c.blocks[at], false)
			}
		}
	}
	for y := range d.window.H {
		d.writeRow(d.window.Y + y)
	}
	return nil
}

// checkComplete returns an error that wraps [pixel.ErrTruncated] if scans of a progressive image
// are missing. libjpeg would decode the existing scans and smooth the unknown coefficients, which
// is a partial image.
func (c *component) checkComplete() error {
	for k, bits := range c.bits {
		if bits != 1 {
			return fmt.Errorf("%w: scans are missing: coefficient %d of component %d is not known to its last bit",
				pixel.ErrTruncated, k, c.id)
		}
	}
	return nil
}

// writeRow writes the columns of the window in row y of the image.
func (d *Decoder) writeRow(y int) {
	var in [4][]uint8
	for i := range d.planes {
		in[i] = d.upsampledRow(i, y)
	}
	if d.planes == 1 {
		for c := range d.channels {
			copy(d.planeRow(c, y), in[0])
		}
		return
	}
	r, g, b := d.colorRows(y)
	if d.isYCC() {
		pixel.RGB(r, g, b, in[0], in[1], in[2])
	} else {
		copy(r, in[0])
		copy(g, in[1])
		copy(b, in[2])
	}
	if d.planes == 4 {
		d.convertCMYK(r, g, b, in[3])
	}
	if d.channels == 1 {
		pixel.Gray(d.planeRow(0, y), r, g, b)
	}
}

// planeRow returns the window's columns of row y of plane c of the image.
func (d *Decoder) planeRow(c, y int) []uint8 {
	return d.dst[(c*d.h+y)*d.w+d.window.X:][:d.window.W]
}

// colorRows returns the rows that receive the colors of row y: rows of the image, or buffers if
// the image is grey. The rows have the columns of the window.
func (d *Decoder) colorRows(y int) (r, g, b []uint8) {
	if d.channels == 3 {
		return d.planeRow(0, y), d.planeRow(1, y), d.planeRow(2, y)
	}
	n := d.window.W
	d.aside = resizeSlice(d.aside, 3*n)
	return d.aside[:n], d.aside[n:][:n], d.aside[2*n:][:n]
}

// isYCC reports whether the first three components are luma and chroma.
func (d *Decoder) isYCC() bool {
	switch {
	case d.planes == 4:
		return d.adobe == 2
	case d.adobe >= 0:
		return d.adobe != 0
	default:
		return d.jfif || d.components[0].id != 'R' || d.components[1].id != 'G' || d.components[2].id != 'B'
	}
}

// convertCMYK converts a row of CMYK to RGB in place, as Pillow does. r, g and b hold the first
// three inks. Files store inverted inks. For YCCK the color conversion has inverted them again.
func (d *Decoder) convertCMYK(r, g, b, k []uint8) {
	for _, plane := range [][]uint8{r, g, b} {
		for i, v := range plane {
			if d.adobe == 2 {
				v = 255 - v
			}
			plane[i] = inkToColor(v, k[i])
		}
	}
}

// inkToColor returns a color from an inverted ink and inverted black.
func inkToColor(ink, black uint8) uint8 {
	t := int(255-ink)*int(black) + 128
	return uint8(max(0, int(black)-(t>>8+t)>>8))
}

// upsampledRow returns the window's columns of row y of component i, upsampled to the size of
// the image. The row must not be modified, and the next call for the component may overwrite it.
func (d *Decoder) upsampledRow(i, y int) []uint8 {
	c := &d.components[i]
	across, down := d.maxH*d.size/(c.h*c.size), d.maxV*d.size/(c.v*c.size)
	if across == 1 && down == 1 {
		return c.planeRow(y)[d.window.X:][:d.window.W]
	}
	span := spanOf(d.window.X, d.window.W, across, c.w)
	d.rows[i] = resizeSlice(d.rows[i], 4*c.w)
	buf := d.rows[i]
	near := c.planeRow(y / down)[span[0]:span[1]]
	far := c.planeRow(max(0, min(c.hgt-1, y/down+2*(y%down)-1)))[span[0]:span[1]]
	first := d.window.X - span[0]*across
	switch {
	case d.size == 1: // libjpeg repeats pixels in this case
		repeatPixels(buf[:first+d.window.W], near, across)
	case across == 2 && down == 1:
		pixel.Upsample(buf, near)
	case across == 2 && down == 2:
		pixel.UpsampleTwo(buf, near, far)
	case across == 1 && down == 2:
		pixel.UpsampleDown(buf, near, far, y%2 == 1)
	default:
		repeatPixels(buf[:first+d.window.W], near, across)
	}
	return buf[first:][:d.window.W]
}

// repeatPixels widens a row: each pixel of src is written the given number of times.
func repeatPixels(dst, src []uint8, times int) {
	for x := range dst {
		dst[x] = src[x/times]
	}
}

// planeRow returns row y of a component.
func (c *component) planeRow(y int) []uint8 { return c.plane[y*c.size*c.across:][:c.w] }
