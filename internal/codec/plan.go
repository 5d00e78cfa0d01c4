package codec

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Plan encodes and decodes values of type T. [PlanOf] returns it; there is one for each type.
// It may be used from several goroutines at once, each with its own Encoder or Decoder.
type Plan[T any] struct {
	built   atomic.Pointer[node] // nil until the first use
	pointer bool                 // T is a pointer: it travels in an interface without allocation
	// scratch has values of *T. Reflection needs an addressable value, and &v of an argument would
	// be a new one each time.
	scratch sync.Pool
}

// plans holds a *Plan[T] for each T by its reflect.Type.
var plans sync.Map

// trusted is the value set by [Trust]. In a worker it must be true from the start, because packages
// that register types are initialized before package shoal.
var trusted atomic.Bool

func init() {
	_, worker := os.LookupEnv(sys.WorkerKey)
	Trust(worker)
}

// Trust sets whether [PlanOf] and [RegisterType] skip the check of types. A type that cannot cross
// then fails at its first use. It should only be called by package shoal: the parent of a worker is
// the same program and has checked its types, so the worker starts sooner without the check.
func Trust(types bool) { trusted.Store(types) }

// PlanOf returns the plan of T. If T cannot cross, the error wraps ErrType and names the part that
// cannot: `job.Net.Log: func() cannot cross processes`.
func PlanOf[T any]() (*Plan[T], error) {
	if err := checkUntrusted[T](); err != nil {
		return nil, err
	}
	return planOf[T](), nil
}

// checkUntrusted is [Check], but returns nil without a check if types are trusted; see [Trust].
func checkUntrusted[T any]() error {
	if trusted.Load() {
		return nil
	}
	return Check[T]()
}

// planOf returns the plan of T, which may not be built yet: T is not checked.
func planOf[T any]() *Plan[T] {
	t := reflect.TypeFor[T]()
	if p, ok := plans.Load(t); ok {
		return p.(*Plan[T])
	}
	p := &Plan[T]{pointer: t.Kind() == reflect.Pointer}
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*Plan[T])
}

// buildNode returns the node of T, and builds it at the first call. It returns an error that
// wraps [ErrType] if T cannot cross processes.
func (p *Plan[T]) buildNode() (*node, error) {
	if n := p.built.Load(); n != nil {
		return n, nil
	}
	n, err := nodeOf(reflect.TypeFor[T]())
	if err == nil {
		p.built.Store(n)
	}
	return n, err
}

// Check returns nil if values of type T can cross processes, and otherwise the error of PlanOf.
func Check[T any]() error {
	_, err := planOf[T]().buildNode()
	return err
}

// Encode writes v as one value. It may be called several times for one message, and in
// MarshalWire for a part of a value. The error wraps [ErrType] if T cannot cross processes,
// [ErrTooLong] or [ErrTooDeep] if v exceeds the limits, [ErrUnknownType] if an any in v has a
// type that is not registered, or the error of a type's own method. After an error the message
// must not be used, but the caller must still call [Encoder.Done].
func (p *Plan[T]) Encode(e *Encoder, v T) error {
	err := p.encode(e, v)
	if err == nil && len(e.buf) > e.Limits.bytes() {
		e.checkRoom(0)
	}
	if err == nil {
		err = e.err
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", nameOf(reflect.TypeFor[T]()), err)
	}
	return nil
}

// Plain reports whether the encoding of T is self-contained: no blocks, no references between
// parts, and no user code. Encodings of such values may be concatenated in one body and decoded
// separately.
func (p *Plan[T]) Plain() bool {
	n, err := p.buildNode()
	if err != nil {
		return false
	}
	f, ok := n.codec.(flat)
	return ok && !slices.ContainsFunc(f, func(s step) bool { return s.kind == reflect.Pointer })
}

func (p *Plan[T]) encode(e *Encoder, v T) error {
	n, err := p.buildNode()
	if err != nil {
		return err
	}
	if f, ok := n.codec.(flat); ok {
		return f.write(e, unsafe.Pointer(&v))
	}
	if p.pointer {
		return n.encode(e, reflect.ValueOf(v))
	}
	ptr := p.getScratch()
	*ptr = v
	err = n.encode(e, reflect.ValueOf(ptr).Elem())
	p.putScratch(ptr)
	return err
}

// Decode reads one value. The caller must call [Decoder.Finish] after the last value of a message,
// and [Decoder.Done] in any case. The error wraps [ErrType] if T cannot cross processes, and
// [ErrFormat] if the bytes are not a value of T. It may also wrap another error of this package,
// such as [ErrOverflow], or the error of a type's own method. After an error Decode returns the
// zero value.
func (p *Plan[T]) Decode(d *Decoder) (T, error) {
	v, err := p.decode(d)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("decode %s: %w", nameOf(reflect.TypeFor[T]()), err)
	}
	return v, nil
}

func (p *Plan[T]) decode(d *Decoder) (v T, err error) {
	n, err := p.buildNode()
	if err != nil {
		return v, err
	}
	if f, ok := n.codec.(flat); ok {
		err = f.read(d, unsafe.Pointer(&v))
		return v, err
	}
	ptr := p.getScratch()
	err = n.decode(d, reflect.ValueOf(ptr).Elem())
	v = *ptr
	p.putScratch(ptr)
	return v, err
}

// getScratch returns zeroed memory for a value. The caller must return it with putScratch.
func (p *Plan[T]) getScratch() *T {
	if ptr, ok := p.scratch.Get().(*T); ok {
		return ptr
	}
	return new(T)
}

// putScratch clears the value, so that the pool keeps nothing alive, and makes the memory
// available to later calls of getScratch. The caller must not use it afterwards.
func (p *Plan[T]) putScratch(ptr *T) {
	var zero T
	*ptr = zero
	p.scratch.Put(ptr)
}

// Encode writes v as a part of a value. It should be used in a function given to [Custom] and in
// a MarshalWire. The errors are the same as for [Plan.Encode].
func Encode[T any](e *Encoder, v T) error { return planOf[T]().Encode(e, v) }

// Decode reads a value that was written by [Encode]. The errors are the same as for
// [Plan.Decode].
func Decode[T any](d *Decoder) (T, error) { return planOf[T]().Decode(d) }
