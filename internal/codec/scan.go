package codec

import (
	"encoding/binary"
	"fmt"
)

// This file is how a Decoder moves through the body. All other code uses these methods, so one
// place compares lengths with the bytes that are left.

// readCode reads the leading byte of the next value. It returns [ErrFormat] at the end of the
// body.
func (d *Decoder) readCode() (byte, error) {
	if d.off >= len(d.body) {
		return 0, d.shortError(1)
	}
	c := d.body[d.off]
	d.off++
	return c, nil
}

// readRaw reads n bytes and returns them as a slice of the body. n must not be negative. It
// returns [ErrFormat] if fewer remain.
func (d *Decoder) readRaw(n int) ([]byte, error) {
	if n > len(d.body)-d.off {
		return nil, d.shortError(n)
	}
	b := d.body[d.off : d.off+n]
	d.off += n
	return b, nil
}

// readBigEndian reads an unsigned big-endian number of size bytes; size must be 1, 2, 4 or 8.
func (d *Decoder) readBigEndian(size int) (v uint64, err error) {
	b, err := d.readRaw(size)
	switch len(b) {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.BigEndian.Uint16(b))
	case 4:
		v = uint64(binary.BigEndian.Uint32(b))
	case 8:
		v = binary.BigEndian.Uint64(b)
	}
	return v, err
}

// readLength reads a number of size bytes, at most 4, that counts elements of at least min bytes
// each. It returns [ErrFormat] if the body is too short for them.
func (d *Decoder) readLength(size, min int) (int, error) {
	n, err := d.readBigEndian(size)
	if err != nil {
		return 0, err
	}
	return d.checkCount(int64(n), min)
}

// checkCount returns n if the rest of the body has room for n elements of at least min bytes,
// and [ErrFormat] otherwise. Memory for n elements is allocated only after this check.
func (d *Decoder) checkCount(n int64, min int) (int, error) {
	// n, from 32 bits, times min does not overflow, and a division takes longer than the rest
	if left := len(d.body) - d.off; n*int64(min) > int64(left) {
		return 0, d.formatError(d.off, "%d elements of at least %d bytes announced, only %d bytes remain", n, min, left)
	}
	return int(n), nil
}

// skipValue reads one value of any kind, without recursion. left counts the values still to read.
func (d *Decoder) skipValue() error {
	for left := int64(1); left > 0; left-- {
		nested, err := d.skipOne()
		if err != nil {
			return err
		}
		left += int64(nested)
	}
	return nil
}

// skipOne reads one value and returns 0. Of an array or a map it reads only the beginning, and
// returns the number of values in it, which come next.
func (d *Decoder) skipOne() (nested int, err error) {
	c, err := d.readCode()
	if err != nil {
		return 0, err
	}
	n := 0
	switch kindOfCode(c) {
	case "nil", "a boolean":
	case "an array":
		d.off--
		return d.ArrayLen()
	case "a map":
		d.off--
		nested, err = d.MapLen()
		return 2 * nested, err
	case "an integer":
		d.off--
		_, _, err = d.readInteger()
	case "a float":
		n = 4 << (c - codeFloat32)
	case "a string", "bytes":
		n, _, err = d.readStringLen(c)
	case "an extension":
		n, err = d.readExtLen(c, "an extension")
		n++
	default:
		return 0, d.unexpectedError("a value", c)
	}
	if err == nil {
		_, err = d.readRaw(n)
	}
	return 0, err
}

// enterLevel increments the depth, and returns [ErrTooDeep] if it exceeds the limit. Each
// successful call must be followed by leaveLevel.
func (d *Decoder) enterLevel() error {
	d.depth++
	if d.depth > d.Limits.depth() {
		return fmt.Errorf("decode level %d at byte %d: %w", d.depth, d.off, ErrTooDeep)
	}
	return nil
}

func (d *Decoder) leaveLevel() { d.depth-- }

func (d *Decoder) shortError(n int) error {
	if d.err != nil {
		return d.err
	}
	return d.formatError(d.off, "want %d bytes, only %d remain", n, len(d.body)-d.off)
}

// unexpectedError returns the [ErrFormat] for a value that begins with c, the leading byte just
// read, in place of the kind of value want.
func (d *Decoder) unexpectedError(want string, c byte) error {
	return d.formatError(d.off-1, "want %s, found %s", want, kindOfCode(c))
}

func (d *Decoder) formatError(at int, format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", ErrFormat, at, fmt.Sprintf(format, args...))
}

func (d *Decoder) overflowError(at int, v any, typ string) error {
	return fmt.Errorf("%w %s at byte %d: %v", ErrOverflow, typ, at, v)
}
