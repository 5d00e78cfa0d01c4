package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib" // a third of the time of compress/zlib

	"github.com/shoal-mp/shoal/internal/safefile"
)

// Filter identifiers.
const (
	filterGzip     = 1
	filterShuffle  = 2
	filterChecksum = 3
	filterLZF      = 32000

	firstNamed = 256 // registered filters: they may have a name
	optional   = 1   // flag: a chunk may skip the filter
)

var filterNames = map[int]string{4: "szip", 5: "nbit", 6: "scale-offset", 32001: "blosc", 32004: "lz4",
	32008: "bitshuffle", 32013: "zfp", 32015: "zstd", 32026: "blosc2"}

// filter is one stage of the filter pipeline of a data set: its identifier, its flags, and its
// parameters.
type filter struct {
	id     int
	flags  uint16
	values []uint32
}

// parseFilters decodes a filter pipeline message to the filters in the order in which they were
// applied. The error wraps [ErrFormat]. Unknown filters are no error.
func parseFilters(c *cursor) (list []filter, err error) {
	version, n := c.readInt(1), c.readInt(1)
	if version == 1 {
		c.takeBytes(6)
	}
	for range n {
		f := filter{id: c.readInt(2)}
		nameSize := 0
		if version == 1 || f.id >= firstNamed {
			nameSize = c.readInt(2)
		}
		f.flags = uint16(c.readUint(2))
		count := c.readInt(2)
		if version == 1 {
			nameSize = (nameSize + 7) / 8 * 8
		}
		c.takeBytes(nameSize)
		for range count {
			f.values = append(f.values, uint32(c.readUint(4)))
			if c.short {
				break
			}
		}
		if version == 1 && count%2 == 1 {
			c.takeBytes(4)
		}
		list = append(list, f)
	}
	if c.short || version < 1 || version > 2 {
		return nil, malformed("a list of filters")
	}
	return list, nil
}

// checkKnown returns an error that wraps [ErrUnsupported] if the pipeline contains an unknown
// filter.
func checkKnown(list []filter) error {
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

// decode reverses the filter pipeline and returns the chunk, which must have size bytes. Bit i
// of skipped is set if filter i was not applied. element is the element size in bytes. The error
// wraps [ErrFormat] if b is damaged. The result may be b itself.
func decode(b []byte, list []filter, skipped uint32, size, element int) (out []byte, err error) {
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		if i < 32 && skipped>>i&1 != 0 {
			continue
		}
		switch list[i].id {
		case filterChecksum:
			b, err = stripChecksum(b)
		case filterGzip:
			b, err = inflate(b, size)
		case filterLZF:
			b, err = decompressLZF(b, size)
		case filterShuffle:
			b = shuffle(b, element, false)
		}
	}
	if err == nil && len(b) != size {
		err = malformed("got a chunk of %d bytes, want %d", len(b), size)
	}
	return b, err
}

// encode applies the filter pipeline to a chunk. It is the inverse of [decode]: element is the
// element size in bytes, and bit i of skipped is set if filter i was not applied because it
// would not make the chunk smaller.
func encode(b []byte, list []filter, element int) (out []byte, skipped uint32, err error) {
	for i, f := range list {
		switch f.id {
		case filterShuffle:
			b = shuffle(b, element, true)
		case filterGzip:
			b, err = deflate(b, int(f.values[0]))
		case filterLZF:
			if packed := compressLZF(b); packed != nil {
				b = packed
			} else {
				skipped |= 1 << i
			}
		}
	}
	return b, skipped, err
}

// inflaters pools zlib readers, because each has a window of 32 KiB and chunks may be small.
var inflaters sync.Pool

func newInflater(r io.Reader) (io.Reader, error) {
	if z, ok := inflaters.Get().(zlib.Resetter); ok {
		return z.(io.Reader), z.Reset(r, nil)
	}
	return zlib.NewReader(r)
}

// inflate decompresses a chunk of size bytes. The output may be up to 8 bytes longer, because a
// checksum can follow the chunk, or shorter. The error wraps [ErrFormat].
func inflate(b []byte, size int) ([]byte, error) {
	if size/safefile.MaxDeflateRatio > len(b) {
		return nil, malformed("%d bytes cannot be compressed to %d", size, len(b))
	}
	z, err := newInflater(bytes.NewReader(b))
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

// deflate compresses a chunk with zlib. level must be from 0 to 9.
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

// shuffle transposes the bytes of the elements into a new slice: the first bytes of all elements
// come first, then all second bytes, and so on. element is the element size in bytes. If there
// is false, it reverses the transposition. Bytes after the last whole element stay in place.
func shuffle(b []byte, element int, there bool) []byte {
	out, n := make([]byte, len(b)), len(b)/element
	fours := min(element, n*element) &^ 3 // 0 if there are no elements
	for i := 0; i < fours; i += 4 {
		if there {
			split(out[i*n:][:4*n], b[i:], element)
		} else {
			interleavePlanes(out[i:], b[i*n:][:4*n], element)
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

// interleavePlanes interleaves four byte planes of equal length into four consecutive bytes of
// each element of out. step is the element size in bytes.
func interleavePlanes(out, planes []byte, step int) {
	n := len(planes) / 4
	a, b, c, d := planes[:n], planes[n:][:n], planes[2*n:][:n], planes[3*n:][:n]
	for j := range a {
		binary.LittleEndian.PutUint32(out[j*step:], uint32(a[j])|uint32(b[j])<<8|uint32(c[j])<<16|uint32(d[j])<<24)
	}
}

// split is the inverse of [interleavePlanes].
func split(planes, in []byte, step int) {
	n := len(planes) / 4
	a, b, c, d := planes[:n], planes[n:][:n], planes[2*n:][:n], planes[3*n:][:n]
	for j := range a {
		v := binary.LittleEndian.Uint32(in[j*step:])
		a[j], b[j], c[j], d[j] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
}

// stripChecksum verifies and strips the Fletcher-32 checksum at the end of a chunk. The error
// wraps [ErrFormat] if it is wrong.
func stripChecksum(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, malformed("a chunk of %d bytes has no checksum", len(b))
	}
	sum := binary.LittleEndian.Uint32(b[len(b)-4:])
	if b = b[:len(b)-4]; fletcher32(b) != sum {
		return nil, malformed("wrong checksum of a chunk")
	}
	return b, nil
}

// fletcher32 returns HDF5's Fletcher-32 checksum of b as big-endian 16-bit words. An odd last
// byte is padded with zero.
func fletcher32(b []byte) uint32 {
	var one, two uint32
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		one = addCarry(one + word)
		two = addCarry(two + one)
	}
	return two<<16 | one
}

// addCarry adds the carry in the high 16 bits of v to the low 16 bits. Sums are thus modulo
// 65535, but a nonzero sum never becomes 0: 65535 stays as it is.
func addCarry(v uint32) uint32 { return v&0xffff + v>>16 }
