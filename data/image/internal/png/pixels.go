package png

import (
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// maxInflation is the maximum compression ratio of a deflate stream: 258 bytes from two bits.
const maxInflation = 1032

// A pass is a part of an interlaced image: every dx-th pixel from x on, in every dy-th row from y
// on.
type pass struct{ x, y, dx, dy int }

var (
	whole  = []pass{{0, 0, 1, 1}}
	passes = []pass{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
)

// size returns the number of pixels in a row of a pass over an image of w×h pixels, and the
// number of rows. Either may be 0.
func (p pass) size(w, h int) (pw, ph int) {
	return max(0, (w-p.x+p.dx-1)/p.dx), max(0, (h-p.y+p.dy-1)/p.dy)
}

// decodePixels decompresses stream, a zlib stream, to the image, which it allocates with place.
// The error wraps [pixel.ErrCorrupt] or [pixel.ErrTruncated], or is the error of place.
func (d *Decoder) decodePixels(stream []byte, place pixel.Place) (err error) {
	if d.kind == indexed && d.colors == 0 {
		return fmt.Errorf("%w: no palette", pixel.ErrCorrupt)
	}
	if len(stream) < 2 || stream[0]&15 != 8 || stream[1]&0x20 != 0 || (int(stream[0])<<8|int(stream[1]))%31 != 0 {
		return fmt.Errorf("%w: not a zlib stream", pixel.ErrCorrupt)
	}
	parts := whole
	if d.interlaced {
		parts = passes
	}
	size := 0
	for _, p := range parts {
		if w, h := p.size(d.w, d.h); w > 0 {
			size += h * (1 + d.rowBytes(w))
		}
	}
	if size/maxInflation > len(stream) {
		return fmt.Errorf("%w: it cannot hold %d×%d pixels", pixel.ErrTruncated, d.w, d.h)
	}
	if d.dst, err = place(d.channels, d.h, d.w); err != nil {
		return err
	}
	d.raw = resizeSlice(d.raw, size+slack)
	used, err := d.z.inflate(d.raw, stream[2:])
	if err != nil {
		d.pos += 2 + used
		return err
	}
	raw := d.raw[:size]
	for _, p := range parts {
		if raw, err = d.writePass(p, raw); err != nil {
			return err
		}
	}
	return nil
}

// rowBytes returns the length in bytes of a row of w pixels, without the byte that names the
// filter.
func (d *Decoder) rowBytes(w int) int { return (w*d.kind.sampleCount()*d.depth + 7) / 8 }

// writePass writes the pixels of a pass, from the rows at the start of raw. It returns the
// remaining rows. The error wraps [pixel.ErrCorrupt] for an unknown filter.
func (d *Decoder) writePass(p pass, raw []byte) ([]byte, error) {
	w, h := p.size(d.w, d.h)
	if w == 0 {
		return raw, nil
	}
	n, step := d.rowBytes(w), max(1, d.kind.sampleCount()*d.depth/8)
	for i := range d.rows {
		d.rows[i] = resizeSlice(d.rows[i], n+step)
	}
	above, row := d.rows[0][:n], d.rows[1][:n]
	clear(above)
	for y := range h {
		if err := unfilter(row, raw[1:1+n], above, raw[0], step); err != nil {
			return nil, fmt.Errorf("%w in row %d", err, p.y+y*p.dy)
		}
		d.write(p, p.y+y*p.dy, w, row)
		raw, above, row = raw[1+n:], row, above
	}
	return raw, nil
}

// unfilter reverses the filter of the row raw and writes the result to dst. above is the
// unfiltered row before it, and step the number of bytes of a pixel. dst must have at least step
// bytes of additional capacity. The error wraps [pixel.ErrCorrupt] for an unknown filter.
func unfilter(dst, raw, above []uint8, filter uint8, step int) error {
	step = min(step, len(raw))
	switch filter {
	case 0:
		copy(dst, raw)
	case 1:
		copy(dst, raw[:step])
		for i := step; i < len(raw); i++ {
			dst[i] = raw[i] + dst[i-step]
		}
	case 2:
		pixel.Add(dst, raw, above)
	case 3:
		for i := range step {
			dst[i] = raw[i] + above[i]/2
		}
		for i := step; i < len(raw); i++ {
			dst[i] = raw[i] + uint8((int(dst[i-step])+int(above[i]))/2)
		}
	case 4:
		pixel.Paeth(dst, raw, above, step)
	default:
		return fmt.Errorf("%w: filter %d", pixel.ErrCorrupt, filter)
	}
	return nil
}

// write writes the w unfiltered pixels of a row of pass p to row y of the image.
func (d *Decoder) write(p pass, y, w int, row []uint8) {
	if d.kind == rgb && d.depth == 8 && d.channels == 3 && p.dx == 1 {
		pixel.Split(d.planeRow(0, y), d.planeRow(1, y), d.planeRow(2, y), row)
		return
	}
	d.flat = resizeSlice(d.flat, 3*w)
	r, g, b := d.flat[:w], d.flat[w:][:w], d.flat[2*w:][:w]
	color := d.splitRow(r, g, b, row)
	switch {
	case d.channels == 3:
		p.set(d.planeRow(0, y), r)
		p.set(d.planeRow(1, y), g)
		p.set(d.planeRow(2, y), b)
	case color:
		pixel.Gray(r, r, g, b)
		fallthrough
	default:
		p.set(d.planeRow(0, y), r)
	}
}

// planeRow returns row y of plane c of the image.
func (d *Decoder) planeRow(c, y int) []uint8 { return d.dst[(c*d.h+y)*d.w:][:d.w] }

// set writes src, the pixels of a row of the pass, to their columns in dst.
func (p pass) set(dst, src []uint8) {
	if p.dx == 1 {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[p.x+i*p.dx] = v
	}
}

// splitRow splits the unfiltered row into three planes of 8 bits per sample, without alpha.
// color reports whether they may differ; otherwise all are grey.
func (d *Decoder) splitRow(r, g, b, row []uint8) (color bool) {
	size, samples := d.depth/8, d.kind.sampleCount() // big-endian: the upper byte comes first
	switch {
	case d.kind == indexed:
		for i := range r {
			c := &d.palette[d.sampleAt(row, i)]
			r[i], g[i], b[i] = c[0], c[1], c[2]
		}
		return true
	case samples >= 3:
		for i := range r {
			p := row[i*samples*size:]
			r[i], g[i], b[i] = p[0], p[size], p[2*size]
		}
		return true
	case size == 0:
		scale := uint8(255 / (1<<d.depth - 1))
		for i := range r {
			r[i] = d.sampleAt(row, i) * scale
		}
	default:
		for i := range r {
			r[i] = row[i*samples*size]
		}
	}
	copy(g, r)
	copy(b, r)
	return false
}

// sampleAt returns sample i, as it is stored, of a row with up to 8 bits per sample.
func (d *Decoder) sampleAt(row []uint8, i int) uint8 {
	bit := i * d.depth
	return row[bit/8] << (bit % 8) >> (8 - d.depth)
}

// resizeSlice returns a slice of n elements with undefined values, in the memory of s if it is
// large enough.
func resizeSlice(s []uint8, n int) []uint8 {
	if cap(s) < n {
		return make([]uint8, n)
	}
	return s[:n]
}
