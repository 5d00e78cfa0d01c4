package jpeg

import (
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// maxScans limits the work caused by a small file, because a scan of a few bytes may update all
// pixels. Encoders write about ten scans.
const maxScans = 500

// scan holds the properties of the current scan.
type scan struct {
	in       [4]*component
	n        int
	from, to int   // range of coefficients in a progressive image
	low      uint  // lowest bit in the scan
	ended    int32 // remaining blocks of an end-of-band run
	read     func(d *Decoder, c *component, at int) bool
}

// readScan reads an SOS segment and the data after it. The error wraps [pixel.ErrCorrupt],
// [pixel.ErrTruncated] or [pixel.ErrUnsupported].
func (d *Decoder) readScan(body []byte) error {
	if d.planes == 0 {
		return fmt.Errorf("%w: pixels before their dimensions", pixel.ErrCorrupt)
	}
	if d.scans++; d.scans > maxScans {
		return fmt.Errorf("%w: more than %d scans", pixel.ErrUnsupported, maxScans)
	}
	high, err := d.readScanHeader(body)
	if err != nil {
		return err
	}
	if err := d.selectMethod(high); err != nil {
		return err
	}
	return d.readMCUs()
}

// readScanHeader reads the components, coefficients and tables of a scan into d.scan. high is
// the bit at which earlier scans ended, 0 for a first scan. The error wraps [pixel.ErrCorrupt].
func (d *Decoder) readScanHeader(body []byte) (high int, err error) {
	n := 0
	if len(body) > 0 {
		n = int(body[0])
	}
	if n < 1 || n > d.planes || len(body) < 4+2*n {
		return 0, fmt.Errorf("%w: a scan of %d components", pixel.ErrCorrupt, n)
	}
	d.scan = scan{n: n, from: int(body[1+2*n]), to: int(body[2+2*n]), low: uint(body[3+2*n] & 15)}
	for i := range n {
		c := d.find(body[1+2*i])
		if c == nil || c.seen && !d.progressive {
			return 0, fmt.Errorf("%w: a scan of component %d", pixel.ErrCorrupt, body[1+2*i])
		}
		for _, other := range d.in[:i] {
			if other == c {
				return 0, fmt.Errorf("%w: a scan of component %d twice", pixel.ErrCorrupt, c.id)
			}
		}
		dc, ac := body[2+2*i]>>4, body[2+2*i]&15
		if dc > 3 || ac > 3 || !d.known[0][c.table] {
			return 0, fmt.Errorf("%w: a scan without its tables", pixel.ErrCorrupt)
		}
		d.in[i], c.seen, c.pred = c, true, 0
		c.quant, c.dc, c.ac = &d.quants[c.table], &d.dcs[dc], &d.acs[ac]
		if (!d.progressive || d.from == 0) && !d.known[1][dc] || (!d.progressive || d.from > 0) && !d.known[2][ac] {
			return 0, fmt.Errorf("%w: a scan without its tables", pixel.ErrCorrupt)
		}
	}
	return int(body[3+2*n] >> 4), nil
}

// find returns the component with the given ID, or nil.
func (d *Decoder) find(id uint8) *component {
	for i := range d.planes {
		if d.components[i].id == id {
			return &d.components[i]
		}
	}
	return nil
}

// selectMethod selects the function that reads the blocks of the scan. high is the lowest bit read
// by earlier scans, or 0 for a first scan. The error wraps [pixel.ErrCorrupt] if a progressive scan
// has an impossible range of coefficients or bits.
func (d *Decoder) selectMethod(high int) error {
	if !d.progressive {
		d.read = (*Decoder).decodeBaselineBlock
		return nil
	}
	if d.to > 63 || d.from > d.to || d.from == 0 && d.to > 0 || d.from > 0 && d.scan.n > 1 || d.low > 13 ||
		high != 0 && high != int(d.low)+1 {
		return fmt.Errorf("%w: a scan of coefficients %d to %d from bit %d", pixel.ErrCorrupt, d.from, d.to, d.low)
	}
	for _, c := range d.in[:d.scan.n] {
		for k := d.from; k <= d.to; k++ {
			c.bits[k] = uint8(d.low) + 1
		}
	}
	switch {
	case d.from == 0 && high == 0:
		d.read = (*Decoder).firstDC
	case d.from == 0:
		d.read = (*Decoder).refineDC
	case high == 0:
		d.read = (*Decoder).firstAC
	default:
		d.read = (*Decoder).refineAC
	}
	return nil
}

// readMCUs reads the blocks of a scan: row by row for one component, and in MCUs for several. An
// MCU has h×v blocks of each component, its sampling factors. The error wraps
// [pixel.ErrTruncated] if the file ends early, or [pixel.ErrCorrupt].
func (d *Decoder) readMCUs() error {
	c := d.in[0]
	across, down := c.coded[0], c.coded[1]
	if d.scan.n > 1 {
		across, down = c.across/c.h, c.down/c.v
	}
	d.pos += d.bits.load(d.data[d.pos:])
	for i := range across * down {
		if d.restart > 0 && i > 0 && i%d.restart == 0 {
			if err := d.skipRestart(); err != nil {
				return err
			}
		}
		ok := true
		if d.scan.n == 1 {
			ok = d.read(d, c, i/across*c.across+i%across)
		} else {
			ok = d.readMCU(i%across, i/across)
		}
		switch {
		case d.bits.isOverrun() && d.pos == len(d.data):
			return pixel.ErrTruncated
		case !ok || d.bits.isOverrun():
			return fmt.Errorf("%w: the pixels before here", pixel.ErrCorrupt)
		}
	}
	return nil
}

// readMCU reads the blocks of the MCU in column x and row y. It returns false if the data is
// corrupt.
func (d *Decoder) readMCU(x, y int) bool {
	for _, c := range d.in[:d.scan.n] {
		for v := range c.v {
			at := (y*c.v+v)*c.across + x*c.h
			for h := range c.h {
				if !d.read(d, c, at+h) {
					return false
				}
			}
		}
	}
	return true
}

// skipRestart skips a restart marker, which must come next, and resets the state of the scan.
// The error wraps [pixel.ErrCorrupt] if another marker comes next, or [pixel.ErrTruncated].
func (d *Decoder) skipRestart() error {
	at := d.pos
	marker, err := d.nextMarker()
	if err != nil {
		return err
	}
	if marker < 0xD0 || marker > 0xD7 {
		d.pos = at
		return fmt.Errorf("%w: pixels are missing before here", pixel.ErrCorrupt)
	}
	d.ended = 0
	for _, c := range d.in[:d.scan.n] {
		c.pred = 0
	}
	d.pos += d.bits.load(d.data[d.pos:])
	return nil
}
