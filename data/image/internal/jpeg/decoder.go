package jpeg

import (
	"encoding/binary"
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// A Decoder decodes images. The zero value is ready to use. It reuses its memory, and must not be
// used from several goroutines at the same time.
type Decoder struct {
	// Scale returns the reduction factor for an image of h×w pixels, which must be 1, 2, 4 or 8.
	// nil means 1. Decode returns its error.
	Scale func(h, w int) (int, error)
	// Window returns the part of a decoded image of h×w pixels that the caller needs. The other
	// pixels are undefined. It must be within the image. nil means the whole image.
	Window func(h, w int) Window

	data []byte
	pos  int
	header

	quants [4][64]int32
	dcs    [4]huffman
	acs    [4]huffman
	known  [3][4]bool // quants, dcs, acs that the file has defined

	scan
	bits  bits
	block block
	rows  [4][]uint8 // upsampled rows of the components
	aside []uint8    // colors of a row that is converted to grey

	components [4]component // kept to reuse their memory
}

// A Window is a part of an image: h×w pixels that begin in row y and column x.
type Window struct{ Y, X, H, W int }

// header holds the properties of an image.
type header struct {
	w, h        int // of the decoded image
	size        int // of the smallest block in pixels: 8, or fewer if the image is reduced
	planes      int // number of components; 0 before the frame header
	maxH, maxV  int
	progressive bool
	restart     int // MCUs between restart markers; 0: none
	adobe       int // color transform of Adobe's marker; -1 without the marker
	jfif        bool
	scans       int
	dst         []uint8
	channels    int
	window      Window
}

// A component is a plane of an image, which may be subsampled. It is set by readFrame.
type component struct {
	id     uint8
	h, v   int // sampling factors
	quant  *[64]int32
	table  uint8  // index of quant
	size   int    // width and height of a decoded block, in pixels
	w, hgt int    // pixels within the image
	coded  [2]int // blocks in a row, and in a column, within the image
	across int    // blocks in a row of whole MCUs
	down   int
	begin  [2]int  // first row and column of the blocks that are needed
	end    [2]int  // row and column after the last of them
	plane  []uint8 // size²·across·down pixels
	blocks []block // of a progressive image
	dc, ac *huffman
	pred   int32
	seen   bool
	// for each coefficient, the lowest bit read by scans of a progressive image, plus one; 0: none
	// was read
	bits [64]uint8
}

// Decode decodes a JPEG file into channels planes in the memory that place returns. channels must
// be 1 or 3. The error is an [*encoding.FileError] that wraps an error of package pixel, or the
// error of place or Scale.
func (d *Decoder) Decode(data []byte, channels int, place pixel.Place) error {
	d.data, d.pos, d.header = data, 0, header{adobe: -1, channels: channels}
	d.known = [3][4]bool{}
	err := d.decode(place)
	d.data, d.dst = nil, nil
	if err != nil {
		return pixel.Decoding("jpeg", d.pos, err)
	}
	return nil
}

func (d *Decoder) decode(place pixel.Place) error {
	if len(d.data) < 2 || d.data[0] != 0xFF || d.data[1] != 0xD8 {
		return pixel.ErrFormat
	}
	d.pos = 2
	for {
		marker, err := d.nextMarker()
		switch {
		case err != nil && d.scans > 0: // the end marker is missing
			return d.writeImage()
		case err != nil:
			return err
		case marker == 0xD9:
			return d.writeImage()
		case marker == 0x01 || marker >= 0xD0 && marker <= 0xD7:
			continue
		}
		at := d.pos
		body, err := d.readSegmentBody()
		if err != nil {
			return err
		}
		if err := d.readSegment(marker, body, place); err != nil {
			if marker != 0xDA {
				d.pos = at
			}
			return err
		}
	}
}

// nextMarker skips to the next marker and returns its code. At the end of the file it returns
// [pixel.ErrTruncated].
func (d *Decoder) nextMarker() (uint8, error) {
	for d.pos+1 < len(d.data) {
		m := d.data[d.pos+1]
		if d.data[d.pos] == 0xFF && m != 0 && m != 0xFF {
			d.pos += 2
			return m, nil
		}
		d.pos++
	}
	d.pos = len(d.data)
	return 0, pixel.ErrTruncated
}

// readSegmentBody reads the length of a marker segment, and returns its contents. It must be called
// after the marker has been read. The error wraps [pixel.ErrTruncated] or [pixel.ErrCorrupt].
func (d *Decoder) readSegmentBody() ([]byte, error) {
	rest := d.data[d.pos:]
	if len(rest) < 2 {
		return nil, pixel.ErrTruncated
	}
	n := int(binary.BigEndian.Uint16(rest))
	switch {
	case n < 2:
		return nil, fmt.Errorf("%w: a segment of %d bytes", pixel.ErrCorrupt, n)
	case n > len(rest):
		return nil, pixel.ErrTruncated
	}
	d.pos += n
	return rest[2:n], nil
}

func (d *Decoder) readSegment(marker uint8, body []byte, place pixel.Place) error {
	switch {
	case marker == 0xDB:
		return d.defineQuants(body)
	case marker == 0xC4:
		return d.defineHuffmans(body)
	case marker == 0xDD:
		if len(body) < 2 {
			return pixel.ErrCorrupt
		}
		d.restart = int(binary.BigEndian.Uint16(body))
	case marker == 0xE0:
		d.jfif = d.jfif || len(body) >= 5 && string(body[:5]) == "JFIF\x00"
	case marker == 0xEE:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			d.adobe = int(body[11])
		}
	case marker <= 0xC2 && marker >= 0xC0:
		d.progressive = marker == 0xC2
		return d.readFrame(body, place)
	case marker >= 0xC3 && marker <= 0xCF || marker == 0xDC:
		return fmt.Errorf("%w: a frame of kind %#x", pixel.ErrUnsupported, marker)
	case marker == 0xDA:
		return d.readScan(body)
	}
	return nil
}

// defineQuants reads a DQT segment into d.quants. The error wraps [pixel.ErrCorrupt].
func (d *Decoder) defineQuants(body []byte) error {
	for len(body) > 0 {
		wide, i := int(body[0]>>4), body[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || i > 3 || len(body) < 1+size {
			return fmt.Errorf("%w: a table of quantizers", pixel.ErrCorrupt)
		}
		for k, to := range zigzag {
			if wide == 1 {
				d.quants[i][to] = int32(binary.BigEndian.Uint16(body[1+2*k:]))
			} else {
				d.quants[i][to] = int32(body[1+k])
			}
		}
		d.known[0][i] = true
		body = body[1+size:]
	}
	return nil
}

// defineHuffmans reads a DHT segment into d.dcs and d.acs. The error wraps [pixel.ErrCorrupt].
func (d *Decoder) defineHuffmans(body []byte) error {
	for len(body) > 0 {
		class, i := body[0]>>4, body[0]&15
		if class > 1 || i > 3 || len(body) < 17 {
			return fmt.Errorf("%w: a table of codes", pixel.ErrCorrupt)
		}
		n, counts := 0, [16]uint8(body[1:17])
		for _, c := range counts {
			n += int(c)
		}
		if n > 256 || len(body) < 17+n {
			return fmt.Errorf("%w: a table of %d codes", pixel.ErrCorrupt, n)
		}
		table := &d.dcs[i]
		if class == 1 {
			table = &d.acs[i]
		}
		if err := table.build(counts, body[17:17+n]); err != nil {
			return fmt.Errorf("%w: a table of codes that cannot be", err)
		}
		d.known[1+class][i] = true
		body = body[17+n:]
	}
	return nil
}
