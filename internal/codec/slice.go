package codec

import "reflect"

// A sliceCodec is the codec of a slice type, inside a nilCodec. It writes a slice as an array.
type sliceCodec struct {
	elem *node
	size int  // of an element in memory
	bulk bulk // or nil
}

func (b *builder) fillSlice(n *node, t reflect.Type, path string) error {
	n.nil = true
	elem, err := b.buildNode(t.Elem(), path+"[]")
	if err != nil {
		return err
	}
	n.codec = nilCodec{&sliceCodec{elem, int(t.Elem().Size()), bulks[t.Elem()]}}
	if isBytes(t.Elem(), elem) {
		n.codec = bytesCodec{}
	}
	return nil
}

// isBytes reports whether a slice or array of t, with node n, is written as a byte string:
// whether t is byte itself, or a type defined as byte without methods of its own for the wire.
func isBytes(t reflect.Type, n *node) bool {
	_, plain := n.codec.(flat)
	return plain && t.Kind() == reflect.Uint8
}

func (c *sliceCodec) encode(e *Encoder, v reflect.Value) error {
	e.ArrayLen(v.Len())
	if c.bulk != nil && e.err == nil {
		c.bulk.encode(e, v)
		return nil
	}
	return encodeAll(e, c.elem, v)
}

// encodeAll writes the elements of v, a slice or an array, one after another.
func encodeAll(e *Encoder, elem *node, v reflect.Value) error {
	if e.err != nil {
		return e.err // too long: do not even begin
	}
	for i := range v.Len() {
		if err := elem.encode(e, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (c *sliceCodec) decode(d *Decoder, v reflect.Value) error {
	n, err := d.ArrayLen()
	if err != nil {
		return err
	}
	if n, err = d.checkCount(int64(n), c.elem.min); err != nil {
		return err
	}
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // not nil
	}
	ahead := c.preallocCount(d, n)
	if c.bulk != nil && ahead == n {
		v.Grow(n)
		v.SetLen(n)
		return c.bulk.decode(d, v)
	}
	return c.decodeAll(d, v, n, ahead)
}

// decodeAll reads n elements into v. It allocates memory for the first ahead elements at once;
// ahead must be the result of preallocCount.
func (c *sliceCodec) decodeAll(d *Decoder, v reflect.Value, n, ahead int) error {
	v.Grow(ahead)
	v.SetLen(min(n, v.Cap()))
	for i := range n {
		if i == v.Len() {
			v.Grow(1)
			v.SetLen(min(n, v.Cap()))
		}
		if err := c.elem.decode(d, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// preallocCount returns the number of elements, at most n, to allocate memory for before the
// first is read, and subtracts that memory from d.spare. A few bytes may stand for an element
// that is large in memory. A whole message must not claim more than a small multiple of its own
// size, at all levels together. Longer slices grow as their elements arrive.
func (c *sliceCodec) preallocCount(d *Decoder, n int) int {
	n = min(n, d.spare/max(c.size, 1))
	d.spare -= n * c.size
	return n
}

type bytesCodec struct{}

func (bytesCodec) encode(e *Encoder, v reflect.Value) error {
	if v.IsNil() {
		e.Nil()
	} else {
		e.Bytes(v.Bytes())
	}
	return nil
}

func (bytesCodec) decode(d *Decoder, v reflect.Value) error {
	if d.IsNil() {
		return nil
	}
	b, err := d.Bytes()
	v.SetBytes(b)
	return err
}
