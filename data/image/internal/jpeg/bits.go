package jpeg

import (
	"bytes"
	"encoding/binary"
)

// slack is the number of zero bytes after a segment, so that it can be read in words.
const slack = 8

// bits reads a segment of entropy-coded data, most significant bit first. It must be loaded
// before. Beyond the end it reads zeros; see isOverrun.
type bits struct {
	acc  uint64 // buffered bits, the next one highest
	n    uint   // number of valid bits in acc
	pos  int    // offset of the byte after acc
	buf  []byte // the segment and slack
	size int    // length of the segment
}

// load starts reading the entropy-coded data at the start of data, up to a marker or the end. It
// removes the byte stuffing and returns the number of bytes of data that belong to the segment.
func (r *bits) load(data []byte) int {
	buf, rest := r.buf[:0], data
	for {
		i := bytes.IndexByte(rest, 0xFF)
		if i < 0 || i+1 == len(rest) {
			buf, rest = append(buf, rest...), nil
			break
		}
		if rest[i+1] != 0 { // a marker
			buf, rest = append(buf, rest[:i]...), rest[i:]
			break
		}
		buf, rest = append(buf, rest[:i+1]...), rest[i+2:]
	}
	size := len(buf)
	*r = bits{buf: append(buf, make([]byte, slack)...), size: size}
	return len(data) - len(rest)
}

// fill makes at least 56 bits valid.
func (r *bits) fill() {
	if r.pos+8 <= len(r.buf) {
		r.acc |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> (r.n & 63)
	} // beyond the end, the bits are zeros
	r.pos += int((63 - r.n) >> 3)
	r.n |= 56
}

// isOverrun reports whether more bits were read than the segment has.
func (r *bits) isOverrun() bool { return 8*r.pos-int(r.n) > 8*r.size }

func (r *bits) skipBits(n uint) {
	r.acc <<= n & 63
	r.n -= n
}

// takeBits reads n bits as a number. n must be at most 16. Beyond the end of the segment the
// bits are zeros; the caller must check isOverrun.
func (r *bits) takeBits(n uint) int32 {
	if r.n < 16 {
		r.fill()
	}
	v := int32(r.acc >> 1 >> (63 - n&63))
	r.skipBits(n)
	return v
}

// takeSigned reads a number of n bits in JPEG's encoding: if the first bit is zero, the number is
// negative.
func (r *bits) takeSigned(n uint) int32 {
	v := r.takeBits(n)
	return signExtend(v, n)
}

func signExtend(v int32, n uint) int32 {
	if n > 0 && v < 1<<(n-1) {
		v -= 1<<n - 1
	}
	return v
}
