package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// customs maps a type to the codec given to Custom or CustomOnce.
var customs sync.Map

// A custom contains the codec of a type, the codec of pointers to it, which is nil if once is
// set, and whether a message contains each value only once.
type custom struct {
	codec
	pointer codec
	once    bool
}

// Custom sets the codec of T to write and read, which must follow the contracts of [Marshaler] and
// [Unmarshaler]. Use it for types that should not have such methods in their API. A package should
// call Custom only for its own types, and must call it in init, before a plan of T exists;
// otherwise it panics.
func Custom[T any](write func(v *T, e *Encoder) error, read func(v *T, d *Decoder) error) {
	c := customCodec[T]{write, read}
	registerCustom[T](custom{c, flat{{kind: reflect.Pointer, pointer: c, typ: reflect.TypeFor[*T]()}}, false})
}

// CustomOnce is like [Custom], but a message contains each value once, even if several pointers
// refer to it. These pointers arrive as pointers to one value. It must be called like Custom,
// and panics in the same case. A value must not refer to itself, directly or indirectly.
func CustomOnce[T any](write func(v *T, e *Encoder) error, read func(v *T, d *Decoder) error) {
	registerCustom[T](custom{customCodec[T]{write, read}, nil, true})
}

// A family is the codec of all types T with a *T that implements an interface. See
// [CustomMethods].
type family struct {
	methods reflect.Type // the interface
	codec   codec
}

// families contains the families given to CustomMethods. The slice is copied on write and must not
// be modified.
var families atomic.Pointer[[]family]

// CustomMethods is like [Custom] for every type T with a *T that implements the interface I. write
// and read must be method expressions of I. It must be called in init, before a plan of such a type
// exists; otherwise it panics. The methods of I may be unexported, so the types of a package,
// including all instances of its generic types, can have encoding methods that are not part of
// their API:
//
//	type traveler interface {
//		marshalWire(e *wire.Encoder) error
//		unmarshalWire(d *wire.Decoder) error
//	}
//
//	func init() { wire.CustomMethods(traveler.marshalWire, traveler.unmarshalWire) }
func CustomMethods[I any](write func(v I, e *Encoder) error, read func(v I, d *Decoder) error) {
	f := family{reflect.TypeFor[I](), methodsCodec[I]{write, read}}
	for t := range nodes.Range {
		if t := t.(reflect.Type); f.hasType(t) {
			panic(fmt.Sprintf("wire: CustomMethods of %s called after a plan of %s was made", f.methods, t))
		}
	}
	var all []family
	if before := families.Load(); before != nil {
		all = slices.Clone(*before)
	}
	all = append(all, f)
	families.Store(&all)
}

// hasType reports whether t belongs to the family.
func (f *family) hasType(t reflect.Type) bool {
	return t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(f.methods)
}

// familyOf returns the first family to which t belongs, or nil if there is none.
func familyOf(t reflect.Type) *family {
	all := families.Load()
	if all == nil {
		return nil
	}
	for i := range *all {
		if f := &(*all)[i]; f.hasType(t) {
			return f
		}
	}
	return nil
}

func registerCustom[T any](c custom) {
	t := reflect.TypeFor[T]()
	if _, built := nodes.Load(t); built {
		panic(fmt.Sprintf("wire: Custom of %s called after a plan of it was made", t))
	}
	customs.Store(t, c)
}

// customOf returns the custom that [Custom] or [CustomOnce] made for the type t, and false if
// there is none.
func customOf(t reflect.Type) (c custom, ok bool) {
	found, _ := customs.Load(t)
	c, ok = found.(custom)
	return c, ok
}

// A customCodec is the codec of a type T that was given to [Custom] or [CustomOnce].
type customCodec[T any] struct {
	write func(v *T, e *Encoder) error
	read  func(v *T, d *Decoder) error
}

func (c customCodec[T]) encode(e *Encoder, v reflect.Value) error {
	if err := e.enterLevel(); err != nil {
		return err
	}
	defer e.leaveLevel()
	return c.writeValue(e, v.Addr().Interface().(*T))
}

func (c customCodec[T]) decode(d *Decoder, v reflect.Value) error {
	if err := d.enterLevel(); err != nil {
		return err
	}
	defer d.leaveLevel()
	return c.read(v.Addr().Interface().(*T), d)
}

func (c customCodec[T]) writeValue(e *Encoder, v *T) error {
	start := len(e.buf)
	if err := c.write(v, e); err != nil {
		return err
	}
	if len(e.buf) == start && e.err == nil {
		return fmt.Errorf("%s wrote nothing: %w", reflect.TypeFor[T](), ErrFormat)
	}
	return e.err
}

