package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib" // compresses in a third of the time that Go's own takes

	"github.com/shoal-mp/shoal/internal/safefile"
)

// The filters that are known.
const (
	filterGzip     = 1
	filterShuffle  = 2
	filterChecksum = 3
	filterLZF      = 32000

	firstNamed = 256 // filters from here on may have names
	optional   = 1   // a flag: chunks may go without
)

var filterNames = map[int]string{4: "szip", 5: "nbit", 6: "scale-offset", 32001: "blosc", 32004: "lz4",
	32008: "bitshuffle", 32013: "zfp", 32015: "zstd", 32026: "blosc2"}

// A filter is a step of the way from elements to bytes in the file.
type filter struct {
	id     int
	flags  uint16
	values []uint32
}

// parseFilters reads a pipeline.
func parseFilters(c *cursor) (list []filter, err error) {
	version, n := c.int(1), c.int(1)
	if version == 1 {
		c.take(6)
	}
	for range n {
		f := filter{id: c.int(2)}
		nameSize := 0
		if version == 1 || f.id >= firstNamed {
			nameSize = c.int(2)
		}
		f.flags = uint16(c.uint(2))
		count := c.int(2)
		if version == 1 {
			nameSize = (nameSize + 7) / 8 * 8
		}
		c.take(nameSize)
		for range count {
			f.values = append(f.values, uint32(c.uint(4)))
			if c.short {
				break
			}
		}
		if version == 1 && count%2 == 1 {
			c.take(4)
		}
		list = append(list, f)
	}
	if c.short || version < 1 || version > 2 {
		return nil, malformed("a list of filters")
	}
	return list, nil
}

// known says which filter of a list is not.
func known(list []filter) error {
	for _, f := range list {
		if f.id >= filterGzip && f.id <= filterChecksum || f.id == filterLZF {
			continue
		}
		if name := filterNames[f.id]; name != "" {
			return unsupported("the filter %s", name)
		}
		return unsupported("filter %d", f.id)
	}
	return nil
}

// decode makes the chunk of size bytes of what the file has; skipped has a bit for each filter that
// was left out.
func decode(b []byte, list []filter, skipped uint32, size, element int) (out []byte, err error) {
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		if i < 32 && skipped>>i&1 != 0 {
			continue
		}
		switch list[i].id {
		case filterChecksum:
			b, err = unsum(b)
		case filterGzip:
			b, err = inflate(b, size)
		case filterLZF:
			b, err = unlzf(b, size)
		case filterShuffle:
			b = shuffle(b, element, false)
		}
	}
	if err == nil && len(b) != size {
		err = malformed("a chunk has %d bytes, not %d", len(b), size)
	}
	return b, err
}

// encode is the inverse of decode.
func encode(b []byte, list []filter, element int) (out []byte, skipped uint32, err error) {
	for i, f := range list {
		switch f.id {
		case filterShuffle:
			b = shuffle(b, element, true)
		case filterGzip:
			b, err = deflate(b, int(f.values[0]))
		case filterLZF:
			if packed := lzf(b); packed != nil {
				b = packed
			} else {
				skipped |= 1 << i
			}
		}
	}
	return b, skipped, err
}

// inflaters are those of chunks before: each has a window of 32 KiB, and chunks may be small.
var inflaters sync.Pool

func inflater(r io.Reader) (io.Reader, error) {
	if z, ok := inflaters.Get().(zlib.Resetter); ok {
		return z.(io.Reader), z.Reset(r, nil)
	}
	return zlib.NewReader(r)
}

// inflate decompresses to a chunk, which a checksum may follow.
func inflate(b []byte, size int) ([]byte, error) {
	if size/safefile.MaxDeflateRatio > len(b) {
		return nil, malformed("%d bytes cannot come out of %d", size, len(b))
	}
	z, err := inflater(bytes.NewReader(b))
	if err != nil {
		return nil, malformed("a compressed chunk: %v", err)
	}
	defer inflaters.Put(z)
	out := make([]byte, size+8)
	n, err := io.ReadFull(z, out)
	if !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return nil, malformed("a compressed chunk is longer than %d bytes, or %v", size, err)
	}
	return out[:n], nil
}

// deflate compresses a chunk.
func deflate(b []byte, level int) ([]byte, error) {
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(b)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// shuffle puts the first bytes of all elements together, then the second ones and so on; or undoes
// that.
func shuffle(b []byte, element int, there bool) []byte {
	out, n := make([]byte, len(b)), len(b)/element
	fours := min(element, n*element) &^ 3 // none where there are no elements
	for i := 0; i < fours; i += 4 {
		if there {
			split(out[i*n:][:4*n], b[i:], element)
		} else {
			weave(out[i:], b[i*n:][:4*n], element)
		}
	}
	for i := fours; i < element; i++ {
		plane := i * n
		for j := range n {
			if there {
				out[plane+j] = b[j*element+i]
			} else {
				out[j*element+i] = b[plane+j]
			}
		}
	}
	copy(out[n*element:], b[n*element:])
	return out
}

// weave puts together four bytes of each element, which are so many bytes apart, from their planes.
func weave(out, planes []byte, step int) {
	n := len(planes) / 4
	a, b, c, d := planes[:n], planes[n:][:n], planes[2*n:][:n], planes[3*n:][:n]
	for j := range a {
		binary.LittleEndian.PutUint32(out[j*step:], uint32(a[j])|uint32(b[j])<<8|uint32(c[j])<<16|uint32(d[j])<<24)
	}
}

// split is the inverse of weave.
func split(planes, in []byte, step int) {
	n := len(planes) / 4
	a, b, c, d := planes[:n], planes[n:][:n], planes[2*n:][:n], planes[3*n:][:n]
	for j := range a {
		v := binary.LittleEndian.Uint32(in[j*step:])
		a[j], b[j], c[j], d[j] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
}

// unsum takes Fletcher's checksum from the end of a chunk, and compares it.
func unsum(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, malformed("a chunk of %d bytes has no checksum", len(b))
	}
	sum := binary.LittleEndian.Uint32(b[len(b)-4:])
	if b = b[:len(b)-4]; fletcher32(b) != sum {
		return nil, malformed("the checksum of a chunk")
	}
	return b, nil
}

// fletcher32 is the checksum of big-endian words of 16 bits, the last one filled up with zeros.
func fletcher32(b []byte) uint32 {
	var one, two uint32
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		one = fold(one + word)
		two = fold(two + one)
	}
	return two<<16 | one
}

// fold adds the carry, so that sums are modulo 65535 and not 0 but where all words were.
func fold(v uint32) uint32 { return v&0xffff + v>>16 }
