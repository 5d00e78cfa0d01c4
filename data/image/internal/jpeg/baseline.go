package jpeg

import (
	"encoding/binary"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// A block is 8×8 coefficients in row-major order.
type block = [64]int16

// zigzag maps the order of coefficients in the file to positions in a block.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// decodeBaselineBlock decodes block at of c and writes its pixels. It returns false if the data
// is corrupt.
func (d *Decoder) decodeBaselineBlock(c *component, at int) bool {
	b := &d.block
	diff, ok := d.bits.readDC(c.dc)
	if !ok {
		return false
	}
	c.pred += diff
	b[0] = int16(c.pred)
	alone, ok := d.bits.readAC(b, c.ac)
	if !ok {
		return false
	}
	d.draw(c, at, b, alone)
	if alone {
		b[0] = 0
	} else {
		*b = block{}
	}
	return true
}

// draw writes the pixels of block b, which has index at in its component, if they are needed. It
// does not modify b. alone means that all coefficients except the first are zero; they must be zero
// then.
func (d *Decoder) draw(c *component, at int, b *block, alone bool) {
	y, x := at/c.across, at%c.across
	if y < c.begin[0] || y >= c.end[0] || x < c.begin[1] || x >= c.end[1] {
		return
	}
	stride := c.size * c.across
	dst := c.plane[y*c.size*stride+x*c.size:]
	switch {
	case alone || c.size == 1:
		pixel.Flat(b[0], c.quant[0], dst, stride, c.size)
	case c.size < 8:
		pixel.Reduced(b, c.quant, dst, stride, c.size)
	default:
		pixel.IDCT(b, c.quant, dst, stride)
	}
}

// readDC reads the difference of a block's DC coefficient from the previous block's. It returns
// false if the data is corrupt.
func (r *bits) readDC(h *huffman) (int32, bool) {
	size, ok := r.readSymbol(h)
	if !ok || size > 16 {
		return 0, false
	}
	return r.takeSigned(uint(size)), true
}

// readAC reads the AC coefficients of a block, which must be zero before. alone reports that all
// are zero. ok is false if the data is corrupt. The fields of r are copied to local variables to
// keep them in registers. Only rare cases branch, because the processor cannot predict these
// branches: a code and its number are consumed by one shift.
func (r *bits) readAC(b *block, h *huffman) (alone, ok bool) {
	acc, n, pos, buf := r.acc, r.n, r.pos, r.buf
	k := 1
	for k < 64 {
		if n < 32 {
			if pos+8 <= len(buf) {
				acc |= binary.BigEndian.Uint64(buf[pos:]) >> (n & 63)
			}
			pos += int((63 - n) >> 3)
			n |= 56
		}
		e := h.look[acc>>(64-lookBits)]
		if e.size() == 0 {
			if e == 0 {
				r.acc, r.n = acc, n
				symbol, known := r.readSymbol(h)
				if !known {
					return false, false
				}
				acc, n = r.acc, r.n
				e = entry(symbol&15) | entry(symbol>>4)<<8 | entry(symbol&15)<<16
			}
			if e.size() == 0 {
				acc, n = acc<<e.bits(), n-e.bits()
				if e.run() < 15 {
					break
				}
				k += 16
				continue
			}
		}
		number := acc << (e.code() & 31)
		negative := uint64(int64(^number) >> 63) // all ones if the first bit is zero
		v := (int16((number^negative)>>(64-e.size()&63)) ^ int16(negative)) - int16(negative)
		acc, n = acc<<e.bits(), n-e.bits()
		if k += e.run(); k > 63 {
			return false, false
		}
		b[zigzag[k&63]&63] = v
		k++
	}
	r.acc, r.n, r.pos = acc, n, pos
	return k == 1, true
}
