package hdf5

// Types of object header messages.
const (
	msgDataspace     = 0x01
	msgLinkInfo      = 0x02
	msgDatatype      = 0x03
	msgFill          = 0x05
	msgLink          = 0x06
	msgExternal      = 0x07
	msgLayout        = 0x08
	msgGroupInfo     = 0x0a
	msgFilters       = 0x0b
	msgAttribute     = 0x0c
	msgContinuation  = 0x10
	msgSymbolTable   = 0x11
	msgAttributeInfo = 0x15
)

// message is an object header message. in is the header block that contains it.
type message struct {
	kind   int
	body   []byte
	shared bool // the body refers to a message elsewhere
	vital  bool // a reader must not ignore an unknown type
	flags  int
	order  []byte // the creation order, if tracked
	at     uint64 // address of the body
	in     block
}

// Message flags.
const (
	flagShared = 1 << 1
	flagVital  = 1 << 7
)

// lastKind is the highest message type defined by HDF5 1.14.
const lastKind = 0x17

func (m *message) setFlag(flags int) {
	m.flags, m.shared, m.vital = flags, flags&flagShared != 0, flags&flagVital != 0
}

// Limits of an object header, which bound malformed files.
const (
	maxChunks   = 1 << 12
	maxMessages = 1 << 20
	maxHeader   = 64 << 20
)

// block is a contiguous part of the file, for example one that contains header messages: its
// address and its size in bytes.
type block struct {
	address uint64
	size    uint64
}

// readMessages decodes an object header of version 1 or 2, including its continuation blocks.
// The error wraps [ErrFormat] or [ErrUnsupported].
func (s source) readMessages(address uint64) ([]message, error) {
	start, err := s.readAt(address, 16)
	if err != nil {
		return nil, err
	}
	if string(start[:4]) == "OHDR" {
		return s.readMessagesV2(address)
	}
	c := &cursor{b: start}
	if version := c.readInt(1); version != 1 {
		return nil, malformed("no object header at %d", address)
	}
	c.takeBytes(7)
	first := block{address + 16, c.readUint(4)}
	return s.collectMessages(first, 0, func(at block) (*cursor, error) {
		b, err := s.readAt(at.address, int(min(at.size, maxHeader)))
		return &cursor{b: b}, err
	}, func(c *cursor) message {
		m := message{kind: c.readInt(2)}
		size := c.readInt(2)
		m.setFlag(c.readInt(1))
		c.takeBytes(3)
		m.body = c.takeBytes(size)
		return m
	})
}

// Flags of an object header of version 2.
const (
	headerSizeMask   = 3      // base-2 logarithm of the width of the size field
	headerOrder      = 1 << 2 // messages have a 2-byte creation order
	headerAttributes = 1 << 4 // attribute storage limits are present
	headerTimes      = 1 << 5
)

// readFirstBlock returns the first block of an object header of version 2, the size in bytes of
// the prefix that precedes the messages in it, and the header flags. The block includes the
// prefix and the checksum. The error wraps [ErrFormat] or [ErrUnsupported].
func (s source) readFirstBlock(address uint64) (first block, prefix uint64, flags int, err error) {
	start, err := s.readAt(address, int(min(uint64(s.size)-address, 40)))
	if err != nil {
		return block{}, 0, 0, err
	}
	c := &cursor{b: start[4:]}
	if version := c.readInt(1); version != 2 {
		return block{}, 0, 0, unsupported("version %d of an object's header", version)
	}
	flags = c.readInt(1)
	if flags&headerTimes != 0 {
		c.takeBytes(16)
	}
	if flags&headerAttributes != 0 {
		c.takeBytes(4)
	}
	size := c.readUint(1 << (flags & headerSizeMask))
	if c.short || size > maxHeader {
		return block{}, 0, 0, malformed("the header of an object at %d", address)
	}
	prefix = uint64(len(start) - len(c.b))
	return block{address, prefix + size + checksumSize}, prefix, flags, nil
}

// readMessagesV2 decodes an object header of version 2, including its continuation blocks. Each of
// the blocks has a checksum. The error wraps [ErrFormat] or [ErrUnsupported].
func (s source) readMessagesV2(address uint64) ([]message, error) {
	first, prefix, flags, err := s.readFirstBlock(address)
	if err != nil {
		return nil, err
	}
	return s.collectMessages(first, checksumSize, func(at block) (*cursor, error) {
		b, err := s.readAt(at.address, int(min(at.size, maxHeader)))
		if err != nil {
			return nil, err
		}
		if len(b) < 8 {
			return nil, malformed("a block of %d bytes", len(b))
		}
		sum := &cursor{b: b[len(b)-4:]}
		if b = b[:len(b)-4]; uint32(sum.readUint(4)) != lookup3(b) {
			return nil, malformed("wrong checksum of the header at %d", at.address)
		}
		if at.address == address {
			return &cursor{b: b[prefix:]}, nil
		}
		if string(b[:4]) != "OCHK" {
			return nil, malformed("no OCHK at %d", at.address)
		}
		return &cursor{b: b[4:]}, nil
	}, func(c *cursor) message {
		m := message{kind: c.readInt(1)}
		size := c.readInt(2)
		m.setFlag(c.readInt(1))
		if flags&headerOrder != 0 {
			m.order = c.takeBytes(2)
		}
		m.body = c.takeBytes(size)
		return m
	})
}

// checksumSize is the size in bytes of the checksum at the end of each block of a header of version
// 2.
const checksumSize = 4

// collectMessages decodes the messages of a header block and of its continuation blocks. open
// returns the message area of a block, and next decodes one message. tail is the number of bytes
// that follow the messages in a block. The error wraps [ErrUnsupported] if the type of a message
// is unknown but must be understood, and [ErrFormat] if a message is cut short.
func (s source) collectMessages(first block, tail int, open func(block) (*cursor, error),
	next func(*cursor) message) (all []message, err error) {
	blocks := []block{first}
	for i := 0; i < len(blocks); i++ {
		if i == maxChunks {
			return nil, malformed("a header of more than %d pieces", maxChunks)
		}
		c, err := open(blocks[i])
		if err != nil {
			return nil, err
		}
		for len(c.b) >= 8 || len(c.b) >= 4 && c.b[0] != 0 { // a smaller rest is a gap
			m := next(c)
			m.in, m.at = blocks[i], blocks[i].address+blocks[i].size-uint64(tail+len(c.b)+len(m.body))
			if c.short || len(all) == maxMessages {
				return nil, malformed("a message in a header is cut short")
			}
			if m.vital && m.kind > lastKind {
				return nil, unsupported(
					"an unknown header message of kind %d, which is marked as required for reading", m.kind)
			}
			if m.kind == msgContinuation {
				to := &cursor{b: m.body}
				blocks = append(blocks, block{to.readUint(8), to.readUint(8)})
				continue
			}
			all = append(all, m)
		}
	}
	return all, nil
}
