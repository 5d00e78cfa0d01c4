package codec

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// A flat encodes and decodes values of a fixed size in memory, field by field at their offsets:
// numbers, strings, times, pointers known to Custom, and structs of these. Reflection would take
// longer than the rest of a small message, and would need addressable values.
//
// unsafe: the kind of each step equals the kind of the field at its offset, as reported by
// reflection when the plan was built, and all offsets are inside the value. The steps make no
// dynamic call with the value's address, so the value may stay on its goroutine's stack.
type flat []step

// A step is one number, string, instant or pointer, or the beginning of a struct.
type step struct {
	kind    reflect.Kind
	at      uintptr // the place from the beginning of the value
	fields  int     // of a struct
	pointer pointed // of a pointer
	typ     reflect.Type
	path    string // "field Loss: ", for errors
}

// kindTime stands for time.Time, because reflection has no kind for it.
const kindTime = reflect.UnsafePointer + 1

// pointed is the codec of a pointer to a type T given to [Custom]. p and the result are a *T,
// which may be nil.
type pointed interface {
	appendPointer(e *Encoder, p unsafe.Pointer) error
	parsePointer(d *Decoder) (unsafe.Pointer, error)
}

// scalarOf returns the codec of a type with values that are single numbers or strings, and their
// minimum encoded size in bytes. It returns nil and 0 for other types.
func scalarOf(t reflect.Type) (f flat, min int) {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Uint64, k == reflect.String:
		min = 1
	case k == reflect.Float32, k == reflect.Float64:
		min = 5 // a reader takes 32 bits as well
	case k == reflect.Complex64, k == reflect.Complex128:
		min = 11
	default:
		return nil, 0
	}
	return flat{{kind: t.Kind(), typ: t}}, min
}

// structOf returns the flat codec of the struct type t with the encoded fields fields. It
// returns nil unless the codecs of all of them are flat.
func structOf(t reflect.Type, fields []field) flat {
	f := flat{{kind: reflect.Struct, fields: len(fields), typ: t}}
	for _, in := range fields {
		elem, ok := in.codec.(flat)
		if !ok {
			return nil
		}
		for _, s := range elem {
			s.at += t.Field(in.index).Offset
			s.path = "field " + in.name + ": " + s.path
			f = append(f, s)
		}
	}
	return f
}

func (f flat) encode(e *Encoder, v reflect.Value) error { return f.write(e, v.Addr().UnsafePointer()) }

func (f flat) decode(d *Decoder, v reflect.Value) error { return f.read(d, v.Addr().UnsafePointer()) }

// write writes the value at address p, which must have the type of f.
func (f flat) write(e *Encoder, p unsafe.Pointer) error {
	for i := range f {
		s := &f[i]
		if err := s.appendValue(e, unsafe.Add(p, s.at)); err != nil {
			return s.wrapError(err)
		}
	}
	return nil
}

// read reads a value of the type of f into address p, where the zero value must be. After an
// error the value is partly set.
func (f flat) read(d *Decoder, p unsafe.Pointer) error {
	for i := range f {
		s := &f[i]
		if err := s.parseValue(d, unsafe.Add(p, s.at)); err != nil {
			return s.wrapError(err)
		}
	}
	return nil
}

func (s *step) wrapError(err error) error {
	if s.path == "" {
		return err
	}
	return fmt.Errorf("%s%w", s.path, err)
}

