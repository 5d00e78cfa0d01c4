package ipc

import (
	"context"
	"fmt"
	"reflect"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Bind binds a name to a copy of v in the domain. Every process finds it with [Lookup] until the
// name is unlinked. The value is copied as by a put: a tensor's dtype, shape and strides are copied
// and its elements are shared, and an end of a queue keeps the queue open. The caller must still
// close v. The name and the shared memory of the value outlive this process.
//
// Bind returns shm.ErrExist if the name is already bound; if several processes bind it
// concurrently, one of them succeeds. It returns shm.ErrName unless the name is 1 to 192 bytes of
// UTF-8. The error wraps [ErrNil] if v is a nil pointer, and tensor.ErrClosed if v contains a
// closed tensor. If another process is stopped in the middle of a Bind, or of an operation on a
// block of v, Bind waits for it until ctx is done. If Bind returns an error, the name was not
// bound.
//
// A bound value cannot be replaced: between Unlink and the next Bind, Lookup fails. To replace a
// value while other processes look it up, bind a [Latest] once.
func Bind[T any](ctx context.Context, name string, v T) error {
	plan, err := codec.PlanOf[T]()
	if p := reflect.ValueOf(&v).Elem(); err == nil && p.Kind() == reflect.Pointer && p.IsNil() {
		err = fmt.Errorf("value is a nil %T: %w", v, ErrNil)
	}
	if err != nil {
		return fmt.Errorf("bind name %q: %w", name, err)
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	o := newOutgoing()
	defer o.recycle()
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
	o.releaseMessage(err == nil)
	runtime.KeepAlive(v)
	return err
}

// Lookup returns the value bound to name. The caller must close the shared memory of the value. It
// returns shm.ErrNotExist if the name is not bound, and [ErrType] if the value is of another type.
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
	defer in.recycle()
	if err := d.Lookup(name, &in.Message); err != nil {
		return v, err
	}
	in.beginDecode()
	v, err = decodeNamed(&in.dec, plan)
	if err = in.endDecode(err); err != nil {
		var zero T
		return zero, fmt.Errorf("look up name %q: %w", name, err)
	}
	return v, nil
}

// decodeNamed decodes a value that is preceded by the name of its type. It returns [ErrType] if
// that type is not T.
func decodeNamed[T any](d *codec.Decoder, plan *codec.Plan[T]) (v T, err error) {
	if err := d.OnlyTag(namedTags); err != nil {
		return v, err
	}
	switch name, err := d.String(); {
	case err != nil:
		return v, err
	case name != elemName[T]():
		return v, fmt.Errorf("%w: got %s, want %s", ErrType, name, elemName[T]())
	}
	return plan.Decode(d)
}

// Unlink removes a name. Values that were already looked up remain valid. It returns
// shm.ErrNotExist if the name is not bound. Unlink releases the shared memory of the bound value
// unless a process still uses it.
func Unlink(name string) error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	return d.Unlink(name)
}

// Names returns the names bound in the domain, in sorted order.
func Names() ([]string, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	return d.Names(), nil
}

// namedTags describes the encoding: [type, value].
var namedTags = &codec.Tags{Type: "value of a name", Fields: []int{2}}
