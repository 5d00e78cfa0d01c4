package codec

import (
	"encoding/binary"
	"math"
	"reflect"
)

// A onceCodec is the codec of a pointer to a type given to [CustomOnce], inside a nilCodec. It
// writes the value to which a pointer refers with the inner codec, or, if the message already
// has that value, its number among such values.
type onceCodec struct{ codec }

func (c onceCodec) encode(e *Encoder, v reflect.Value) error {
	p := v.Interface()
	i, again := e.seen[p]
	switch {
	case again && i <= math.MaxUint8:
		e.buf = append(e.buf, codeFixext1, extAgain, byte(i))
		return nil
	case again:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeFixext4, extAgain), uint32(i))
		return nil
	case e.seen == nil:
		e.seen = make(map[any]int)
	}
	e.seen[p] = len(e.seen)
	return c.codec.encode(e, v)
}

func (c onceCodec) decode(d *Decoder, v reflect.Value) error {
	if again, err := d.decodeRepeated(v); again || err != nil {
		return err
	}
	i := len(d.seen)
	d.seen = append(d.seen, reflect.Value{}) // the value comes later
	err := c.codec.decode(d, v)
	d.seen[i] = reflect.ValueOf(v.Interface())
	return err
}

// decodeRepeated sets v to a value that was read before in this message and returns true, if a
// reference to one comes next. Otherwise it reads nothing and returns false. It returns
// [ErrFormat] if the reference is invalid.
func (d *Decoder) decodeRepeated(v reflect.Value) (bool, error) {
	at := d.off
	if at+1 >= len(d.body) || d.body[at+1] != extAgain || d.body[at] != codeFixext1 && d.body[at] != codeFixext4 {
		return false, nil
	}
	b, err := d.readExt(extAgain, "a back reference")
	if err != nil {
		return false, err
	}
	var i uint64
	for _, digits := range b {
		i = i<<8 | uint64(digits)
	}
	if i >= uint64(len(d.seen)) || !d.seen[i].IsValid() || d.seen[i].Type() != v.Type() {
		return false, d.formatError(at, "reference to value %d, which is not a preceding %s", i, v.Type())
	}
	v.Set(d.seen[i])
	return true, nil
}
