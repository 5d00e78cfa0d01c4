package png

import "math/bits"

// How many bits of codes are looked up at once.
const (
	literalBits  = 11
	distanceBits = 9
)

// An entry of a table of codes. 0 is that of a code that there is not.
//
//	0…3    bits of the code; in the second part of a table, those behind the first
//	4…7    bits of a number behind the code
//	8      a literal
//	9      the end of a block
//	10     the code is longer: look in the second part, by as many bits as 4…7 say
//	16…31  the literal; what is added to the number; or where in the table the second part is
type entry uint32

const (
	literal = 1 << 8
	end     = 1 << 9
	longer  = 1 << 10
)

// table has 2^width entries for the next bits, and behind them more for codes that are longer.
type table struct {
	entries []entry
	width   uint
}

// Entries of all symbols, without the lengths of their codes. Those that must not be used stay 0.
var (
	literalEntries  [288]entry
	distanceEntries [32]entry // two are not used
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

// build makes the table of codes of lengths bits, whose symbols have the entries of symbols. It
// reports whether there can be such codes: all that are possible must be used, unless there is only
// one or none.
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
		t.enter(uint(bits.Reverse16(uint16(next[l]))>>(16-l)), uint(l), symbols[symbol])
		next[l]++
	}
	return true
}

// enter writes the entries for a code, whose first bit is the lowest.
func (t *table) enter(code, length uint, e entry) {
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
	if t.entries[at] == 0 { // as long a second part as there may be
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