// appendPointer encodes the *T p, which may be nil. It implements [pointed]. It returns
// [ErrFormat] if the function given to Custom writes nothing or nil. A pointer and its value are
// two levels.
func (c customCodec[T]) appendPointer(e *Encoder, p unsafe.Pointer) error {
	if p == nil {
		e.Nil()
		return nil
	}
	e.depth++
	if err := e.enterLevel(); err != nil {
		return err
	}
	start := len(e.buf)
	if err := c.writeValue(e, (*T)(p)); err != nil {
		return err
	}
	e.depth -= 2
	if len(e.buf) > start && e.buf[start] == codeNil {
		return fmt.Errorf("%s wrote nil, which is reserved for a nil pointer: %w", reflect.TypeFor[T](), ErrFormat)
	}
	return nil
}

// parsePointer decodes a *T, which may be nil. It implements [pointed].
func (c customCodec[T]) parsePointer(d *Decoder) (unsafe.Pointer, error) {
	if d.IsNil() {
		return nil, nil
	}
	d.depth++
	if err := d.enterLevel(); err != nil {
		return nil, err
	}
	p := new(T)
	err := c.read(p, d)
	d.depth -= 2
	return unsafe.Pointer(p), err
}

// methodPairs are the method pairs that make a type encode itself, in order of preference. They
// contain interface types instead of looking up methods with package reflect, because a program
// that does so keeps all methods of all its types: the command was 4 MB larger.
var methodPairs = []struct {
	write, read    string
	writer, reader reflect.Type
	codec          codec
	keys           bool // comparable types of this sort may be keys of a map
	both           bool // a type with only one of the two is a mistake
}{
	{"MarshalWire", "UnmarshalWire", reflect.TypeFor[Marshaler](), reflect.TypeFor[Unmarshaler](),
		marshalerCodec{}, false, true},
	{"MarshalBinary", "UnmarshalBinary", reflect.TypeFor[encoding.BinaryMarshaler](),
		reflect.TypeFor[encoding.BinaryUnmarshaler](), binaryCodec{}, true, false},
	{"MarshalText", "UnmarshalText", reflect.TypeFor[encoding.TextMarshaler](),
		reflect.TypeFor[encoding.TextUnmarshaler](), textCodec{}, true, false},
}

// A methodsCodec is the codec of the types T with a *T that implements I, an interface given to
// [CustomMethods].
type methodsCodec[I any] struct {
	write func(v I, e *Encoder) error
	read  func(v I, d *Decoder) error
}

func (c methodsCodec[I]) encode(e *Encoder, v reflect.Value) error {
	if err := e.enterLevel(); err != nil {
		return err
	}
	defer e.leaveLevel()
	start := len(e.buf)
	if err := c.write(v.Addr().Interface().(I), e); err != nil {
		return err
	}
	if len(e.buf) == start && e.err == nil {
		return fmt.Errorf("%s wrote nothing: %w", v.Type(), ErrFormat)
	}
	return e.err
}

func (c methodsCodec[I]) decode(d *Decoder, v reflect.Value) error {
	if err := d.enterLevel(); err != nil {
		return err
	}
	defer d.leaveLevel()
	return c.read(v.Addr().Interface().(I), d)
}

// A marshalerCodec is the codec of types that implement [Marshaler] and [Unmarshaler].
type marshalerCodec struct{}

func (marshalerCodec) encode(e *Encoder, v reflect.Value) error {
	if err := e.enterLevel(); err != nil {
		return err
	}
	defer e.leaveLevel()
	start := len(e.buf)
	if err := v.Addr().Interface().(Marshaler).MarshalWire(e); err != nil {
		return err
	}
	if len(e.buf) == start && e.err == nil {
		return fmt.Errorf("%s wrote nothing: %w", v.Type(), ErrFormat)
	}
	return e.err
}

func (marshalerCodec) decode(d *Decoder, v reflect.Value) error {
	if err := d.enterLevel(); err != nil {
		return err
	}
	defer d.leaveLevel()
	return v.Addr().Interface().(Unmarshaler).UnmarshalWire(d)
}

// A binaryCodec is the codec of types with the methods MarshalBinary and UnmarshalBinary. It
// writes the result of MarshalBinary as bytes.
type binaryCodec struct{}

func (binaryCodec) encode(e *Encoder, v reflect.Value) error {
	b, err := v.Addr().Interface().(encoding.BinaryMarshaler).MarshalBinary()
	e.Bytes(b)
	return err
}

func (binaryCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	b, err := d.Bytes()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b); err != nil {
		return fmt.Errorf("%w at byte %d: %w", ErrFormat, at, err)
	}
	return nil
}

// A textCodec is the codec of types with the methods MarshalText and UnmarshalText. It writes
// the result of MarshalText as a string.
type textCodec struct{}

func (textCodec) encode(e *Encoder, v reflect.Value) error {
	b, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
	e.String(string(b))
	return err
}

func (textCodec) decode(d *Decoder, v reflect.Value) error {
	at := d.off
	s, err := d.String()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return fmt.Errorf("%w at byte %d: %w", ErrFormat, at, err)
	}
	return nil
}
