package jpeg

import "github.com/shoal-mp/shoal/internal/pixel"

// lookBits is how many bits are looked up at once: most codes with the number behind them.
const lookBits = 10

// An entry of the look-up table: how many bits it stands for, how many coefficients are skipped, and which number follows.
//
//	0…6    bits, 0 if the code is longer than the table looks at
//	7      the number is not known yet: what is in its place is how many bits it has
//	8…15   coefficients skipped
//	16…31  the number
type entry uint32

const open = 1 << 7

// huffman is a table of codes.
type huffman struct {
	look    [1 << lookBits]entry
	limit   [18]int32 // by length: above all codes of it, as if they had 16 bits
	first   [17]int32 // by length: what is added to a code to find its symbol
	symbols [256]uint8
}

// build makes the table of counts[i] codes of i+1 bits, which stand for symbols.
func (h *huffman) build(counts [16]uint8, symbols []uint8) error {
	copy(h.symbols[:], symbols)
	code, k := int32(0), int32(0)
	h.look = [1 << lookBits]entry{}
	for length := 1; length <= 16; length++ {
		n := int32(counts[length-1])
		h.first[length] = k - code
		for range n {
			if code >= 1<<length {
				return pixel.ErrCorrupt
			}
			h.enter(code, length, symbols[k])
			code++
			k++
		}
		h.limit[length] = code << (16 - length)
		code <<= 1
	}
	h.limit[17] = 1 << 16
	return nil
}

// enter writes the entries that begin with a code.
func (h *huffman) enter(code int32, length int, symbol uint8) {
	if length > lookBits {
		return
	}
	run, size := entry(symbol>>4), int(symbol&15)
	rest := lookBits - length
	for tail := range int32(1) << rest {
		e := entry(length) | open | run<<8 | entry(size)<<16
		if size > 0 && size <= rest {
			v := extend(tail>>(rest-size), uint(size))
			e = entry(length+size) | run<<8 | entry(uint16(v))<<16
		}
		h.look[code<<rest|tail] = e
	}
}

// symbol reads a code.
func (r *bits) symbol(h *huffman) (uint8, bool) {
	if r.n < 16 {
		r.fill()
	}
	code := int32(r.acc >> 48)
	for length := uint(1); length <= 16; length++ {
		if code < h.limit[length] {
			r.skip(length)
			return h.symbols[(code>>(16-length)+h.first[length])&255], true
		}
	}
	return 0, false
}
