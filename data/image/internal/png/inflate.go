package png

import (
	"encoding/binary"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// slack is the number of bytes that may be written beyond the end of the output, so that matches
// can be copied in words.
const slack = 16

// inflater decompresses deflate data from a slice to a slice. The zero value is ready to use, by
// one goroutine at a time.
type inflater struct {
	in   []byte
	pos  int    // offset of the byte after acc
	acc  uint64 // buffered bits, the next one lowest
	n    uint   // number of valid bits in acc
	out  []byte // size bytes, followed by slack
	at   int
	size int

	literals, distances table
	lengths             [320]uint8
}

// inflate decompresses the deflate data at the start of in, which has no zlib header, to out,
// except for its last slack bytes. It ignores bytes after the data. It returns the number of
// bytes of in that were used, even if there is an error. The error is [pixel.ErrTruncated], also
// if the data does not fill out, or [pixel.ErrCorrupt].
func (z *inflater) inflate(out, in []byte) (used int, err error) {
	z.in, z.pos, z.acc, z.n = in, 0, 0, 0
	z.out, z.at, z.size = out, 0, len(out)-slack
	for last := false; !last && err == nil; {
		last = z.takeBits(1) == 1
		switch z.takeBits(2) {
		case 0:
			err = z.copyStored()
		case 1:
			z.buildFixed()
			err = z.inflateBlock()
		case 2:
			if err = z.readDynamic(); err == nil {
				err = z.inflateBlock()
			}
		default:
			err = pixel.ErrCorrupt
		}
	}
	used = min(len(in), z.pos-int(z.n/8))
	z.in, z.out = nil, nil
	switch {
	case err != nil:
		return used, err
	case z.at < z.size:
		return used, pixel.ErrTruncated
	}
	return used, nil
}

// fill makes at least 56 bits valid. Beyond the end the bits are zeros; see isOverrun.
func (z *inflater) fill() {
	if z.pos+8 <= len(z.in) {
		z.acc |= binary.LittleEndian.Uint64(z.in[z.pos:]) << (z.n & 63)
	} else {
		var word [8]byte
		if z.pos < len(z.in) {
			copy(word[:], z.in[z.pos:])
		}
		z.acc |= binary.LittleEndian.Uint64(word[:]) << (z.n & 63)
	}
	z.pos += int((63 - z.n) >> 3)
	z.n |= 56
}

func (z *inflater) isOverrun() bool { return z.pos-int(z.n/8) > len(z.in) }

func (z *inflater) skipBits(n uint) {
	z.acc >>= n & 63
	z.n -= n
}

// takeBits reads n bits, at most 16, as a number. Beyond the end of the input the bits are
// zeros; the caller must check isOverrun.
func (z *inflater) takeBits(n uint) int {
	if z.n < n {
		z.fill()
	}
	v := int(z.acc & (1<<n - 1))
	z.skipBits(n)
	return v
}

// copyStored copies an uncompressed block. The error is [pixel.ErrTruncated] or
// [pixel.ErrCorrupt].
func (z *inflater) copyStored() error {
	z.skipBits(z.n & 7)
	n, not := z.takeBits(16), z.takeBits(16)
	if n != ^not&0xFFFF {
		return z.dataError()
	}
	from := z.pos - int(z.n/8)
	if from+n > len(z.in) {
		return pixel.ErrTruncated
	}
	if z.at+n > z.size {
		return pixel.ErrCorrupt
	}
	z.at += copy(z.out[z.at:], z.in[from:from+n])
	z.pos, z.acc, z.n = from+n, 0, 0
	return nil
}

// dataError returns the error for invalid data: [pixel.ErrTruncated] if the input has ended,
// because the data then consists of zeros, and [pixel.ErrCorrupt] otherwise.
func (z *inflater) dataError() error {
	if z.isOverrun() {
		return pixel.ErrTruncated
	}
	return pixel.ErrCorrupt
}

// buildFixed builds the fixed tables of the deflate format.
func (z *inflater) buildFixed() {
	l := z.lengths[:288]
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	z.literals.build(l, literalBits, literalEntries[:])
	d := z.lengths[:32]
	for i := range d {
		d[i] = 5
	}
	z.distances.build(d, distanceBits, distanceEntries[:])
}

// order lists the code length codes in the storage order of their lengths.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readDynamic reads the code tables of a block. The error is one of dataError.
func (z *inflater) readDynamic() error {
	literals, distances, n := 257+z.takeBits(5), 1+z.takeBits(5), 4+z.takeBits(4)
	if literals > 286 || distances > 30 {
		return z.dataError()
	}
	var small [19]uint8
	for _, i := range order[:n] {
		small[i] = uint8(z.takeBits(3))
	}
	if !z.distances.build(small[:], 7, smallEntries[:]) {
		return z.dataError()
	}
	all := z.lengths[:literals+distances]
	for i := 0; i < len(all); {
		if z.n < 16 {
			z.fill()
		}
		e := z.distances.entries[z.acc&127]
		z.skipBits(uint(e & 15))
		symbol, times, value := e>>16, 1, uint8(0)
		switch {
		case e == 0 || z.isOverrun():
			return z.dataError()
		case symbol < 16:
			value = uint8(symbol)
		case symbol == 16 && i == 0:
			return z.dataError()
		case symbol == 16:
			times, value = 3+z.takeBits(2), all[i-1]
		case symbol == 17:
			times = 3 + z.takeBits(3)
		default:
			times = 11 + z.takeBits(7)
		}
		if i+times > len(all) {
			return z.dataError()
		}
		for range times {
			all[i] = value
			i++
		}
	}
	if all[256] == 0 || !z.literals.build(all[:literals], literalBits, literalEntries[:]) ||
		!z.distances.build(all[literals:], distanceBits, distanceEntries[:]) {
		return z.dataError()
	}
	return nil
}
