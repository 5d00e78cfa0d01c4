package codec

import "reflect"

// A nilCodec is the codec of a type with a nil value: a pointer, slice, map or interface. It
// encodes nil as nil, and other values with the inner codec, one level deeper.
type nilCodec struct{ codec }

func (c nilCodec) encode(e *Encoder, v reflect.Value) error {
	if v.IsNil() {
		e.Nil()
		return nil
	}
	if err := e.enterLevel(); err != nil {
		return err
	}
	defer e.leaveLevel()
	return c.codec.encode(e, v)
}

func (c nilCodec) decode(d *Decoder, v reflect.Value) error {
	if d.IsNil() {
		return nil
	}
	if err := d.enterLevel(); err != nil {
		return err
	}
	defer d.leaveLevel()
	return c.codec.decode(d, v)
}
