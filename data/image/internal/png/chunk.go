package png

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

const signature = "\x89PNG\r\n\x1a\n"

// A Decoder decodes images. The zero value is ready to use. It reuses its memory, and must not be
// used from several goroutines at the same time.
type Decoder struct {
	data []byte
	pos  int
	header
	palette [256][3]uint8
	colors  int // number of palette entries

	joined []byte // the compressed stream, if it consists of several chunks
	z      inflater
	raw    []byte     // filtered rows
	rows   [2][]uint8 // unfiltered rows, used alternately
	flat   []uint8    // three planes of a row
}

// header holds the properties of an image.
type header struct {
	w, h       int
	depth      int // bits per sample
	kind       kind
	interlaced bool
	channels   int // planes in dst
	dst        []uint8
}

// kind is a color type.
type kind uint8

const (
	grey      kind = 0
	rgb       kind = 2
	indexed   kind = 3
	greyAlpha kind = 4
	rgba      kind = 6
)

// sampleCount returns the number of samples per pixel.
func (k kind) sampleCount() int {
	switch k {
	case rgb:
		return 3
	case greyAlpha:
		return 2
	case rgba:
		return 4
	}
	return 1
}

// Decode decodes a PNG file into channels planes, 1 or 3, in the memory that place returns.
// Transparency is ignored. The error is an [*encoding.FileError] that wraps an error of package
// pixel, or the error of place.
func (d *Decoder) Decode(data []byte, channels int, place pixel.Place) error {
	d.data, d.pos, d.header, d.colors = data, 0, header{channels: channels}, 0
	err := d.decode(place)
	d.data, d.dst = nil, nil
	if err != nil {
		return pixel.Decoding("png", min(d.pos, len(data)), err)
	}
	return nil
}

func (d *Decoder) decode(place pixel.Place) error {
	if len(d.data) < len(signature) || string(d.data[:len(signature)]) != signature {
		return pixel.ErrFormat
	}
	d.pos = len(signature)
	var stream []byte
	parts, first := 0, 0
	for {
		at := d.pos
		name, body, err := d.nextChunk()
		if err != nil {
			return err
		}
		switch {
		case d.w == 0 && name != "IHDR":
			err = fmt.Errorf("%w: no header", pixel.ErrCorrupt)
		case name == "IHDR":
			err = d.readHeader(body)
		case name == "PLTE":
			err = d.readPalette(body)
		case name == "IDAT":
			switch parts++; parts {
			case 1:
				stream, first = body, at+8
			case 2:
				d.joined = append(append(d.joined[:0], stream...), body...)
			default:
				d.joined = append(d.joined, body...)
			}
		case name == "IEND":
			if parts > 1 {
				stream = d.joined
			}
			d.pos = first
			return d.decodePixels(stream, place)
		case name[0]&0x20 == 0:
			err = fmt.Errorf("%w: chunk %q", pixel.ErrUnsupported, name)
		}
		if err != nil {
			d.pos = at
			return err
		}
	}
}

// nextChunk reads the next chunk and verifies its checksum. body is a slice of the file. The
// error is [pixel.ErrTruncated], or wraps [pixel.ErrCorrupt]. A chunk has the layout
//
//	length  uint32
//	name    4 bytes
//	body    length bytes
//	sum     uint32, CRC-32 of name and body
func (d *Decoder) nextChunk() (name string, body []byte, err error) {
	rest := d.data[d.pos:]
	if len(rest) < 12 {
		return "", nil, pixel.ErrTruncated
	}
	n := int(binary.BigEndian.Uint32(rest))
	if n > len(rest)-12 {
		return "", nil, pixel.ErrTruncated
	}
	if crc32.ChecksumIEEE(rest[4:8+n]) != binary.BigEndian.Uint32(rest[8+n:]) {
		return "", nil, fmt.Errorf("%w: the checksum of chunk %q", pixel.ErrCorrupt, rest[4:8])
	}
	d.pos += 12 + n
	return string(rest[4:8]), rest[8 : 8+n], nil
}

func (d *Decoder) readHeader(body []byte) error {
	if len(body) != 13 || d.w != 0 {
		return fmt.Errorf("%w: the header", pixel.ErrCorrupt)
	}
	w, h := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	d.depth, d.kind, d.interlaced = int(body[8]), kind(body[9]), body[12] == 1
	const most = 1<<31 - 1
	switch {
	case w == 0 || h == 0 || w > most || h > most:
		return fmt.Errorf("%w: %d×%d pixels", pixel.ErrCorrupt, w, h)
	case body[10] != 0 || body[11] != 0 || body[12] > 1:
		return fmt.Errorf("%w: its methods", pixel.ErrUnsupported)
	case !d.isValidDepth():
		return fmt.Errorf("%w: colour type %d of %d bits", pixel.ErrCorrupt, d.kind, d.depth)
	}
	d.w, d.h = int(w), int(h)
	return nil
}

// isValidDepth reports whether the color type allows the bit depth.
func (d *Decoder) isValidDepth() bool {
	switch d.kind {
	case grey:
		return d.depth == 1 || d.depth == 2 || d.depth == 4 || d.depth == 8 || d.depth == 16
	case indexed:
		return d.depth == 1 || d.depth == 2 || d.depth == 4 || d.depth == 8
	case rgb, greyAlpha, rgba:
		return d.depth == 8 || d.depth == 16
	}
	return false
}

func (d *Decoder) readPalette(body []byte) error {
	if len(body)%3 != 0 || len(body) > 768 || len(body) == 0 {
		return fmt.Errorf("%w: the palette", pixel.ErrCorrupt)
	}
	d.palette, d.colors = [256][3]uint8{}, len(body)/3
	for i := range d.colors {
		d.palette[i] = [3]uint8(body[3*i:])
	}
	return nil
}
