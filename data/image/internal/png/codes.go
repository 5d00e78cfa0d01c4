package png

import (
	"encoding/binary"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// inflateBlock decompresses a block: literals, and matches of earlier output. The error is
// [pixel.ErrTruncated] or [pixel.ErrCorrupt]. The fields of z are copied to local variables to
// keep them in registers. A match consumes up to 48 of the 56 buffered bits.
func (z *inflater) inflateBlock() error {
	in, pos, acc, n := z.in, z.pos, z.acc, z.n
	out, at, size := z.out, z.at, z.size
	literals, distances := z.literals.entries, z.distances.entries
	const literalMask, distanceMask = 1<<literalBits - 1, 1<<distanceBits - 1
	if len(literals) < literalMask+1 || len(distances) < distanceMask+1 {
		return pixel.ErrCorrupt
	}
	var err error
	for {
		if pos+8 <= len(in) {
			acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		} else {
			z.pos, z.acc, z.n = pos, acc, n
			z.fill()
			pos, acc, n = z.pos, z.acc, z.n
			if z.isOverrun() {
				err = pixel.ErrTruncated
				break
			}
		}
		e := literals[acc&literalMask]
		if e&literal != 0 && at+3 <= size { // up to three literals per refill
			for range 3 {
				acc, n = acc>>(e&15), n-uint(e&15)
				out[at] = byte(e >> 16)
				at++
				if e = literals[acc&literalMask]; e&literal == 0 {
					break
				}
			}
			continue
		}
		if e&longer != 0 {
			acc, n = acc>>literalBits, n-literalBits
			e = literals[uint(e>>16)+uint(acc&(1<<(15-literalBits)-1))]
		}
		acc, n = acc>>(e&15), n-uint(e&15)
		if e&literal != 0 {
			if at >= size {
				err = pixel.ErrCorrupt
				break
			}
			out[at] = byte(e >> 16)
			at++
			continue
		}
		if e&end != 0 {
			break
		}
		if e == 0 {
			err = pixel.ErrCorrupt
			break
		}
		extra := e >> 4 & 15
		length := int(e>>16) + int(acc&(1<<extra-1))
		acc, n = acc>>extra, n-uint(extra)
		e = distances[acc&distanceMask]
		if e&longer != 0 {
			acc, n = acc>>distanceBits, n-distanceBits
			e = distances[uint(e>>16)+uint(acc&(1<<(15-distanceBits)-1))]
		}
		acc, n = acc>>(e&15), n-uint(e&15)
		extra = e >> 4 & 15
		distance := int(e>>16) + int(acc&(1<<extra-1))
		acc, n = acc>>extra, n-uint(extra)
		if e == 0 || distance > at || length > size-at {
			err = pixel.ErrCorrupt
			break
		}
		copyMatch(out, at, distance, length)
		at += length
	}
	z.pos, z.acc, z.n, z.at = pos, acc, n, at
	if err != nil && z.isOverrun() {
		err = pixel.ErrTruncated
	}
	return err
}

// copyMatch copies length bytes of out from distance bytes before at to at. It may write up to
// slack bytes more.
func copyMatch(out []byte, at, distance, length int) {
	to, from := out[at:at+length+slack], out[at-distance:]
	if distance < 8 {
		for i := range length {
			to[i] = from[i]
		}
		return
	}
	for i := 0; i < length; i += 8 {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
	}
}
