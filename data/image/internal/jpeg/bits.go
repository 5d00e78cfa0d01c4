package jpeg

import (
	"bytes"
	"encoding/binary"
)

// slack is how many zeros follow a segment, so that it is read in words.
const slack = 8

// bits reads a segment of entropy-coded data, from the highest bit of each byte. Beyond the end it
// reads zeros, and overrun tells.
type bits struct {
	acc  uint64 // the next bits, the first one highest
	n    uint   // how many of them are good
	pos  int    // of the bytes behind them
	buf  []byte // the segment and slack
	size int    // of the segment
}

// load begins with the entropy-coded data at the front of data, without its stuffing, up to a
// marker or the end. It returns how much that was.
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

// fill makes at least 56 bits good.
func (r *bits) fill() {
	if r.pos+8 <= len(r.buf) {
		r.acc |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> (r.n & 63)
	} // else there are zeros
	r.pos += int((63 - r.n) >> 3)
	r.n |= 56
}

// overrun reports whether more bits were read than there are.
func (r *bits) overrun() bool { return 8*r.pos-int(r.n) > 8*r.size }

func (r *bits) skip(n uint) {
	r.acc <<= n & 63
	r.n -= n
}

// take reads up to 16 bits as a number.
func (r *bits) take(n uint) int32 {
	if r.n < 16 {
		r.fill()
	}
	v := int32(r.acc >> 1 >> (63 - n&63))
	r.skip(n)
	return v
}

// signed reads a number of n bits, as the format has them: those that begin with a zero are
// negative.
func (r *bits) signed(n uint) int32 {
	v := r.take(n)
	return extend(v, n)
}

func extend(v int32, n uint) int32 {
	if n > 0 && v < 1<<(n-1) {
		v -= 1<<n - 1
	}
	return v
}
