package codec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A Decoder reads values from the body of one message. The caller must call [Decoder.Reset] before
// the first value, and [Decoder.Done] after the last. It must not be used by several goroutines at
// once.
//
// Every method validates its input. A wrong kind, a truncated body and a length beyond the body
// return [ErrFormat] with the byte's offset. Returned values do not refer to the body's memory
// unless documented.
type Decoder struct {
	Limits Limits // set before Reset

	// Ends, if set before Reset, collects the watchers given to OnEnd. The receiver of the values
	// must call their Done(false) when it no longer uses the values.
	Ends *[]Watcher

	body   []byte
	off    int
	table  []arena.Handle
	blocks Blocks
	seen   []reflect.Value // values that CustomOnce references may refer to
	hooks  []Watcher
	depth  int
	spare  int   // bytes that may still be allocated for announced elements
	err    error // the message as a whole is rejected
}

// Reset starts to read m. The body must not be modified until Done. The Decoder takes the blocks of
// m through blocks; nil accepts none. Reset panics if Done was not called for the previous message.
func (d *Decoder) Reset(m Message, blocks Blocks) {
	if len(d.hooks) != 0 {
		panic("wire: Decoder.Reset called before Done of the previous message")
	}
	d.body, d.off, d.depth, d.err = m.Body, 0, 0, nil
	d.resetSeen()
	d.table, d.blocks, d.spare = m.Blocks, blocks, memoryPerByte*len(m.Body)
	if limit := d.Limits.bytes(); len(m.Body) > limit {
		d.body, d.err = nil,
			fmt.Errorf("decode: message has %d bytes, want at most %d: %w", len(m.Body), limit, ErrTooLong)
	}
}

// memoryPerByte is the memory that may be allocated per byte of the message before the announced
// elements are read. A well-formed message rarely needs more: a string or a slice header takes 16
// or 24 bytes.
const memoryPerByte = 32

// Finish returns [ErrFormat] if part of the message was not read, and [ErrTooLong] if the
// message exceeds the limit. It should be called after the last value.
func (d *Decoder) Finish() error {
	if d.err == nil && d.off < len(d.body) {
		return d.formatError(d.off, "%d extra bytes after the last value", len(d.body)-d.off)
	}
	return d.err
}

// OnDone registers w, so that the next [Decoder.Done] calls w.Done with its argument. A value
// that took a block should use it to release the block if the decoded values are not used,
// because a later part of the message was malformed.
func (d *Decoder) OnDone(w Watcher) { d.hooks = append(d.hooks, w) }

// OnEnd appends w to d.Ends, so that the receiver calls w.Done(false) when it no longer uses the
// value. It does nothing if d.Ends is nil. It is for values that other processes wait for.
func (d *Decoder) OnEnd(w Watcher) {
	if d.Ends != nil {
		*d.Ends = append(*d.Ends, w)
	}
}

// Done calls the watchers given to OnDone, last one first. kept reports whether the decoded values
// are used. The caller must call Done exactly once for each message, and then release the blocks of
// the table that no value took.
func (d *Decoder) Done(kept bool) {
	runHooks(&d.hooks, kept)
	d.resetSeen()
}

// Watchers returns and removes the watchers given to OnDone. The caller must call their Done
// later, in place of [Decoder.Done]. It is for callers that do not know yet whether the values
// are used.
func (d *Decoder) Watchers() (w Watchers) {
	if len(d.hooks) > 0 {
		w = slices.Clone(d.hooks)
		clear(d.hooks)
		d.hooks = d.hooks[:0]
	}
	d.resetSeen()
	return w
}

func (d *Decoder) resetSeen() {
	if len(d.seen) > 0 {
		clear(d.seen)
		d.seen = d.seen[:0]
	}
}

// IsNil reports whether the next value is nil, and if so reads it. Otherwise it reads nothing.
func (d *Decoder) IsNil() bool {
	if d.off < len(d.body) && d.body[d.off] == codeNil {
		d.off++
		return true
	}
	return false
}

// Bool reads a boolean.
func (d *Decoder) Bool() (bool, error) {
	c, err := d.readCode()
	if err == nil && c != codeFalse && c != codeTrue {
		err = d.unexpectedError("a boolean", c)
	}
	return c == codeTrue, err
}

// Int reads an integer in any of its forms. It returns [ErrOverflow] if the integer exceeds
// int64.
func (d *Decoder) Int() (int64, error) {
	if n, ok := d.readFixint(); ok {
		return int64(n), nil
	}
	at := d.off
	bits, negative, err := d.readInteger()
	if err == nil && !negative && bits > math.MaxInt64 {
		return 0, d.overflowError(at, bits, "int64")
	}
	return int64(bits), err
}

// Uint reads an integer in any of its forms. It returns [ErrOverflow] if the integer is
// negative.
func (d *Decoder) Uint() (uint64, error) {
	if n, ok := d.readFixint(); ok {
		return uint64(n), nil
	}
	at := d.off
	bits, negative, err := d.readInteger()
	if negative {
		return 0, d.overflowError(at, int64(bits), "uint64")
	}
	return bits, err
}

// readFixint reads an integer from 0 to 127, which is its own leading byte, and returns true if
// the next value is one. Otherwise it reads nothing and returns false.
func (d *Decoder) readFixint() (n byte, ok bool) {
	if d.off < len(d.body) {
		if n = d.body[d.off]; n <= fixintMax {
			d.off++
			return n, true
		}
	}
	return 0, false
}

