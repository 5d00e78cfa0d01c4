package wire

import "reflect"

// scalarCodec returns the codec of a type whose values are single numbers or strings, and their
// fewest bytes; nil for others.
func scalarCodec(t reflect.Type) (c codec, min int) {
	switch t.Kind() {
	case reflect.Bool:
		return boolCodec{}, 1
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intCodec{}, 1
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintCodec{}, 1
	case reflect.Float32:
		return float32Codec{}, 5
	case reflect.Float64:
		return float64Codec{}, 5 // a reader takes 32 bits too
	case reflect.Complex64:
		return complex64Codec{}, 11
	case reflect.Complex128:
		return complex128Codec{}, 11
	case reflect.String:
		return stringCodec{}, 1
	}
	return nil, 0
}

type boolCodec struct{}

func (boolCodec) encode(e *Encoder, v reflect.Value) error {
	e.Bool(v.Bool())
	return nil
}

func (boolCodec) decode(d *Decoder, v reflect.Value) error {
	x, err := d.Bool()
	v.SetBool(x)
	return err
}

type intCodec struct{}

func (intCodec) encode(e *Encoder, v reflect.Value) error {
	e.Int(v.Int())
	return nil
}

func (intCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	x, err := d.Int()
	if err == nil && v.OverflowInt(x) {
		return d.overflow(at, x, v.Type().String())
	}
	v.SetInt(x)
	return err
}

type uintCodec struct{}

func (uintCodec) encode(e *Encoder, v reflect.Value) error {
	e.Uint(v.Uint())
	return nil
}

func (uintCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	x, err := d.Uint()
	if err == nil && v.OverflowUint(x) {
		return d.overflow(at, x, v.Type().String())
	}
	v.SetUint(x)
	return err
}

type float64Codec struct{}

func (float64Codec) encode(e *Encoder, v reflect.Value) error {
	e.Float(v.Float())
	return nil
}

func (float64Codec) decode(d *Decoder, v reflect.Value) error {
	x, err := d.Float()
	v.SetFloat(x)
	return err
}

type float32Codec struct{}

func (float32Codec) encode(e *Encoder, v reflect.Value) error {
	x := float32(v.Float())
	if x != x {
		x = *as[float32](v) // the way through float64 sets the quiet bit of a NaN
	}
	e.Float32(x)
	return nil
}

func (float32Codec) decode(d *Decoder, v reflect.Value) error {
	x, err := d.Float32()
	if x != x {
		*as[float32](v) = x
	} else {
		v.SetFloat(float64(x))
	}
	return err
}

// as returns the address of v, whose type is T or defined as T.
func as[T any](v reflect.Value) *T {
	return v.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

// complexLen is the length of the array [real, imaginary] as which a complex number is written.
const complexLen = 2

type complex64Codec struct{}

func (complex64Codec) encode(e *Encoder, v reflect.Value) error {
	x := *as[complex64](v)
	e.ArrayLen(complexLen)
	e.Float32(real(x))
	e.Float32(imag(x))
	return nil
}

func (complex64Codec) decode(d *Decoder, v reflect.Value) error {
	re, im, err := pair(d, d.Float32)
	*as[complex64](v) = complex(re, im)
	return err
}

type complex128Codec struct{}

func (complex128Codec) encode(e *Encoder, v reflect.Value) error {
	x := v.Complex()
	e.ArrayLen(complexLen)
	e.Float(real(x))
	e.Float(imag(x))
	return nil
}

func (complex128Codec) decode(d *Decoder, v reflect.Value) error {
	re, im, err := pair(d, d.Float)
	v.SetComplex(complex(re, im))
	return err
}

// pair reads an array of two numbers.
func pair[F float32 | float64](d *Decoder, read func() (F, error)) (re, im F, err error) {
	if err = d.ArrayOf(complexLen); err != nil {
		return 0, 0, err
	}
	if re, err = read(); err != nil {
		return 0, 0, err
	}
	im, err = read()
	return re, im, err
}

type stringCodec struct{}

func (stringCodec) encode(e *Encoder, v reflect.Value) error {
	e.String(v.String())
	return nil
}

func (stringCodec) decode(d *Decoder, v reflect.Value) error {
	s, err := d.String()
	v.SetString(s)
	return err
}
