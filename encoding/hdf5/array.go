package hdf5

import "math/bits"

// array decodes a chunk index that is a fixed array or an extensible array.
type array struct {
	*Dataset
	filtered bool
	size     int // bytes per entry
	page     int // entries per page; larger blocks are split into pages
}

// entries records the chunks of the entries in c. n is the index of the first entry.
func (a array) entries(c *cursor, n int) {
	for ; len(c.b) >= a.size; n++ {
		if s := a.entry(&cursor{b: c.take(a.size)}, a.filtered); s.address != undefined {
			a.put(a.place(n), s)
		}
	}
}

// parseArray reads the fields that the headers of fixed and extensible arrays have in common.
func (d *Dataset) parseArray(c *cursor) (a array, err error) {
	version, client, size := c.int(1), c.int(1), c.int(1)
	a = array{Dataset: d, filtered: client == 1, size: size}
	if version != 0 || client > 1 || !entryFits(size, a.filtered) {
		return a, malformed("an array of chunks of version %d, kind %d, with entries of %d bytes", version,
			client, size)
	}
	return a, nil
}

// setPage sets the page size to 2^n entries.
func (a *array) setPage(n int) error {
	if n > 31 {
		return malformed("pages of 2^%d entries", n)
	}
	a.page = 1 << n
	return nil
}

// blockHead is the size of the common prefix of all blocks: signature, version, client ID and the
// address of the header.
const blockHead = 4 + 1 + 1 + 8

// fixedArray reads the chunk index of a data set with a fixed maximum shape.
func (d *Dataset) fixedArray() error {
	c, err := d.tree.sealed("FAHD", d.index.address, 28)
	if err != nil {
		return err
	}
	a, err := d.parseArray(c)
	if err == nil {
		err = a.setPage(c.int(1))
	}
	n, address := c.uint(8), c.uint(8)
	switch {
	case err != nil || address == undefined:
		return err
	case n > uint64(d.tree.size):
		return malformed("an array of %d chunks", n)
	}
	return a.block("FADB", address, blockHead, 0, int(n), nil)
}

// block reads n entries from a block with a prefix of head bytes. from is the index of the first
// entry. If the block is paged, a bitmap tells which pages were written. The bitmap is written if
// that is not nil; otherwise it is read from the block.
func (a array) block(signature string, address uint64, head, from, n int, written []byte) error {
	if address == undefined {
		return nil
	}
	if n <= a.page {
		c, err := a.tree.sealed(signature, address, head+n*a.size+4)
		if err == nil {
			c.take(head - len(signature))
			a.entries(c, from)
		}
		return err
	}
	bitmap := 0
	if written == nil {
		bitmap = a.bitmap(n)
	}
	c, err := a.tree.sealed(signature, address, head+bitmap+4)
	if err != nil {
		return err
	}
	if c.take(head - len(signature)); written == nil {
		written = c.take(bitmap)
	}
	address += uint64(head + bitmap + 4)
	for i := 0; i*a.page < n; i++ {
		size := min(a.page, n-i*a.page)*a.size + 4
		if written[i/8]&(0x80>>(i%8)) != 0 {
			c, err := a.tree.sealed("", address, size)
			if err != nil {
				return err
			}
			a.entries(c, from+i*a.page)
		}
		address += uint64(size)
	}
	return nil
}

// bitmap returns the size in bytes of a bitmap with one bit for each page of n entries.
func (a array) bitmap(n int) int { return ((n+a.page-1)/a.page + 7) / 8 }

// extensibleArray reads the chunk index of a data set with one unlimited dimension. The first
// entries are in the index block, the next ones in data blocks that the index block refers to, and
// the others in data blocks that secondary blocks refer to. The block size doubles with every
// second group of blocks.
func (d *Dataset) extensibleArray() error {
	c, err := d.tree.sealed("EAHD", d.index.address, 72)
	if err != nil {
		return err
	}
	a, err := d.parseArray(c)
	if err != nil {
		return err
	}
	limit, inIndex, least, pointers := c.int(1), c.int(1), c.int(1), c.int(1)
	if err := a.setPage(c.int(1)); err != nil {
		return err
	}
	c.take(48)
	address := c.uint(8)
	groups := 1 + limit - (bits.Len(uint(least)) - 1)
	direct := 2 * (bits.Len(uint(pointers)) - 1)
	if limit > 40 || least < 1 || pointers < 1 || groups < direct {
		return malformed("an array of up to 2^%d chunks, in blocks of %d", limit, least)
	}
	if address == undefined {
		return nil
	}
	c, err = d.tree.sealed("EAIB", address, blockHead+inIndex*a.size+8*2*(pointers-1)+8*(groups-direct)+4)
	if err != nil {
		return err
	}
	c.take(blockHead - 4)
	a.entries(&cursor{b: c.take(inIndex * a.size)}, 0)
	from, head := inIndex, blockHead+(limit+7)/8
	for group := range groups {
		blocks, n := 1<<(group/2), least<<((group+1)/2)
		if group < direct {
			err = a.blocks(c, head, from, blocks, n, nil)
		} else if at := c.uint(8); at != undefined {
			err = a.secondary(at, head, from, blocks, n)
		}
		if err != nil {
			return err
		}
		from += blocks * n
	}
	return nil
}

// secondary reads the data blocks that a secondary block refers to.
func (a array) secondary(address uint64, head, from, blocks, n int) error {
	bitmaps := 0
	if n > a.page {
		bitmaps = blocks * a.bitmap(n)
	}
	c, err := a.tree.sealed("EASB", address, head+bitmaps+8*blocks+4)
	if err != nil {
		return err
	}
	c.take(head - 4)
	return a.blocks(c, head, from, blocks, n, c.take(bitmaps))
}

// blocks reads consecutive data blocks of n entries each. Their addresses are read from c.
func (a array) blocks(c *cursor, head, from, blocks, n int, bitmaps []byte) error {
	for i := range blocks {
		var written []byte
		if n > a.page {
			if written = bitmaps[:min(len(bitmaps), a.bitmap(n))]; len(written) == 0 {
				return malformed("a paged block without initialization bits")
			}
			bitmaps = bitmaps[len(written):]
		}
		if err := a.block("EADB", c.uint(8), head, from+i*n, n, written); err != nil {
			return err
		}
	}
	return nil
}
