package hdf5

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/tensor"
)

// Text is a string attribute with several dimensions. Values are in row-major order, and their
// number must match Shape.
type Text struct {
	Shape  []int
	Values []string
}

// Attrs returns the attributes of a data set or a group. The name "" selects the root group. An
// attribute is a string, a []string, a [Text] if it has several dimensions, or a *[tensor.Tensor]
// on the heap, which the caller must close. Attributes of other types are skipped. The error wraps
// [ErrName] if there is no such object, or [ErrFormat].
func (f *File) Attrs(name string) (map[string]any, error) {
	address, ok := f.datasets[name]
	if !ok {
		address, ok = f.groups[name]
	}
	if !ok {
		return nil, f.wrapError(name, fmt.Errorf("%w; Names lists the names", ErrName))
	}
	all, err := f.readMessages(address)
	attrs := map[string]any{}
	add := func(c *cursor) error {
		key, v, err := f.decodeAttribute(c)
		if errors.Is(err, ErrUnsupported) {
			return nil
		}
		attrs[key] = v
		return err
	}
	for i := 0; i < len(all) && err == nil; i++ {
		switch c := (&cursor{b: all[i].body}); all[i].kind {
		case msgAttribute:
			err = add(c)
		case msgAttributeInfo:
			c.takeBytes(1)
			if c.readInt(1)&1 != 0 {
				c.takeBytes(2)
			}
			err = f.eachHeapObject(c.readUint(8), c.readUint(8), recordAttribute, 0, add)
		}
	}
	if err != nil {
		return nil, f.wrapError(name, err)
	}
	return attrs, nil
}

// decodeAttribute decodes an attribute message of version 1, 2 or 3 to its name and its value,
// as documented at [File.Attrs]. The error wraps [ErrUnsupported] for a type that [File.Attrs]
// skips, and otherwise [ErrFormat].
func (f *File) decodeAttribute(c *cursor) (key string, v any, err error) {
	version, flags := c.readInt(1), c.readInt(1)
	sizes := [3]int{c.readInt(2), c.readInt(2), c.readInt(2)}
	if version == 3 {
		c.takeBytes(1) // character set of the name: ASCII or UTF-8
	}
	var parts [3]*cursor
	for i, n := range sizes {
		if parts[i] = (&cursor{b: c.takeBytes(n)}); version == 1 {
			c.takeBytes(-n & 7)
		}
	}
	switch {
	case version < 1 || version > 3 || c.short:
		return "", nil, malformed("an attribute of version %d", version)
	case version > 1 && flags != 0:
		return "", nil, unsupported("an attribute with a committed type or shape")
	}
	key = strings.TrimRight(string(parts[0].b), "\x00")
	d := &Dataset{tree: &f.tree}
	if d.kind, err = parseDatatype(parts[1], 0); err != nil {
		return key, nil, err
	}
	if d.shape, _, err = parseDataspace(parts[2]); err != nil {
		return key, nil, err
	}
	size, err := d.kind.sizeOf(d.shape...)
	if err != nil || size > len(c.b) {
		return key, nil, malformed("the attribute %q has %d bytes for %v", key, len(c.b), d.shape)
	}
	d.compact = c.takeBytes(size) // store.kind 0 is layoutCompact
	v, err = d.attributeValue()
	return key, v, err
}

// attributeValue returns the decoded value of an attribute, as documented at [File.Attrs]. d is
// a data set made of the attribute's type, shape and bytes.
func (d *Dataset) attributeValue() (any, error) {
	if !d.kind.text.is {
		return d.Read()
	}
	values, err := d.readStrings()
	if err == nil && len(d.shape) == 0 {
		return values[0], nil
	}
	if err == nil && len(d.shape) > 1 {
		return Text{slices.Clone(d.shape), values}, nil
	}
	return values, err
}

// Attr sets an attribute of a data set or a group. The name "" selects the root group. v must be a
// string, a []string, a [Text] or a *[tensor.Tensor].
//
// The error wraps [ErrName] if the object already has an attribute with this key. It wraps
// [ErrShape] if the number of values of a [Text] does not match its shape. It wraps
// [ErrUnsupported] if v has another type, or if the attribute with its name, shape and datatype is
// larger than 65,535 bytes, the message size limit of HDF5's older headers. It also wraps
// [ErrUnsupported] for an object that existed before [Append], because such objects cannot get new
// attributes.
func (w *Writer) Attr(name, key string, v any) error {
	body, err := w.encodeAttr(key, v)
	if err == nil && w.old != nil && w.old.hasObject(name) {
		err = unsupported("an attribute of an object that existed before")
	}
	if _, twice := w.attrs[name][key]; twice {
		err = fmt.Errorf("%w: it exists", ErrName)
	}
	if err != nil {
		return fmt.Errorf("write %s: attribute %q of %q: %w", w.path, key, name, err)
	}
	if w.attrs[name] == nil {
		w.attrs[name] = map[string][]byte{}
	}
	w.attrs[name][key] = body
	return nil
}

func (w *Writer) encodeAttr(key string, v any) ([]byte, error) {
	var kind, space, data []byte
	switch v := v.(type) {
	case string:
		kind, space = textDatatype(), appendDataspace(nil, nil, nil)
		data = w.putStrings([]string{v})
		if err := checkText(v); err != nil {
			return nil, err
		}
	case []string:
		kind, space = textDatatype(), appendDataspace(nil, []int{len(v)}, nil)
		data = w.putStrings(v)
		if err := checkText(v...); err != nil {
			return nil, err
		}
	case Text:
		if n, err := tensor.Uint8.SizeOf(v.Shape...); err != nil || n != len(v.Values) || len(v.Shape) == 0 {
			return nil, fmt.Errorf("%w: %d values of the shape %v", ErrShape, len(v.Values), v.Shape)
		}
		kind, space = textDatatype(), appendDataspace(nil, v.Shape, nil)
		data = w.putStrings(v.Values)
		if err := checkText(v.Values...); err != nil {
			return nil, err
		}
	case *tensor.Tensor:
		kind, space = appendDatatype(nil, v.DType()), appendDataspace(nil, v.Shape(), nil)
		var whole *tensor.Tensor
		if err := tensor.Catch(func() { whole = v.Contiguous() }); err != nil {
			return nil, err
		}
		data = slices.Clone(tensor.Bytes(whole))
		if err := whole.Close(); err != nil {
			return nil, err
		}
	default:
		return nil, unsupported("%T", v)
	}
	if key == "" || strings.ContainsRune(key, 0) {
		return nil, unsupported("the name %q", key)
	}
	const utf8 = 1
	b := []byte{3, 0}
	for _, n := range []int{len(key) + 1, len(kind), len(space)} {
		b = le.AppendUint16(b, uint16(n))
	}
	b = append(append(append(b, utf8), key...), 0)
	b = append(append(append(b, kind...), space...), data...)
	if len(b) > math.MaxUint16 { // the size field of a message has 16 bits
		return nil, unsupported("a name of %d bytes with %d", len(key), len(data))
	}
	return b, nil
}

// addAttrs adds the attributes of the object name to its header h, and removes them from
// w.attrs, so that [Writer.attributeError] can find attributes without an object.
func (w *Writer) addAttrs(h *headerWriter, name string) {
	own := w.attrs[name]
	delete(w.attrs, name)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		h.add(msgAttribute, own[key])
	}
}
