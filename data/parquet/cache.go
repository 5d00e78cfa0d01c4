package parquet

// blockRows are read at a time.
const blockRows = 256

// A place is where a block is: in which file, row group and part of that.
type place struct {
	file         *file
	group, block int
}

// A cache keeps the blocks that were used last, as long as there is room.
type cache struct {
	room   int // in bytes; below 0 only while one block is larger than all of it
	blocks map[place]*block
	used   []place // the last one at the end
}

func (c *cache) get(at place) *block {
	b := c.blocks[at]
	if b != nil && c.used[len(c.used)-1] != at {
		c.forget(at)
		c.used = append(c.used, at)
	}
	return b
}

func (c *cache) put(at place, b *block) {
	if c.blocks == nil {
		c.blocks = map[place]*block{}
	}
	c.room -= b.bytes
	for c.room < 0 && len(c.used) > 0 {
		oldest := c.used[0]
		c.room += c.blocks[oldest].bytes
		delete(c.blocks, oldest)
		c.forget(oldest)
	}
	c.blocks[at], c.used = b, append(c.used, at)
}

func (c *cache) forget(at place) {
	for i, p := range c.used {
		if p == at {
			c.used = append(c.used[:i], c.used[i+1:]...)
			return
		}
	}
}
