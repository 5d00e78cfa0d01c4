package codec

import (
	"fmt"
	"reflect"
)

// A pointerCodec is the codec of a pointer that is not nil, inside a nilCodec. It encodes the
// element of the pointer. If the element may itself be nil, it is wrapped in an array of one, so
// that a nil pointer differs from a pointer to nil.
type pointerCodec struct {
	elem    *node
	typ     reflect.Type // the type of elem
	wrapped bool
}

func (b *builder) fillPointer(n *node, t reflect.Type, path string) error {
	n.nil = true
	elem, err := b.buildNode(t.Elem(), path)
	if err != nil {
		return err
	}
	switch c, ok := customOf(t.Elem()); {
	case ok && c.once:
		n.codec = nilCodec{onceCodec{&pointerCodec{elem, t.Elem(), elem.nil}}}
	case ok && t.Name() == "":
		n.codec = c.pointer
	default:
		n.codec = nilCodec{&pointerCodec{elem, t.Elem(), elem.nil}}
	}
	return nil
}

func (c *pointerCodec) encode(e *Encoder, v reflect.Value) error {
	if c.wrapped {
		e.ArrayLen(1)
	}
	start := len(e.buf)
	if err := c.elem.encode(e, v.Elem()); err != nil {
		return err
	}
	if len(e.buf) > start && e.buf[start] == codeNil && !c.wrapped {
		return fmt.Errorf("%s wrote nil, which is reserved for a nil pointer: %w", c.typ, ErrFormat)
	}
	return nil
}

func (c *pointerCodec) decode(d *Decoder, v reflect.Value) error {
	if c.wrapped {
		if err := d.ArrayOf(1); err != nil {
			return err
		}
	}
	p := reflect.New(c.typ)
	v.Set(p)
	return c.elem.decode(d, p.Elem())
}
