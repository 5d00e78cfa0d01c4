package codec

import "reflect"

// An arrayCodec is the codec of the array types except arrays of bytes. It writes an array of
// the type's length.
type arrayCodec struct{ elem *node }

func (b *builder) fillArray(n *node, t reflect.Type, path string) error {
	elem, err := b.buildNode(t.Elem(), path+"[]")
	if err != nil {
		return err
	}
	n.codec, n.min, n.key = arrayCodec{elem}, 1+t.Len()*elem.min, elem.key
	if isBytes(t.Elem(), elem) {
		n.codec, n.min = byteArrayCodec{}, 2+t.Len()
	}
	return nil
}

func (c arrayCodec) encode(e *Encoder, v reflect.Value) error {
	e.ArrayLen(v.Len())
	return encodeAll(e, c.elem, v)
}

func (c arrayCodec) decode(d *Decoder, v reflect.Value) error {
	if err := d.ArrayOf(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := c.elem.decode(d, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// A byteArrayCodec is the codec of arrays of bytes, such as [32]byte. It writes the array as one
// string of bytes.
type byteArrayCodec struct{}

func (byteArrayCodec) encode(e *Encoder, v reflect.Value) error {
	e.Bytes(v.Bytes())
	return nil
}

func (byteArrayCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	b, err := d.Bytes()
	if err != nil {
		return err
	}
	if len(b) != v.Len() {
		return d.formatError(at, "want %d bytes, found %d", v.Len(), len(b))
	}
	copy(v.Bytes(), b)
	return nil
}
