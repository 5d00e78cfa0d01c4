package codec

import (
	"fmt"
	"reflect"
)

// taggedLen is the length of the array [name, value]. The value of an any is written as this array.
const taggedLen = 2

// An anyCodec is the codec of the type any. It writes nil, or the registered name of the dynamic
// type and the value. The error wraps [ErrUnknownType] if the type is not registered.
type anyCodec struct{}

func (anyCodec) encode(e *Encoder, v reflect.Value) error {
	if v.IsNil() {
		e.Nil()
		return nil
	}
	x := v.Interface()
	r, known := typeOf(x)
	if !known {
		if _, err := nodeOf(v.Elem().Type()); err != nil {
			return fmt.Errorf("%w: %w", ErrUnknownType, err)
		}
		return fmt.Errorf("%w: %T: call wire.RegisterType for it in init", ErrUnknownType, x)
	}
	return encodeTagged(e, r, x)
}

func encodeTagged(e *Encoder, r registered, v any) error {
	if err := e.enterLevel(); err != nil {
		return err
	}
	defer e.leaveLevel()
	e.ArrayLen(taggedLen)
	e.String(r.name)
	return r.encode(e, v)
}

func (anyCodec) decode(d *Decoder, v reflect.Value) error {
	if d.IsNil() {
		return nil
	}
	x, name, err := decodeTagged(d)
	if err == nil && x == nil {
		return fmt.Errorf("%w: %q before byte %d: call wire.RegisterType for it in init", ErrUnknownType, name, d.off)
	}
	if err == nil {
		v.Set(reflect.ValueOf(x))
	}
	return err
}

// decodeTagged reads the name of a registered type and a value of it, and returns both. If no
// type is registered under that name here, it skips the value and returns a nil v, the name and
// no error.
func decodeTagged(d *Decoder) (v any, name string, err error) {
	if err := d.enterLevel(); err != nil {
		return nil, "", err
	}
	defer d.leaveLevel()
	if err := d.ArrayOf(taggedLen); err != nil {
		return nil, "", err
	}
	if name, err = d.String(); err != nil {
		return nil, "", err
	}
	r, known := typeNamed(name)
	if !known {
		return nil, name, d.skipValue()
	}
	v, err = r.decode(d)
	return v, name, err
}
