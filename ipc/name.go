package ipc

import (
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Bind gives a value a name in the domain, under which [Lookup] finds it in every process, also in
// one that has joined by a socket, until somebody unlinks the name. The value is copied as by a
// Put: a tensor is there with its dtype, shape and strides, and its elements are shared; a queue's
// end keeps the queue open. What the name holds stays the caller's to close, and lives on when this
// process dies.
//
// The error is shm.ErrExist if the name is taken, which of several processes that bind it at once
// all but one get, and shm.ErrName if it is none: a name has 1 to 192 bytes of UTF-8.
func Bind[T any](name string, v T) error {
	plan, err := wire.PlanOf[named[T]]()
	if err != nil {
		return fmt.Errorf("bind name %q: %w", name, err)
	}
	d, err := shm.Default()
	if err != nil {
		return err
	}
	o := newOutgoing()
	defer o.free()
	o.enc.Reset(o.buf)
	err = plan.Encode(&o.enc, named[T]{v})
	if err == nil {
		m := o.enc.Message()
		err = d.Bind(name, m.Body, m.Blocks)
	}
	o.done(err == nil)
	runtime.KeepAlive(v)
	return err
}

// Lookup returns the value that has the name, as a Get returns it: what it holds of shared memory
// belongs to the caller, who closes it. The error is shm.ErrNotExist if the name is not bound, and
// ErrType if a value of another type is.
func Lookup[T any](name string) (v T, err error) {
	plan, err := wire.PlanOf[named[T]]()
	if err != nil {
		return v, fmt.Errorf("look up name %q: %w", name, err)
	}
	d, err := shm.Default()
	if err != nil {
		return v, err
	}
	in := newIncoming(d)
	defer in.free()
	if err := d.Lookup(name, &in.Message); err != nil {
		return v, err
	}
	n, err := read(in, plan)
	if err != nil {
		return v, fmt.Errorf("look up name %q: %w", name, err)
	}
	return n.v, nil
}

// Unlink frees a name. A process that has looked it up goes on with what it has. The error is
// shm.ErrNotExist if it is not bound.
func Unlink(name string) error {
	d, err := shm.Default()
	if err != nil {
		return err
	}
	return d.Unlink(name)
}

// Names returns the names that are bound in the domain, sorted.
func Names() ([]string, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	return d.Names(), nil
}

// namedTags are those of [type, value].
var namedTags = &wire.Tags{Type: "value of a name", Fields: []int{2}}

// named is a value that says its type, since whoever looks it up may expect another one.
type named[T any] struct{ v T }

func (n *named[T]) MarshalWire(e *wire.Encoder) error {
	plan, err := wire.PlanOf[T]()
	if err != nil {
		return err
	}
	e.Tag(namedTags, 0)
	e.String(elemName[T]())
	return plan.Encode(e, n.v)
}

func (n *named[T]) UnmarshalWire(d *wire.Decoder) error {
	plan, err := wire.PlanOf[T]()
	if err != nil {
		return err
	}
	if err := d.OnlyTag(namedTags); err != nil {
		return err
	}
	switch name, err := d.String(); {
	case err != nil:
		return err
	case name != elemName[T]():
		return fmt.Errorf("%w: it is a %s, not a %s", ErrType, name, elemName[T]())
	}
	n.v, err = plan.Decode(d)
	return err
}
