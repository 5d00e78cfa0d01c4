package png

import "math/bits"

// Number of bits looked up at once.
const (
	literalBits  = 11
	distanceBits = 9
)

// An entry of a table of codes. 0 means that there is no such code.
//
//	0…3    bits of the code; in the second part of a table, the bits after the first width bits
//	4…7    bits of a number after the code
//	8      a literal
//	9      the end of a block
//	10     the code is longer: look up as many bits as 4…7 declare in the second part
//	16…31  the literal; the base of the number; or the index of the second part
type entry uint32

const (
	literal = 1 << 8
	end     = 1 << 9
	longer  = 1 << 10
)

// table has 2^width entries for the next bits, followed by second parts for longer codes.
type table struct {
	entries []entry
	width   uint
}

// Entries of all symbols, without the lengths of their codes. Entries of invalid symbols are 0.
var (
	literalEntries  [288]entry
	distanceEntries [32]entry // two are invalid
	smallEntries    [19]entry
)

func init() {
	for i := range 256 {
		literalEntries[i] = literal | entry(i)<<16
	}
	literalEntries[256] = end
	base := 3
	for i := range 28 {
		extra := max(0, i/4-1)
		literalEntries[257+i] = entry(extra)<<4 | entry(base)<<16
		base += 1 << extra
	}
	literalEntries[285] = 258 << 16
	base = 1
	for i := range 30 {
		extra := max(0, i/2-1)
		distanceEntries[i] = entry(extra)<<4 | entry(base)<<16
		base += 1 << extra
	}
	for i := range smallEntries {
		smallEntries[i] = literal | entry(i)<<16
	}
}

// build makes a table. lengths are the code lengths of the symbols, and symbols their entries.
// Codes of up to width bits need one lookup, longer ones two. It returns false if the code is
// invalid: it must be complete, unless it has at most one symbol.
func (t *table) build(lengths []uint8, width uint, symbols []entry) bool {
	var counts, next [16]int
	for _, l := range lengths {
		counts[l]++
	}
	counts[0] = 0
	code, used := 0, 0
	for l := 1; l < 16; l++ {
		code = (code + counts[l-1]) << 1
		next[l] = code
		used += counts[l] << (15 - l)
	}
	if used > 1<<15 || used < 1<<15 && (used > 1<<14 || counts[1] != 1 && used > 0) {
		return false
	}
	t.width = width
	if cap(t.entries) < 1<<width+1<<15 {
		t.entries = make([]entry, 1<<width, 1<<width+1<<15)
	}
	t.entries = t.entries[:1<<width]
	clear(t.entries)
	for symbol, l := range lengths {
		if l == 0 {
			continue
		}
		t.setCode(uint(bits.Reverse16(uint16(next[l]))>>(16-l)), uint(l), symbols[symbol])
		next[l]++
	}
	return true
}

// setCode sets the entries of a code of length bits to e. The code's first bit must be the
// lowest. An e of 0 is ignored.
func (t *table) setCode(code, length uint, e entry) {
	if e == 0 {
		return
	}
	if length <= t.width {
		for i := code; i < 1<<t.width; i += 1 << length {
			t.entries[i] = e | entry(length)
		}
		return
	}
	at := code & (1<<t.width - 1)
	if t.entries[at] == 0 { // a second part of the maximum size
		rest := 15 - t.width
		t.entries[at] = longer | entry(t.width) | entry(rest)<<4 | entry(len(t.entries))<<16
		t.entries = t.entries[:len(t.entries)+1<<rest]
		clear(t.entries[len(t.entries)-1<<rest:])
	}
	second := t.entries[t.entries[at]>>16:][:1<<(15-t.width)]
	for i := code >> t.width; i < uint(len(second)); i += 1 << (length - t.width) {
		second[i] = e | entry(length-t.width)
	}
}
