package pystack

// lineOf39 returns the line of an instruction, given the first line of the code and the
// instruction's offset in the code in bytes, at. It decodes co_lnotab: pairs of an increment of the
// address and a signed one of the line.
//
// https://github.com/python/cpython/blob/v3.9.18/Objects/lnotab_notes.txt
func lineOf39(table []byte, line, at int) int {
	addr := 0
	for i := 0; i+1 < len(table); i += 2 {
		if addr += int(table[i]); addr > at {
			break
		}
		line += int(int8(table[i+1]))
	}
	return line
}

// lineOf310 is like lineOf39 for co_linetable of 3.10: pairs of the length of a range in bytes and
// a signed increment of the line, where -128 marks a range without a line. Such a range gets the
// line of the range before.
//
// https://github.com/python/cpython/blob/v3.10.13/Objects/lnotab_notes.txt
func lineOf310(table []byte, line, at int) int {
	addr, computed := 0, line
	for i := 0; i+1 < len(table); i += 2 {
		addr += int(table[i])
		if d := int8(table[i+1]); d != -128 {
			computed += int(d)
			line = computed
		}
		if addr > at {
			break
		}
	}
	return line
}

// lineOf311 is like lineOf39 for the location table of 3.11 and later: entries with a length in
// code units of two bytes and a form that determines the line.
//
// https://github.com/python/cpython/blob/v3.11.7/Objects/locations.md
func lineOf311(table []byte, line, at int) int {
	addr, computed := 0, line
	for i := 0; i < len(table); {
		head := table[i]
		i++
		units, form := int(head&7)+1, int(head>>3&15)
		switch {
		case form == 15: // no location
		case form == 14 || form == 13:
			var d int
			d, i = signedVarint(table, i)
			computed += d
		case form >= 10:
			computed += form - 10
		}
		if form != 15 {
			line = computed
		}
		if addr += 2 * units; addr > at {
			break
		}
		for i < len(table) && table[i]&0x80 == 0 { // the rest of the entry: columns
			i++
		}
	}
	return line
}

func signedVarint(table []byte, i int) (value, next int) {
	var u uint
	for shift := 0; i < len(table) && shift < 60; shift += 6 {
		b := table[i]
		i++
		u |= uint(b&63) << shift
		if b&64 == 0 {
			break
		}
	}
	if u&1 != 0 {
		return -int(u >> 1), i
	}
	return int(u >> 1), i
}
