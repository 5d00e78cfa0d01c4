package codec

import (
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"
)

// A codec encodes and decodes the values of one Go type. v must have that type, and must be
// addressable, except for the pointer that [Plan.Encode] starts with. For decode v must be the
// zero value; decode sets it.
type codec interface {
	encode(e *Encoder, v reflect.Value) error
	decode(d *Decoder, v reflect.Value) error
}

// A node is the codec of one type in a plan, with the properties that the codecs of containing
// types need. Nodes of recursive types refer to themselves.
type node struct {
	codec
	min int  // minimum encoded size in bytes
	nil bool // a value may be encoded as nil, so a pointer to it must be encoded differently
	key bool // two values are equal if and only if their encodings are
}

// nodes holds the finished *node of each reflect.Type.
var nodes sync.Map

// nodeOf returns the node of t, which it builds at the first call. It returns an error that
// wraps [ErrType] if t cannot cross processes. Only complete plans are cached, because part of a
// failed one may refer to a type that cannot cross.
func nodeOf(t reflect.Type) (*node, error) {
	b := builder{seen: make(map[reflect.Type]*node)}
	n, err := b.buildNode(t, nameOf(t))
	if err != nil {
		return nil, err
	}
	for t, n := range b.seen {
		nodes.LoadOrStore(t, n)
	}
	return n, nil
}

// nameOf returns the name of t in errors: job rather than main.job.
func nameOf(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.String()
}

// A builder creates the nodes of a type and of all types it contains.
type builder struct {
	seen map[reflect.Type]*node // started or finished
}

// buildNode returns the node of t. If t is recursive, the node of an outer call may not be
// complete yet. It returns a [typeError] if t cannot cross processes. path is the location of t
// in the root type, for errors.
func (b *builder) buildNode(t reflect.Type, path string) (*node, error) {
	if n, ok := nodes.Load(t); ok {
		return n.(*node), nil
	}
	if n := b.seen[t]; n != nil {
		return n, nil
	}
	if advice, refused := refusedTypes[t]; refused {
		return nil, &typeError{path, t, advice}
	}
	n := &node{min: 1}
	b.seen[t] = n
	return n, b.fillNode(n, t, path)
}

func (b *builder) fillNode(n *node, t reflect.Type, path string) error {
	if done, err := b.fillCustom(n, t, path); done || err != nil {
		return err
	}
	if f, min := scalarOf(t); f != nil {
		n.codec, n.min, n.key = f, min, true
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.fillPointer(n, t, path)
	case reflect.Slice:
		return b.fillSlice(n, t, path)
	case reflect.Array:
		return b.fillArray(n, t, path)
	case reflect.Map:
		return b.fillMap(n, t, path)
	case reflect.Struct:
		return b.fillStruct(n, t, path)
	}
	return &typeError{path, t, refusedKinds[t.Kind()]}
}

// fillCustom sets the codec of n if t has an encoding other than the default of its kind, and
// reports whether it has. path is the location of t for errors.
func (b *builder) fillCustom(n *node, t reflect.Type, path string) (done bool, err error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		n.codec, n.min = flat{{kind: kindTime, typ: t}}, 6
		return true, nil
	case reflect.TypeFor[error]():
		n.codec, n.nil = nilCodec{errorCodec{}}, true
		return true, nil
	case reflect.TypeFor[*os.File]():
		n.codec, n.nil = nilCodec{fileCodec{}}, true
		return true, nil
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() == 0 {
			n.codec, n.nil = anyCodec{}, true
			return true, nil
		}
		if advice, ok := netAdvice(t); ok {
			return false, &typeError{path, t, advice}
		}
		return false, nil
	case reflect.Pointer: // it has the methods of its element type
		return false, nil
	}
	if done, err := b.fillMethods(n, t, path); done || err != nil {
		return done, err
	}
	if advice, ok := netAdvice(t); ok {
		return false, &typeError{path, t, advice}
	}
	return false, nil
}

// fillMethods sets the codec of n if t encodes and decodes itself, by methods or by a function
// given to [Custom], and reports whether it does. It returns a [typeError] if t has only half of
// a pair of methods, or probably has it from an embedded field.
func (b *builder) fillMethods(n *node, t reflect.Type, path string) (done bool, err error) {
	if c, ok := customOf(t); ok {
		n.codec = c.codec
		return true, nil
	}
	if f := familyOf(t); f != nil {
		if field, ok := promotingField(t, f.methods); ok {
			return false, dropsFields(t, path, "the methods for messages", field)
		}
		n.codec = f.codec
		return true, nil
	}
	for _, m := range methodPairs {
		writes, reads := reflect.PointerTo(t).Implements(m.writer), reflect.PointerTo(t).Implements(m.reader)
		switch {
		case m.both && writes != reads:
			return false, &typeError{path, t, fmt.Sprintf("implement both %s and %s", m.write, m.read)}
		case !writes || !reads:
			continue
		}
		if f, ok := promotingField(t, m.writer); ok {
			return false, dropsFields(t, path, m.write, f)
		}
		n.codec, n.key = m.codec, m.keys && t.Comparable()
		return true, nil
	}
	return false, nil
}

// dropsFields returns the [typeError] for the struct type t at path with a method that is
// promoted from its embedded field.
func dropsFields(t reflect.Type, path, method, field string) error {
	return &typeError{path, t,
		fmt.Sprintf("%s: promoted from the embedded %s, which would drop the other fields: give that field a name",
			method, field)}
}

// promotingField returns the name of the embedded field that probably provides the methods of
// the interface type method to the struct type t, if t has several fields, and false otherwise.
// Such a method would silently drop the other fields. Fields tagged `wire:"-"` do not count.
func promotingField(t, method reflect.Type) (name string, ok bool) {
	if t.Kind() != reflect.Struct {
		return "", false
	}
	var fields []reflect.StructField
	for f := range t.Fields() {
		if f.Tag.Get("wire") != skipTag {
			fields = append(fields, f)
		}
	}
	if len(fields) < 2 {
		return "", false
	}
	for _, f := range fields {
		if f.Anonymous && (f.Type.Implements(method) || reflect.PointerTo(f.Type).Implements(method)) {
			return f.Name, true
		}
	}
	return "", false
}