func (s *step) appendValue(e *Encoder, p unsafe.Pointer) error {
	switch s.kind {
	case reflect.Bool:
		e.Bool(*(*bool)(p))
	case reflect.Int:
		e.Int(int64(*(*int)(p)))
	case reflect.Int8:
		e.Int(int64(*(*int8)(p)))
	case reflect.Int16:
		e.Int(int64(*(*int16)(p)))
	case reflect.Int32:
		e.Int(int64(*(*int32)(p)))
	case reflect.Int64:
		e.Int(*(*int64)(p))
	case reflect.Uint:
		e.Uint(uint64(*(*uint)(p)))
	case reflect.Uint8:
		e.Uint(uint64(*(*uint8)(p)))
	case reflect.Uint16:
		e.Uint(uint64(*(*uint16)(p)))
	case reflect.Uint32:
		e.Uint(uint64(*(*uint32)(p)))
	case reflect.Uint64:
		e.Uint(*(*uint64)(p))
	case reflect.Float32:
		e.Float32(*(*float32)(p))
	case reflect.Float64:
		e.Float(*(*float64)(p))
	case reflect.Complex64:
		e.ArrayLen(complexLen)
		e.Float32(real(*(*complex64)(p)))
		e.Float32(imag(*(*complex64)(p)))
	case reflect.Complex128:
		e.ArrayLen(complexLen)
		e.Float(real(*(*complex128)(p)))
		e.Float(imag(*(*complex128)(p)))
	case reflect.String:
		e.String(*(*string)(p))
	case kindTime:
		e.Time(*(*time.Time)(p))
	case reflect.Struct:
		e.ArrayLen(s.fields)
	case reflect.Pointer:
		return s.pointer.appendPointer(e, *(*unsafe.Pointer)(p))
	}
	return nil
}

func (s *step) parseValue(d *Decoder, p unsafe.Pointer) (err error) {
	switch s.kind {
	case reflect.Bool:
		*(*bool)(p), err = d.Bool()
	case reflect.Int:
		*(*int)(p), err = readInt[int](d, s.typ)
	case reflect.Int8:
		*(*int8)(p), err = readInt[int8](d, s.typ)
	case reflect.Int16:
		*(*int16)(p), err = readInt[int16](d, s.typ)
	case reflect.Int32:
		*(*int32)(p), err = readInt[int32](d, s.typ)
	case reflect.Int64:
		*(*int64)(p), err = d.Int()
	case reflect.Uint:
		*(*uint)(p), err = readUint[uint](d, s.typ)
	case reflect.Uint8:
		*(*uint8)(p), err = readUint[uint8](d, s.typ)
	case reflect.Uint16:
		*(*uint16)(p), err = readUint[uint16](d, s.typ)
	case reflect.Uint32:
		*(*uint32)(p), err = readUint[uint32](d, s.typ)
	case reflect.Uint64:
		*(*uint64)(p), err = d.Uint()
	case reflect.Float32:
		*(*float32)(p), err = d.Float32()
	case reflect.Float64:
		*(*float64)(p), err = d.Float()
	case reflect.Complex64:
		re, im, fault := readPair(d, (*Decoder).Float32)
		*(*complex64)(p), err = complex(re, im), fault
	case reflect.Complex128:
		re, im, fault := readPair(d, (*Decoder).Float)
		*(*complex128)(p), err = complex(re, im), fault
	case reflect.String:
		*(*string)(p), err = d.String()
	case kindTime:
		*(*time.Time)(p), err = d.Time()
	case reflect.Struct:
		err = d.ArrayOf(s.fields)
	case reflect.Pointer:
		*(*unsafe.Pointer)(p), err = s.pointer.parsePointer(d)
	}
	return err
}

func readInt[I int | int8 | int16 | int32](d *Decoder, t reflect.Type) (I, error) {
	at := d.off
	x, err := d.Int()
	if err == nil && int64(I(x)) != x {
		return 0, d.overflowError(at, x, t.String())
	}
	return I(x), err
}

func readUint[U uint | uint8 | uint16 | uint32](d *Decoder, t reflect.Type) (U, error) {
	at := d.off
	x, err := d.Uint()
	if err == nil && uint64(U(x)) != x {
		return 0, d.overflowError(at, x, t.String())
	}
	return U(x), err
}

// complexLen is the length of the array [real, imaginary]. A complex number is written as this
// array.
const complexLen = 2

// readPair reads an array of two numbers, the parts of a complex number, each with read.
func readPair[F float32 | float64](d *Decoder, read func(*Decoder) (F, error)) (re, im F, err error) {
	if err = d.ArrayOf(complexLen); err != nil {
		return 0, 0, err
	}
	if re, err = read(d); err != nil {
		return 0, 0, err
	}
	im, err = read(d)
	return re, im, err
}
