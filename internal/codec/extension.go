package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// Time writes an instant as a MessagePack timestamp of 4, 8 or 12 bytes.
// Location and monotonic clock reading do not travel.
func (e *Encoder) Time(t time.Time) {
	sec, nsec := uint64(t.Unix()), uint64(t.Nanosecond())
	switch {
	case sec>>32 == 0 && nsec == 0:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeFixext4, extTime), uint32(sec))
	case sec>>34 == 0:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeFixext8, extTime), nsec<<34|sec)
	default:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeExt8, 12, extTime), uint32(nsec))
		e.buf = binary.BigEndian.AppendUint64(e.buf, sec)
	}
}

// Block writes a reference to block h and adds h to the message's table, unless it is there
// already. It takes no reference of h; the message's sender does. The caller must hold h until
// Done.
func (e *Encoder) Block(h arena.Handle) {
	if h == 0 {
		e.setError(fmt.Errorf("encode handle 0: %w", ErrNoBlock))
		return
	}
	switch i := e.blockIndex(h); {
	case i >= MaxBlocks:
		e.setError(fmt.Errorf("encode block %d, want at most %d: %w", i, MaxBlocks, ErrTooLong))
	case i <= math.MaxUint8:
		e.buf = append(e.buf, codeFixext1, ExtBlock, byte(i))
	default:
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, codeFixext2, ExtBlock), uint16(i))
	}
}

// Give is like [Encoder.Block], but the message takes over the caller's reference when it is sent.
// It must only be used if Moves is set, and once per block and message.
func (e *Encoder) Give(h arena.Handle) {
	e.Block(h)
	e.given = append(e.given, h)
}

// fewBlocks is the number of blocks above which a map is faster than a linear search.
const fewBlocks = 32

// blockIndex returns the index of h in the message's table of blocks. It first adds h if the
// table does not have it.
func (e *Encoder) blockIndex(h arena.Handle) int {
	if len(e.blocks) <= fewBlocks {
		if i := slices.Index(e.blocks, h); i >= 0 {
			return i
		}
	} else if i, ok := e.index[h]; ok {
		return i
	}
	e.blocks = append(e.blocks, h)
	if len(e.blocks) > fewBlocks {
		e.indexBlocks()
	}
	return len(e.blocks) - 1
}

// indexBlocks adds the blocks of the table that e.index does not have yet to it.
func (e *Encoder) indexBlocks() {
	if e.index == nil {
		e.index = make(map[arena.Handle]int)
	}
	for i := len(e.index); i < len(e.blocks); i++ {
		e.index[e.blocks[i]] = i
	}
}

// Time reads an instant, in UTC.
func (d *Decoder) Time() (time.Time, error) {
	at := d.off
	b, err := d.readExt(extTime, "a timestamp")
	if err != nil {
		return time.Time{}, err
	}
	var sec, nsec uint64
	switch len(b) {
	case 4:
		sec = uint64(binary.BigEndian.Uint32(b))
	case 8:
		packed := binary.BigEndian.Uint64(b)
		sec, nsec = packed&(1<<34-1), packed>>34
	case 12:
		sec, nsec = binary.BigEndian.Uint64(b[4:]), uint64(binary.BigEndian.Uint32(b))
	default:
		return time.Time{}, d.formatError(at, "timestamp has %d bytes", len(b))
	}
	if nsec >= 1e9 {
		return time.Time{}, d.formatError(at, "timestamp has %d nanoseconds", nsec)
	}
	return time.Unix(int64(sec), int64(nsec)).UTC(), nil
}

// Block reads a reference to a block and takes the block from the message: the caller owns one
// reference to the block of the returned handle, and must release it. It returns [ErrNoBlock] if
// this receiver accepts no blocks.
func (d *Decoder) Block() (arena.Handle, error) {
	at := d.off
	b, err := d.readExt(ExtBlock, "a block")
	if err != nil {
		return 0, err
	}
	var i int
	switch len(b) {
	case 1:
		i = int(b[0])
	case 2:
		i = int(binary.BigEndian.Uint16(b))
	default:
		return 0, d.formatError(at, "block index has %d bytes", len(b))
	}
	if i >= len(d.table) {
		return 0, d.formatError(at, "block index %d, message has %d blocks", i, len(d.table))
	}
	if d.blocks == nil {
		return 0, fmt.Errorf("decode block %d at byte %d: %w: this receiver accepts no blocks", i, at, ErrNoBlock)
	}
	h, err := d.blocks.Take(i)
	if err != nil {
		return 0, fmt.Errorf("take block %d: %w", i, err)
	}
	return h, nil
}

// readExt reads an extension of type kind and returns its payload, a slice of the message's
// body. It returns [ErrFormat] if the next value is another one; want names the extension in
// that error.
func (d *Decoder) readExt(kind byte, want string) ([]byte, error) {
	at := d.off
	c, err := d.readCode()
	if err != nil {
		return nil, err
	}
	n, err := d.readExtLen(c, want)
	if err != nil {
		return nil, err
	}
	b, err := d.readRaw(n + 1)
	if err != nil {
		return nil, err
	}
	if b[0] != kind {
		return nil, d.formatError(at, "want %s, found an extension of type %d", want, int8(b[0]))
	}
	return b[1:], nil
}

// readExtLen reads the length n in bytes of the payload of the extension with leading byte c,
// which was read before; the type and n bytes follow. It returns [ErrFormat] if c begins another
// value; want names the extension in that error.
func (d *Decoder) readExtLen(c byte, want string) (n int, err error) {
	switch {
	case c >= codeFixext1 && c <= codeFix16:
		return 1 << (c - codeFixext1), nil
	case c >= codeExt8 && c <= codeExt32:
		return d.readLength(1<<(c-codeExt8), 1)
	}
	return 0, d.unexpectedError(want, c)
}
