package ipc

import (
	"context"
	"fmt"
	"reflect"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Bind gives a value a name in the domain, under which [Lookup] finds it in every process until the
// name is unlinked. The value is copied as by a Put: a tensor with its dtype, shape and strides,
// while its elements are shared; a queue's end keeps the queue open. The caller still closes v. The
// name, and what it holds of shared memory, outlive this process.
//
// The error is shm.ErrExist if the name is taken; of several processes that bind it at once one
// succeeds. It is shm.ErrName unless the name is 1 to 192 bytes of UTF-8. It wraps ErrNil if v is a
// nil pointer, and tensor.ErrClosed if v has a closed tensor. Where another process is stopped in
// the middle of a Bind, or of an operation on what v holds, Bind waits for it until ctx ends. A
// Bind that returns an error has bound nothing.
//
// A name keeps its value until it is unlinked, and between an Unlink and the next Bind no Lookup
// finds it. Bind a [Latest] once for a value that is replaced while others look it up.
func Bind[T any](ctx context.Context, name string, v T) error {
	plan, err := codec.PlanOf[T]()
	if p := reflect.ValueOf(&v).Elem(); err == nil && p.Kind() == reflect.Pointer && p.IsNil() {
		err = fmt.Errorf("a nil %T: %w", v, ErrNil)
	}
	if err != nil {
		return fmt.Errorf("bind name %q: %w", name, err)
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	o := newOutgoing()
	defer o.free()
	o.enc.Reset(o.buf)
	o.enc.Tag(namedTags, 0)
	o.enc.String(elemName[T]())
	err = plan.Encode(&o.enc, v)
	if err == nil {
		m := o.enc.Message()
		err = d.Bind(ctx, name, m.Body, m.Blocks)
	} else {
		err = fmt.Errorf("bind name %q: %w", name, err)
	}
	o.done(err == nil)
	runtime.KeepAlive(v)
	return err
}

// Lookup returns the value that has the name. The caller closes what the value holds of shared
// memory. The error is shm.ErrNotExist if the name is not bound, and ErrType if the value is of
// another type.
func Lookup[T any](name string) (v T, err error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return v, fmt.Errorf("look up name %q: %w", name, err)
	}
	d, err := arena.Default()
	if err != nil {
		return v, err
	}
	in := newIncoming(d)
	defer in.free()
	if err := d.Lookup(name, &in.Message); err != nil {
		return v, err
	}
	in.begin()
	v, err = decodeNamed(&in.dec, plan)
	if err = in.end(err); err != nil {
		var zero T
		return zero, fmt.Errorf("look up name %q: %w", name, err)
	}
	return v, nil
}

// decodeNamed reads a value that says its type, since a Lookup may expect another one.
func decodeNamed[T any](d *codec.Decoder, plan *codec.Plan[T]) (v T, err error) {
	if err := d.OnlyTag(namedTags); err != nil {
		return v, err
	}
	switch name, err := d.String(); {
	case err != nil:
		return v, err
	case name != elemName[T]():
		return v, fmt.Errorf("%w: it is a %s, not a %s", ErrType, name, elemName[T]())
	}
	return plan.Decode(d)
}

// Unlink frees a name. A process that has looked the name up keeps its value. The error is
// shm.ErrNotExist if the name is not bound.
func Unlink(name string) error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	return d.Unlink(name)
}

// Names returns the names that are bound in the domain, sorted.
func Names() ([]string, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	return d.Names(), nil
}

// namedTags are those of [type, value].
var namedTags = &codec.Tags{Type: "value of a name", Fields: []int{2}}
