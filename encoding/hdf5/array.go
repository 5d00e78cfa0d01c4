package hdf5

import "math/bits"

// array decodes a chunk index that is a fixed array or an extensible array, and records the
// chunks in the data set. [Dataset.parseArray] makes it.
type array struct {
	*Dataset
	filtered bool
	size     int // bytes per entry
	page     int // entries per page; larger blocks are split into pages
}

// recordEntries records the chunks of the entries in c, which it reads to the end. n is the
// index of the first entry.
func (a array) recordEntries(c *cursor, n int) {
	for ; len(c.b) >= a.size; n++ {
		if s := a.decodeEntry(&cursor{b: c.takeBytes(a.size)}, a.filtered); s.address != undefined {
			a.recordChunk(a.chunkCoordinates(n), s)
		}
	}
}

// parseArray reads from c the fields that the headers of fixed and extensible arrays have in
// common. The caller must call setPage on the result. The error wraps [ErrFormat].
func (d *Dataset) parseArray(c *cursor) (a array, err error) {
	version, client, size := c.readInt(1), c.readInt(1), c.readInt(1)
	a = array{Dataset: d, filtered: client == 1, size: size}
	if version != 0 || client > 1 || !isEntrySize(size, a.filtered) {
		return a, malformed("an array of chunks of version %d, kind %d, with entries of %d bytes", version,
			client, size)
	}
	return a, nil
}

// setPage sets the page size to 2^n entries. The error wraps [ErrFormat] if n exceeds 31.
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

// readFixedArray reads the chunk index of a data set with a fixed maximum shape, and records the
// chunks in d.chunks.
func (d *Dataset) readFixedArray() error {
	c, err := d.tree.readSealed("FAHD", d.index.address, 28)
	if err != nil {
		return err
	}
	a, err := d.parseArray(c)
	if err == nil {
		err = a.setPage(c.readInt(1))
	}
	n, address := c.readUint(8), c.readUint(8)
	switch {
	case err != nil || address == undefined:
		return err
	case n > uint64(d.tree.size):
		return malformed("an array of %d chunks", n)
	}
	return a.readBlock("FADB", address, blockHead, 0, int(n), nil)
}

// readBlock reads the n entries of the block at address and records their chunks. from is the index
// of the first entry. The block must begin with signature, which is part of its prefix of head
// bytes. If address is undefined, there is no block, and readBlock does nothing. A block of more
// than a.page entries has pages, and a bitmap has a bit for each page that has been written: the
// argument written, or if that is nil, a bitmap after the prefix. The error wraps [ErrFormat] if
// the block is malformed.
func (a array) readBlock(signature string, address uint64, head, from, n int, written []byte) error {
	if address == undefined {
		return nil
	}
	if n <= a.page {
		c, err := a.tree.readSealed(signature, address, head+n*a.size+4)
		if err == nil {
			c.takeBytes(head - len(signature))
			a.recordEntries(c, from)
		}
		return err
	}
	bitmap := 0
	if written == nil {
		bitmap = a.bitmapSize(n)
	}
	c, err := a.tree.readSealed(signature, address, head+bitmap+4)
	if err != nil {
		return err
	}
	if c.takeBytes(head - len(signature)); written == nil {
		written = c.takeBytes(bitmap)
	}
	address += uint64(head + bitmap + 4)
	for i := 0; i*a.page < n; i++ {
		size := min(a.page, n-i*a.page)*a.size + 4
		if written[i/8]&(0x80>>(i%8)) != 0 {
			c, err := a.tree.readSealed("", address, size)
			if err != nil {
				return err
			}
			a.recordEntries(c, from+i*a.page)
		}
		address += uint64(size)
	}
	return nil
}

// bitmapSize returns the size in bytes of a bitmap with one bit for each page of n entries.
func (a array) bitmapSize(n int) int { return ((n+a.page-1)/a.page + 7) / 8 }

// readExtensibleArray reads the chunk index of a data set with one unlimited dimension, and
// records the chunks in d.chunks. The first entries are in the index block, the next ones in
// data blocks that the index block refers to, and the others in data blocks that secondary
// blocks refer to. The block size doubles with every second group of blocks.
func (d *Dataset) readExtensibleArray() error {
	c, err := d.tree.readSealed("EAHD", d.index.address, 72)
	if err != nil {
		return err
	}
	a, err := d.parseArray(c)
	if err != nil {
		return err
	}
	limit, inIndex, least, pointers := c.readInt(1), c.readInt(1), c.readInt(1), c.readInt(1)
	if err := a.setPage(c.readInt(1)); err != nil {
		return err
	}
	c.takeBytes(48)
	address := c.readUint(8)
	groups := 1 + limit - (bits.Len(uint(least)) - 1)
	direct := 2 * (bits.Len(uint(pointers)) - 1)
	if limit > 40 || least < 1 || pointers < 1 || groups < direct {
		return malformed("an array of up to 2^%d chunks, in blocks of %d", limit, least)
	}
	if address == undefined {
		return nil
	}
	c, err = d.tree.readSealed("EAIB", address, blockHead+inIndex*a.size+8*2*(pointers-1)+8*(groups-direct)+4)
	if err != nil {
		return err
	}
	c.takeBytes(blockHead - 4)
	a.recordEntries(&cursor{b: c.takeBytes(inIndex * a.size)}, 0)
	from, head := inIndex, blockHead+(limit+7)/8
	for group := range groups {
		blocks, n := 1<<(group/2), least<<((group+1)/2)
		if group < direct {
			err = a.readBlocks(c, head, from, blocks, n, nil)
		} else if at := c.readUint(8); at != undefined {
			err = a.readSecondary(at, head, from, blocks, n)
		}
		if err != nil {
			return err
		}
		from += blocks * n
	}
	return nil
}

// readSecondary reads the data blocks that the secondary block at address refers to. The other
// arguments are as in readBlocks.
func (a array) readSecondary(address uint64, head, from, blocks, n int) error {
	bitmaps := 0
	if n > a.page {
		bitmaps = blocks * a.bitmapSize(n)
	}
	c, err := a.tree.readSealed("EASB", address, head+bitmaps+8*blocks+4)
	if err != nil {
		return err
	}
	c.takeBytes(head - 4)
	return a.readBlocks(c, head, from, blocks, n, c.takeBytes(bitmaps))
}

// readBlocks reads consecutive data blocks of n entries each. Their addresses are read from c.
// head is the size of a block's prefix in bytes, and from is the index of the first entry.
// bitmaps has the bits for the pages of each block, and is empty if the blocks have no pages.
func (a array) readBlocks(c *cursor, head, from, blocks, n int, bitmaps []byte) error {
	for i := range blocks {
		var written []byte
		if n > a.page {
			if written = bitmaps[:min(len(bitmaps), a.bitmapSize(n))]; len(written) == 0 {
				return malformed("a paged block without initialization bits")
			}
			bitmaps = bitmaps[len(written):]
		}
		if err := a.readBlock("EADB", c.readUint(8), head, from+i*n, n, written); err != nil {
			return err
		}
	}
	return nil
}
