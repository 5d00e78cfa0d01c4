package codec

import (
	"fmt"
	"reflect"
)

// A structCodec encodes a struct as the array of its fields in order of declaration.
//
// Without field names a small struct fits into the slot of a queue, and decoding needs no lookup.
// In return both sides must have the same declaration. A worker always has, because it runs the
// same executable as its parent.
type structCodec struct{ fields []field }

type field struct {
	*node
	index int
	name  string
}

// skipTag in `wire:"-"` excludes a field: the receiver finds its zero value.
const skipTag = "-"

func (b *builder) fillStruct(n *node, t reflect.Type, path string) error {
	c := &structCodec{}
	n.key = true
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("wire") == skipTag || f.Name == "_" {
			n.key = false // it may tell two values apart
			continue
		}
		fieldPath := path + "." + f.Name
		if !f.IsExported() {
			return &typeError{fieldPath, f.Type,
				adviceFor(f.Type,
					`the field is not exported: export it, tag it wire:"-", or give the struct MarshalBinary and UnmarshalBinary`)}
		}
		elem, err := b.buildNode(f.Type, fieldPath)
		if err != nil {
			return err
		}
		c.fields = append(c.fields, field{elem, i, f.Name})
		n.min += elem.min
		n.key = n.key && elem.key
	}
	n.codec = c
	if f := structOf(t, c.fields); f != nil {
		n.codec = f
	}
	return nil
}

// adviceFor returns the advice for an error about a field of type t: the advice about that type
// if there is one, and otherwise the parameter.
func adviceFor(t reflect.Type, otherwise string) string {
	if a, refused := refusedTypes[t]; refused {
		return a
	}
	if a, refused := refusedKinds[t.Kind()]; refused && t.Kind() != reflect.Interface {
		return a
	}
	return otherwise
}

func (c *structCodec) encode(e *Encoder, v reflect.Value) error {
	e.ArrayLen(len(c.fields))
	for i := range c.fields {
		f := &c.fields[i]
		if err := f.encode(e, v.Field(f.index)); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}

func (c *structCodec) decode(d *Decoder, v reflect.Value) error {
	if err := d.ArrayOf(len(c.fields)); err != nil {
		return err
	}
	for i := range c.fields {
		f := &c.fields[i]
		if err := f.decode(d, v.Field(f.index)); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}
