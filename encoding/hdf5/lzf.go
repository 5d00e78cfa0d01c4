package hdf5

// Parameters that h5py stores with the lzf filter: the filter revision and the format version.
const (
	lzfRevision = 4
	lzfVersion  = 0x0105
)

// Limits of the LZF format. A compressed stream consists of runs of up to 32 literals and of back
// references, which copy 3 to 264 bytes from a distance of up to 8 KiB.
const (
	lzfLiterals = 32
	lzfLongest  = 264
	lzfFarthest = 1 << 13
	lzfSeven    = 7 // lengths from here on use an additional byte
)

// decompressLZF decompresses a chunk of size bytes. The output may be up to 8 bytes longer,
// because a checksum can follow the chunk, or shorter. The error wraps [ErrFormat].
func decompressLZF(b []byte, size int) ([]byte, error) {
	if size/lzfLongest > len(b) {
		return nil, malformed("%d bytes cannot be compressed to %d", size, len(b))
	}
	out := make([]byte, 0, size+8)
	for c := (&cursor{b: b}); len(c.b) > 0; {
		control := c.readInt(1)
		if control < lzfLiterals {
			out = append(out, c.takeBytes(control+1)...)
		} else {
			n := control >> 5
			if n == lzfSeven {
				n += c.readInt(1)
			}
			back := control&31<<8 + c.readInt(1) + 1
			if back > len(out) {
				return nil, malformed("a compressed chunk refers to data before its start")
			}
			for range n + 2 { // source and destination may overlap
				out = append(out, out[len(out)-back])
			}
		}
		if c.short || len(out) > size+8 {
			return nil, malformed("a compressed chunk is cut short or longer than %d bytes", size)
		}
	}
	return out, nil
}

// compressLZF compresses b. It returns nil if the output would not be smaller.
func compressLZF(b []byte) []byte {
	var seen [1 << 14]int // last position + 1, by hash of three bytes
	out := make([]byte, 0, len(b))
	literals := 0 // pending literals before at
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
