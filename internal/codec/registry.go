package codec

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"time"
)

// A registered is a type that was given to [RegisterType], with its name: its values may be sent
// in an any and in the chain of an error.
type registered struct {
	name string
	kind
}

// A kind writes and reads the values of one registered type.
type kind interface {
	typ() reflect.Type
	encode(e *Encoder, v any) error
	decode(d *Decoder) (any, error)
}

// of is the [kind] of T. It takes no memory, and the plan of T is made at its first use.
type of[T any] struct{}

func (of[T]) typ() reflect.Type              { return reflect.TypeFor[T]() }
func (of[T]) encode(e *Encoder, v any) error { return planOf[T]().encode(e, v.(T)) }
func (of[T]) decode(d *Decoder) (any, error) { return planOf[T]().Decode(d) }

// types are the registered types.
var types = book[registered]{enter: enterType}

// typesBy finds the types by either of their two keys. types guards it.
var typesBy struct {
	name map[string]registered
	typ  map[reflect.Type]registered
}

// RegisterType allows values of type T in an any and in the chain of an error. Both processes must
// register it under the same name, so it should be called in init. It panics if T cannot cross, or
// if the name or T is already registered.
//
// Booleans, numbers, strings, []byte, time.Time, time.Duration, []any, map[string]any and slices of
// strings and of the common numbers are registered under their Go names, and so are *os.File and
// *fs.PathError.
func RegisterType[T any](name string) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("wire: RegisterType(%q): %s is an interface: register its concrete types", name, t))
	}
	if err := checkUntrusted[T](); err != nil {
		panic(fmt.Sprintf("wire: RegisterType(%q): %v", name, err))
	}
	types.addEntries(registered{name, of[T]{}})
}

// TypeName returns the name under which a type was registered. ok is false if the type was not
// registered.
func TypeName(t reflect.Type) (name string, ok bool) {
	types.openForRead()
	defer types.RUnlock()
	r, ok := typesBy.typ[t]
	return r.name, ok
}

// TypeNamed returns the type that was registered under a name. ok is false, and t nil, if there
// is none.
func TypeNamed(name string) (t reflect.Type, ok bool) {
	r, ok := typeNamed(name)
	if !ok {
		return nil, false
	}
	return r.typ(), true
}

func enterType(r registered) {
	if typesBy.name == nil {
		typesBy.name, typesBy.typ = make(map[string]registered, 64), make(map[reflect.Type]registered, 64)
	}
	t := r.typ()
	if _, taken := typesBy.name[r.name]; taken {
		panic(fmt.Sprintf("wire: RegisterType(%q): name is already taken", r.name))
	}
	if old, taken := typesBy.typ[t]; taken {
		panic(fmt.Sprintf("wire: RegisterType(%q): %s is already registered as %q", r.name, t, old.name))
	}
	typesBy.name[r.name], typesBy.typ[t] = r, r
}

func typeNamed(name string) (r registered, known bool) {
	types.openForRead()
	defer types.RUnlock()
	r, known = typesBy.name[name]
	return r, known
}

func typeOf(v any) (r registered, known bool) {
	types.openForRead()
	defer types.RUnlock()
	r, known = typesBy.typ[reflect.TypeOf(v)]
	return r, known
}

// builtins are registered from the start.
var builtins = [...]registered{
	{"bool", of[bool]{}},
	{"int", of[int]{}},
	{"int8", of[int8]{}},
	{"int16", of[int16]{}},
	{"int32", of[int32]{}},
	{"int64", of[int64]{}},
	{"uint", of[uint]{}},
	{"uint8", of[uint8]{}},
	{"uint16", of[uint16]{}},
	{"uint32", of[uint32]{}},
	{"uint64", of[uint64]{}},
	{"float32", of[float32]{}},
	{"float64", of[float64]{}},
	{"complex64", of[complex64]{}},
	{"complex128", of[complex128]{}},
	{"string", of[string]{}},
	{"[]byte", of[[]byte]{}},
	{"[]int", of[[]int]{}},
	{"[]int64", of[[]int64]{}},
	{"[]float32", of[[]float32]{}},
	{"[]float64", of[[]float64]{}},
	{"[]string", of[[]string]{}},
	{"[]any", of[[]any]{}},
	{"map[string]any", of[map[string]any]{}},
	{"time.Time", of[time.Time]{}},
	{"time.Duration", of[time.Duration]{}},
	{"*os.File", of[*os.File]{}},
	{"*fs.PathError", of[*fs.PathError]{}},
	{"*os.SyscallError", of[*os.SyscallError]{}},
}

func init() { types.addEntries(builtins[:]...) }
