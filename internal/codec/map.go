package codec

import (
	"bytes"
	"reflect"
	"slices"
)

// A mapCodec is the codec of a map type, inside a nilCodec. It writes the entries of a map in
// the order of their keys' bytes, so equal maps are equal bytes.
type mapCodec struct {
	key, elem *node
	typ       reflect.Type
}

func (b *builder) fillMap(n *node, t reflect.Type, path string) error {
	n.nil = true
	key, err := b.buildNode(t.Key(), path+"[key]")
	if err != nil {
		return err
	}
	if !key.key {
		return &typeError{path + "[key]", t.Key(),
			"map keys must be numbers, strings, or arrays and structs of them, so that they are equal after decoding"}
	}
	elem, err := b.buildNode(t.Elem(), path+"[value]")
	if err != nil {
		return err
	}
	n.codec = nilCodec{&mapCodec{key, elem, t}}
	return nil
}

func (c *mapCodec) encode(e *Encoder, v reflect.Value) error {
	e.MapLen(v.Len())
	entries, err := c.sortedEntries(e, v)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		e.buf = append(e.buf, entry.key...)
		if err := c.elem.encode(e, entry.value); err != nil {
			return err
		}
	}
	return e.err
}

// An entry is one entry of a map that is being encoded: the key's encoding and a copy of its
// value. The copy is addressable, and the value in the map is not.
type entry struct {
	key   []byte
	value reflect.Value
}

// sortedEntries returns the entries of the map v, ordered by the encodings of their keys. The
// caller must encode the values in this order, because it determines the order of blocks in the
// message's table.
func (c *mapCodec) sortedEntries(e *Encoder, v reflect.Value) ([]entry, error) {
	if e.err != nil {
		return nil, e.err
	}
	entries := make([]entry, 0, v.Len())
	ends := make([]int, 0, v.Len())
	values := reflect.MakeSlice(reflect.SliceOf(c.typ.Elem()), v.Len(), v.Len())
	key := reflect.New(c.typ.Key()).Elem()
	start := len(e.buf) // keys are written at the end of the body, and taken away again
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		if err := c.key.encode(e, key); err != nil {
			return nil, err
		}
		value := values.Index(len(entries))
		value.SetIterValue(iter)
		entries = append(entries, entry{value: value})
		ends = append(ends, len(e.buf)-start)
	}
	keys, from := bytes.Clone(e.buf[start:]), 0
	e.buf = e.buf[:start]
	for i, to := range ends {
		entries[i].key, from = keys[from:to], to
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return entries, nil
}

func (c *mapCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	n, err := d.MapLen()
	if err != nil {
		return err
	}
	if n, err = d.checkCount(int64(n), c.key.min+c.elem.min); err != nil {
		return err
	}
	const ahead = 64 // entries to make room for before the first is read; see sliceCodec.preallocCount
	v.Set(reflect.MakeMapWithSize(c.typ, min(n, ahead)))
	if err := c.decodeEntries(d, v, n); err != nil {
		return err
	}
	if v.Len() != n {
		return d.formatError(at, "map contains a duplicate key")
	}
	return nil
}

func (c *mapCodec) decodeEntries(d *Decoder, v reflect.Value, n int) error {
	key, elem := reflect.New(c.typ.Key()).Elem(), reflect.New(c.typ.Elem()).Elem()
	for range n {
		key.SetZero()
		elem.SetZero()
		if err := c.key.decode(d, key); err != nil {
			return err
		}
		if err := c.elem.decode(d, elem); err != nil {
			return err
		}
		v.SetMapIndex(key, elem)
	}
	return nil
}