// readInteger reads an integer in any of its forms and returns it as 64 bits. If negative is
// true, they are the bits of a negative int64, and otherwise a uint64.
func (d *Decoder) readInteger() (bits uint64, negative bool, err error) {
	c, err := d.readCode()
	switch {
	case err != nil:
		return 0, false, err
	case c <= fixintMax:
		return uint64(c), false, nil
	case c >= negFixint:
		return uint64(int8(c)), true, nil
	case c >= codeUint8 && c <= codeUint64:
		bits, err = d.readBigEndian(1 << (c - codeUint8))
		return bits, false, err
	case c >= codeInt8 && c <= codeInt64:
		size := 1 << (c - codeInt8)
		bits, err = d.readBigEndian(size)
		unused := 64 - 8*size
		v := int64(bits<<unused) >> unused
		return uint64(v), v < 0, err
	}
	return 0, false, d.unexpectedError("an integer", c)
}

// Float reads a floating-point number of 64 or 32 bits. It does not read integers.
func (d *Decoder) Float() (float64, error) {
	c, err := d.readCode()
	if err != nil {
		return 0, err
	}
	switch c {
	case codeFloat64:
		bits, err := d.readBigEndian(8)
		return math.Float64frombits(bits), err
	case codeFloat32:
		bits, err := d.readBigEndian(4)
		return float64(math.Float32frombits(uint32(bits))), err
	}
	return 0, d.unexpectedError("a float", c)
}

// Float32 reads a floating-point number of 32 bits, or one of 64 bits that loses nothing in 32;
// for another one it returns [ErrOverflow]. Writers in other languages often have only 64 bits.
func (d *Decoder) Float32() (float32, error) {
	at := d.off
	if at < len(d.body) && d.body[at] == codeFloat32 {
		d.off++
		bits, err := d.readBigEndian(4)
		return math.Float32frombits(uint32(bits)), err
	}
	v, err := d.Float()
	if err == nil && v == v && float64(float32(v)) != v {
		return 0, d.overflowError(at, v, "float32")
	}
	return float32(v), err
}

// String reads a string. It returns [ErrFormat] if the string is not UTF-8. It also reads bytes,
// because Encoder.String writes text that is not UTF-8 as bytes.
func (d *Decoder) String() (string, error) {
	at := d.off
	c, err := d.readCode()
	if err != nil {
		return "", err
	}
	n, text, err := d.readStringLen(c)
	if err != nil {
		return "", err
	}
	b, err := d.readRaw(n)
	s := string(b)
	if text && !utf8.ValidString(s) {
		return "", d.formatError(at, "string is not UTF-8")
	}
	return s, err
}

// readStringLen reads the length in bytes of the string or the byte string with leading byte c,
// which was read before. text reports whether it is a string.
func (d *Decoder) readStringLen(c byte) (n int, text bool, err error) {
	switch {
	case c >= fixstr && c < codeNil:
		return int(c - fixstr), true, nil
	case c >= codeStr8 && c <= codeStr32:
		n, err = d.readLength(1<<(c-codeStr8), 1)
		return n, true, err
	case c >= codeBin8 && c <= codeBin32:
		n, err = d.readLength(1<<(c-codeBin8), 1)
		return n, false, err
	}
	return 0, false, d.unexpectedError("a string", c)
}

// Bytes reads a byte string into memory of its own, which the caller owns. The result is never
// nil.
func (d *Decoder) Bytes() ([]byte, error) {
	b, err := d.BytesInPlace()
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(b)), b...), nil
}

// BytesInPlace reads a byte string and returns it as a slice of the message's body. The caller
// must not modify it, nor use it after the body is reused.
func (d *Decoder) BytesInPlace() ([]byte, error) {
	c, err := d.readCode()
	if err != nil {
		return nil, err
	}
	if c < codeBin8 || c > codeBin32 {
		return nil, d.unexpectedError("bytes", c)
	}
	n, err := d.readLength(1<<(c-codeBin8), 1)
	if err != nil {
		return nil, err
	}
	return d.readRaw(n)
}

// ArrayLen reads the beginning of an array; n values follow. The caller must read them. At least
// n more bytes follow, so n is safe to allocate for.
func (d *Decoder) ArrayLen() (n int, err error) {
	c, err := d.readCode()
	switch {
	case err != nil:
		return 0, err
	case c >= fixarray && c < fixstr:
		return d.checkCount(int64(c-fixarray), 1)
	case c == codeArray16, c == codeArray32:
		return d.readLength(2<<(c-codeArray16), 1)
	}
	return 0, d.unexpectedError("an array", c)
}

// ArrayOf reads the beginning of an array that must have n values. It returns [ErrFormat] if the
// array has another number.
func (d *Decoder) ArrayOf(n int) error {
	at := d.off
	got, err := d.ArrayLen()
	if err == nil && got != n {
		return d.formatError(at, "want an array of %d values, found one of %d", n, got)
	}
	return err
}

// MapLen reads the beginning of a map; n keys follow, each followed by its value. The caller
// must read them. At least 2n more bytes follow.
func (d *Decoder) MapLen() (n int, err error) {
	c, err := d.readCode()
	switch {
	case err != nil:
		return 0, err
	case c >= fixmap && c < fixarray:
		return d.checkCount(int64(c-fixmap), 2)
	case c == codeMap16, c == codeMap32:
		return d.readLength(2<<(c-codeMap16), 2)
	}
	return 0, d.unexpectedError("a map", c)
}
