package jpeg

// Progressive images consist of scans. Each contains some coefficients of all blocks, or one more
// bit of them.

// firstDC reads the upper bits of the DC coefficient of block at. It returns false if the data
// is corrupt.
func (d *Decoder) firstDC(c *component, at int) bool {
	diff, ok := d.bits.readDC(c.dc)
	c.pred += diff
	c.blocks[at][0] = int16(c.pred << d.low)
	return ok
}

// refineDC reads one more bit of the DC coefficient of block at. It always returns true.
func (d *Decoder) refineDC(c *component, at int) bool {
	c.blocks[at][0] |= int16(d.bits.takeBits(1) << d.low)
	return true
}

// firstAC reads the upper bits of the AC coefficients in the scan's band of block at. It returns
// false if the data is corrupt.
func (d *Decoder) firstAC(c *component, at int) bool {
	if d.ended > 0 {
		d.ended--
		return true
	}
	for k := d.from; k <= d.to; k++ {
		symbol, ok := d.bits.readSymbol(c.ac)
		if !ok {
			return false
		}
		run, size := int(symbol>>4), uint(symbol&15)
		if size == 0 && run < 15 {
			d.ended = 1<<run + d.bits.takeBits(uint(run)) - 1
			return true
		}
		if k += run; size == 0 {
			continue
		}
		if k > d.to {
			return false
		}
		c.blocks[at][zigzag[k]] = int16(d.bits.takeSigned(size) << d.low)
	}
	return true
}

// refineAC reads one more bit of each nonzero coefficient in the scan's band of block at, and the
// coefficients that become nonzero. It returns false if the data is corrupt.
func (d *Decoder) refineAC(c *component, at int) bool {
	b, k := &c.blocks[at], d.from
	for ; k <= d.to && d.ended == 0; k++ {
		symbol, ok := d.bits.readSymbol(c.ac)
		if !ok {
			return false
		}
		run, v := int(symbol>>4), int16(0)
		switch symbol & 15 {
		case 0:
			if run < 15 {
				d.ended = 1<<run + d.bits.takeBits(uint(run))
			}
		case 1:
			v = int16(2*d.bits.takeBits(1)-1) << d.low
		default:
			return false
		}
		if d.ended > 0 {
			break
		}
		k = d.refineCoefficients(b, k, run)
		if v != 0 {
			if k > d.to {
				return false
			}
			b[zigzag[k]] = v
		}
	}
	if d.ended > 0 {
		d.refineCoefficients(b, k, 64)
		d.ended--
	}
	return true
}

// refineCoefficients reads one more bit of each nonzero coefficient from k on, until it has
// skipped the given number of zeros and reaches another one. It returns the position of that
// zero, or d.to+1 if there is none in the scan's band.
func (d *Decoder) refineCoefficients(b *block, k, zeros int) int {
	for ; k <= d.to; k++ {
		v := &b[zigzag[k]]
		if *v == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		if d.bits.takeBits(1) == 0 || *v>>d.low&1 != 0 && *v > 0 || -*v>>d.low&1 != 0 && *v < 0 {
			continue
		}
		if *v > 0 {
			*v += 1 << d.low
		} else {
			*v -= 1 << d.low
		}
	}
	return k
}
