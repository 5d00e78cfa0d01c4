package wire

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sync"
	"time"
)

// A registered type can travel in an any or in the chain of an error, under its name.
type registered struct {
	name   string
	typ    reflect.Type
	encode func(e *Encoder, v any) error
	decode func(d *Decoder) (any, error)
}

// types are the registered types, found by either of their two keys.
var types struct {
	sync.RWMutex
	byName map[string]*registered
	byType map[reflect.Type]*registered
}

// RegisterType lets values of type T travel in an any, and as errors in the chain of an error. Both processes must register
// it under the same name, so call it from init. It panics if T cannot cross, and if the name or T is already registered.
//
// Booleans, numbers, strings, []byte, time.Time, time.Duration, []any, map[string]any and slices of strings and of the
// common numbers are registered under their Go names, and so is *fs.PathError.
func RegisterType[T any](name string) {
	p, err := PlanOf[T]()
	if err != nil {
		panic(fmt.Sprintf("wire: RegisterType(%q): %v", name, err))
	}
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("wire: RegisterType(%q): %s is an interface; register the types that stand in it", name, t))
	}
	register(registeredAs(name, p))
}

func registeredAs[T any](name string, p *Plan[T]) *registered {
	return &registered{
		name:   name,
		typ:    reflect.TypeFor[T](),
		encode: func(e *Encoder, v any) error { return p.encode(e, v.(T)) },
		decode: func(d *Decoder) (any, error) { return p.Decode(d) },
	}
}

// builtin registers a type that is known to cross.
func builtin[T any](name string) { register(registeredAs(name, planOf[T]())) }

func register(r *registered) {
	types.Lock()
	defer types.Unlock()
	if types.byName == nil {
		types.byName, types.byType = make(map[string]*registered, 64), make(map[reflect.Type]*registered, 64)
	}
	if types.byName[r.name] != nil {
		panic(fmt.Sprintf("wire: RegisterType(%q): the name is taken", r.name))
	}
	if old := types.byType[r.typ]; old != nil {
		panic(fmt.Sprintf("wire: RegisterType(%q): %s is already registered as %q", r.name, r.typ, old.name))
	}
	types.byName[r.name], types.byType[r.typ] = r, r
}

func typeNamed(name string) *registered {
	types.RLock()
	defer types.RUnlock()
	return types.byName[name]
}

func typeOf(v any) *registered {
	types.RLock()
	defer types.RUnlock()
	return types.byType[reflect.TypeOf(v)]
}

func init() {
	builtin[bool]("bool")
	builtin[int]("int")
	builtin[int8]("int8")
	builtin[int16]("int16")
	builtin[int32]("int32")
	builtin[int64]("int64")
	builtin[uint]("uint")
	builtin[uint8]("uint8")
	builtin[uint16]("uint16")
	builtin[uint32]("uint32")
	builtin[uint64]("uint64")
	builtin[float32]("float32")
	builtin[float64]("float64")
	builtin[complex64]("complex64")
	builtin[complex128]("complex128")
	builtin[string]("string")
	builtin[[]byte]("[]byte")
	builtin[[]int]("[]int")
	builtin[[]int64]("[]int64")
	builtin[[]float32]("[]float32")
	builtin[[]float64]("[]float64")
	builtin[[]string]("[]string")
	builtin[[]any]("[]any")
	builtin[map[string]any]("map[string]any")
	builtin[time.Time]("time.Time")
	builtin[time.Duration]("time.Duration")
	builtin[*fs.PathError]("*fs.PathError")
	builtin[*os.SyscallError]("*os.SyscallError")
}
