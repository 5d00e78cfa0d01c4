package codec

import (
	"fmt"
	"reflect"
	"unsafe"
)

// rawSize returns the size in bytes of a value of type t, the type of f, if its encoding in a
// batch is its memory: f consists of numbers only, without padding between them and without
// fields that are left out. It returns 0 for other types.
func (f flat) rawSize(t reflect.Type) int {
	var size uintptr
	for i := range f {
		switch k := f[i].kind; {
		case k >= reflect.Int && k <= reflect.Complex128 && k != reflect.Uintptr:
			size += f[i].typ.Size()
		case k != reflect.Struct:
			return 0
		}
	}
	if size != t.Size() {
		return 0
	}
	return int(size)
}

// isCopied reports whether the assignment of a value of type t, the type of f, has the same
// result as sending it: f consists of numbers, booleans and strings, and no field is left out.
// An instant is not copied, because its location and its monotonic reading are not sent.
func (f flat) isCopied(t reflect.Type) bool {
	for i := range f {
		if k := f[i].kind; k == kindTime || k == reflect.Pointer {
			return false
		}
	}
	return hasAllFields(t)
}

// hasAllFields reports whether t, a type of numbers, booleans and strings or a struct of these,
// has no field that is left out of its encoding.
func hasAllFields(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return true
	}
	for f := range t.Fields() {
		if f.Tag.Get("wire") == skipTag || !hasAllFields(f.Type) {
			return false
		}
	}
	return true
}

// flat returns the flat codec of T, or nil if T has another codec. It is also nil if T cannot be
// encoded.
func (p *Plan[T]) flat() flat {
	n, err := p.buildNode()
	if err != nil {
		return nil
	}
	f, _ := n.codec.(flat)
	return f
}

// Copied reports whether the assignment of a value of type T has the same result as encoding and
// decoding it. A process may then pass values of T to itself without encoding them.
func (p *Plan[T]) Copied() bool {
	f := p.flat()
	return f != nil && f.isCopied(reflect.TypeFor[T]())
}

// EncodeAll writes a batch of values, which must be read with [Plan.DecodeAll] by a process of the
// same program. Numbers, and structs that consist of numbers without padding, are written as one
// string of bytes, their memory. Other values are written one after another. The errors are the
// same as for [Plan.Encode].
//
// unsafe: the bytes of a number have no pointers, and every byte of the values belongs to a number.
func (p *Plan[T]) EncodeAll(e *Encoder, vs []T) error {
	f := p.flat()
	if f == nil {
		for _, v := range vs {
			if err := p.Encode(e, v); err != nil {
				return err
			}
		}
		return e.err
	}
	size := f.rawSize(reflect.TypeFor[T]())
	if size > 0 && len(vs) <= (e.Limits.bytes()-len(e.buf)-maxHeader)/size {
		e.Bytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vs))), len(vs)*size))
		return e.err
	}
	for i := range vs {
		err := f.write(e, unsafe.Pointer(&vs[i]))
		if err == nil && len(e.buf) > e.Limits.bytes() {
			e.checkRoom(0)
		}
		if err == nil {
			err = e.err
		}
		if err != nil {
			return fmt.Errorf("encode %s: %w", nameOf(reflect.TypeFor[T]()), err)
		}
	}
	return e.err
}

// maxHeader is the length of the longest header of a string of bytes.
const maxHeader = 5

// DecodeAll reads a batch that was written with [Plan.EncodeAll] into vs, which must be as long as
// the batch. The elements of vs must be zero values. After an error their contents are undefined,
// and the errors are the same as for [Plan.Decode].
//
// unsafe: every bit pattern is a valid number, and vs has no other bytes than those of numbers.
func (p *Plan[T]) DecodeAll(d *Decoder, vs []T) error {
	f := p.flat()
	size := f.rawSize(reflect.TypeFor[T]())
	if size > 0 && d.isBytes() {
		at := d.off
		b, err := d.BytesInPlace()
		if err == nil && len(b) != len(vs)*size {
			err = d.formatError(at, "want %d values of %d bytes, found %d bytes", len(vs), size, len(b))
		}
		if err != nil {
			return fmt.Errorf("decode %s: %w", nameOf(reflect.TypeFor[T]()), err)
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vs))), len(b)), b)
		return nil
	}
	for i := range vs {
		var err error
		if f == nil {
			vs[i], err = p.Decode(d)
		} else if err = f.read(d, unsafe.Pointer(&vs[i])); err != nil {
			err = fmt.Errorf("decode %s: %w", nameOf(reflect.TypeFor[T]()), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DecodeN reads a batch of exactly n values that was written with [Plan.EncodeAll]. It checks n
// against the length of the message before it allocates memory. The errors are the same as for
// [Plan.Decode].
func (p *Plan[T]) DecodeN(d *Decoder, n int) ([]T, error) {
	b, err := p.buildNode()
	if err != nil {
		return nil, err
	}
	smallest := b.min
	if f, ok := b.codec.(flat); ok {
		if size := f.rawSize(reflect.TypeFor[T]()); size > 0 && d.isBytes() {
			smallest = size
		}
	}
	if err := d.checkValues(n, smallest); err != nil {
		return nil, err
	}
	vs := make([]T, n)
	return vs, p.DecodeAll(d, vs)
}

// isBytes reports whether the next value is a string of bytes. It does not read it.
func (d *Decoder) isBytes() bool {
	return d.off < len(d.body) && d.body[d.off] >= codeBin8 && d.body[d.off] <= codeBin32
}

// CheckCount returns [ErrFormat] if n is negative or the rest of the message is too short for n
// values.
func (d *Decoder) CheckCount(n int) error { return d.checkValues(n, 1) }

func (d *Decoder) checkValues(n, min int) error {
	if left := len(d.body) - d.off; n < 0 || n > left/min {
		return d.formatError(d.off, "%d values of at least %d bytes announced, only %d bytes remain", n, min, left)
	}
	return nil
}
