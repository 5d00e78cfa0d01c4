package wire

import (
	"fmt"
	"reflect"
	"sync"
)

// A Plan knows how values of type T are written and read. It is built once for each type and never changes; any number of
// goroutines may use it at once, each with its own Encoder or Decoder.
type Plan[T any] struct {
	node    *node
	pointer bool      // T is a pointer: it travels in an interface without allocation
	scratch sync.Pool // of *T: reflection needs an addressable value, and &v of an argument would be a new one each time
}

// plans holds a *Plan[T] for each T by its reflect.Type.
var plans sync.Map

// PlanOf returns the plan of T. If T cannot cross, the error wraps ErrType and names the part that cannot:
// `job.Net.Log: func() cannot cross processes`.
func PlanOf[T any]() (*Plan[T], error) {
	t := reflect.TypeFor[T]()
	if p, ok := plans.Load(t); ok {
		return p.(*Plan[T]), nil
	}
	n, err := nodeOf(t)
	if err != nil {
		return nil, err
	}
	p := &Plan[T]{node: n, pointer: t.Kind() == reflect.Pointer}
	p.scratch.New = func() any { return new(T) }
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*Plan[T]), nil
}

// Check returns nil if values of type T can cross processes, and otherwise the error of PlanOf.
func Check[T any]() error {
	_, err := PlanOf[T]()
	return err
}

// Encode writes v as one value. It may be called several times for one message, and by a MarshalWire for a part of its value.
// After an error the message is of no use; call e.Done(false).
func (p *Plan[T]) Encode(e *Encoder, v T) error {
	err := p.encode(e, v)
	if err == nil && len(e.buf) > e.Limits.bytes() {
		e.room(0)
	}
	if err == nil {
		err = e.err
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", nameOf(reflect.TypeFor[T]()), err)
	}
	return nil
}

func (p *Plan[T]) encode(e *Encoder, v T) error {
	if p.pointer {
		return p.node.encode(e, reflect.ValueOf(v))
	}
	ptr := p.scratch.Get().(*T)
	*ptr = v
	err := p.node.encode(e, reflect.ValueOf(ptr).Elem())
	p.recycle(ptr)
	return err
}

// Decode reads one value. The caller says d.Finish after the last value of a message and d.Done in any case.
// On an error nothing that was decoded is returned.
func (p *Plan[T]) Decode(d *Decoder) (T, error) {
	ptr := p.scratch.Get().(*T)
	err := p.node.decode(d, reflect.ValueOf(ptr).Elem())
	v := *ptr
	p.recycle(ptr)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("decode %s: %w", nameOf(reflect.TypeFor[T]()), err)
	}
	return v, nil
}

// recycle forgets the value, so that the pool keeps none alive, and lends the memory to the next call.
func (p *Plan[T]) recycle(ptr *T) {
	var zero T
	*ptr = zero
	p.scratch.Put(ptr)
}
