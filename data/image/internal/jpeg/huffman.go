package jpeg

import (
	"bytes"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// lookBits is the number of bits looked up at once. Most codes are not longer.
const lookBits = 10

// An entry of the lookup table describes the code that begins with the index's bits.
//
//	0…7    bits of the code and of the number after it; 0 if the code exceeds lookBits
//	8…15   coefficients skipped
//	16…23  bits of the number
//	24…31  bits of the code
type entry uint32

func (e entry) bits() uint { return uint(e & 31) } // at most lookBits + 15
func (e entry) run() int   { return int(e >> 8 & 15) }
func (e entry) size() uint { return uint(e >> 16 & 15) }
func (e entry) code() uint { return uint(e >> 24) }

// huffman is a decoding table of Huffman codes.
type huffman struct {
	look    [1 << lookBits]entry
	limit   [17]int32 // by length: upper bound of the codes, extended to 16 bits
	first   [17]int32 // by length: added to a code to get the index of its symbol
	counts  [16]uint8 // the arguments of build
	symbols [256]uint8
}

// build makes a table with counts[i] codes of i+1 bits for the given symbols. It returns early if
// the table has the same codes, because most files of one encoder do. It returns [pixel.ErrCorrupt]
// if the counts are impossible.
func (h *huffman) build(counts [16]uint8, symbols []uint8) error {
	if counts == h.counts && bytes.Equal(symbols, h.symbols[:len(symbols)]) {
		return nil
	}
	*h = huffman{}
	code, k := int32(0), int32(0)
	for length := 1; length <= 16; length++ {
		n := int32(counts[length-1])
		h.first[length] = k - code
		for range n {
			if code >= 1<<length {
				*h = huffman{}
				return pixel.ErrCorrupt
			}
			h.setCode(code, length, symbols[k])
			code++
			k++
		}
		h.limit[length] = code << (16 - length)
		code <<= 1
	}
	h.counts = counts
	copy(h.symbols[:], symbols)
	return nil
}

// setCode sets the lookup entries that begin with a code of length bits. It ignores codes of
// more than lookBits bits.
func (h *huffman) setCode(code int32, length int, symbol uint8) {
	if length > lookBits {
		return
	}
	run, size := entry(symbol>>4), entry(symbol&15)
	e := (entry(length) + size) | run<<8 | size<<16 | entry(length)<<24
	rest := lookBits - length
	for tail := range int32(1) << rest {
		h.look[code<<rest|tail] = e
	}
}

// readSymbol reads a code of h and returns its symbol. It returns false if no code matches.
func (r *bits) readSymbol(h *huffman) (uint8, bool) {
	if r.n < 16 {
		r.fill()
	}
	if e := h.look[r.acc>>(64-lookBits)]; e != 0 {
		r.skipBits(e.code())
		return uint8(e.run()<<4) | uint8(e.size()), true
	}
	code := int32(r.acc >> 48)
	for length := uint(lookBits + 1); length <= 16; length++ {
		if code < h.limit[length] {
			r.skipBits(length)
			return h.symbols[(code>>(16-length)+h.first[length])&255], true
		}
	}
	return 0, false
}
