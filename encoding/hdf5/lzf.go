package hdf5

// What h5py writes beside the filter lzf: its own revision, and that of the format.
const (
	lzfRevision = 4
	lzfVersion  = 0x0105
)

// Of what lzf's bytes can be: up to 32 literals, or a copy of 3 to 264 bytes from up to 8 KiB
// before.
const (
	lzfLiterals = 32
	lzfLongest  = 264
	lzfFarthest = 1 << 13
	lzfSeven    = 7 // a length of so many or more has a byte of its own
)

// unlzf decompresses to size bytes, which a checksum may follow.
func unlzf(b []byte, size int) ([]byte, error) {
	if size/lzfLongest > len(b) {
		return nil, malformed("%d bytes cannot come out of %d", size, len(b))
	}
	out := make([]byte, 0, size+8)
	for c := (&cursor{b: b}); len(c.b) > 0; {
		control := c.int(1)
		if control < lzfLiterals {
			out = append(out, c.take(control+1)...)
		} else {
			n := control >> 5
			if n == lzfSeven {
				n += c.int(1)
			}
			back := control&31<<8 + c.int(1) + 1
			if back > len(out) {
				return nil, malformed("a compressed chunk refers to what is before it")
			}
			for range n + 2 { // which may run into itself
				out = append(out, out[len(out)-back])
			}
		}
		if c.short || len(out) > size+8 {
			return nil, malformed("a compressed chunk is cut short or longer than %d bytes", size)
		}
	}
	return out, nil
}

// lzf compresses, or returns nil where that makes nothing less.
func lzf(b []byte) []byte {
	var seen [1 << 14]int // by a hash of three bytes, one more than where they were last
	out := make([]byte, 0, len(b))
	literals := 0 // those before the place
	flush := func(end int) {
		for ; literals > 0; literals -= min(literals, lzfLiterals) {
			n := min(literals, lzfLiterals)
			out = append(append(out, byte(n-1)), b[end-literals:][:n]...)
		}
	}
	at := 0
	for at < len(b) && len(out)+literals < len(b) {
		n, back := 0, 0
		if at+3 <= len(b) {
			three := uint32(b[at])<<16 | uint32(b[at+1])<<8 | uint32(b[at+2])
			slot := &seen[three*0x9e3779b1>>18]
			if back = at + 1 - *slot; *slot > 0 && back <= lzfFarthest {
				for limit := min(lzfLongest, len(b)-at); n < limit && b[at-back+n] == b[at+n]; {
					n++
				}
			}
			*slot = at + 1
		}
		if n < 3 {
			literals++
			at++
			continue
		}
		flush(at)
		length := n - 2
		if length < lzfSeven {
			out = append(out, byte(length<<5|(back-1)>>8))
		} else {
			out = append(out, byte(lzfSeven<<5|(back-1)>>8), byte(length-lzfSeven))
		}
		out = append(out, byte(back-1))
		at += n
	}
	if flush(at); len(out) >= len(b) {
		return nil
	}
	return out
}
