package manager

import (
	"context"
	"fmt"
	"reflect"
	"runtime"

	"github.com/shoal-mp/shoal/internal/codec"
)

// An Instance is a proxy of an object of a registered type. It is made by [Type.New] or received
// from another process, and must be closed. Its methods may be called from several goroutines.
// See [Register].
type Instance struct {
	proxy
	typ *Type
}

// New creates an object in the server. args are passed to the type's constructor. The caller
// must close the Instance. It returns [ErrArgument] if args do not match the constructor's
// parameters, and the constructor's error.
func (t *Type) New(ctx context.Context, m *Manager, args ...any) (*Instance, error) {
	packed, err := t.make.packArgs(args)
	if err != nil {
		return nil, err
	}
	p, err := m.createObject(ctx, t.kind, packed...)
	return &Instance{p, t}, err
}

// Call calls a method in the server and returns its results. The results are in order and have
// the method's result types. If the method's last result is an error, it is not among the
// results but becomes the error of Call; package wire documents how errors are preserved. Call
// returns [ErrNoMethod] if the type has no such method. It returns [ErrArgument] if the
// arguments do not match the types of the parameters. The caller must close the shared memory of
// the results.
func (o *Instance) Call(ctx context.Context, method string, args ...any) ([]any, error) {
	f, a := o.callMethod(ctx, method, args)
	if a.err != nil {
		return nil, a.noResult()
	}
	if len(a.items) != len(f.out) {
		return nil, fmt.Errorf("%s: %w: got %d results, want %d", f.name, codec.ErrFormat, len(a.items), len(f.out))
	}
	results := make([]any, len(a.items))
	for i, it := range a.items {
		v, err := unpackValue(a.c, it, f.out[i].plan)
		if err != nil {
			releaseAll(a.c, a.items[i+1:])
			return nil, err
		}
		results[i] = v.Interface()
	}
	return results, nil
}

// Call calls a method of o in the server and returns its only result. It returns [ErrType] if the
// method does not have exactly one result of type R. Other errors are as for [Instance.Call].
func Call[R any](ctx context.Context, o *Instance, method string, args ...any) (r R, err error) {
	if f := o.findMethod(method); f != nil && (len(f.out) != 1 || f.out[0].typ != reflect.TypeFor[R]()) {
		return r, fmt.Errorf("%w: %s does not return exactly one %s", ErrType, f.name, reflect.TypeFor[R]())
	}
	_, a := o.callMethod(ctx, method, args)
	return oneResult[R](a)
}

func (o *Instance) findMethod(name string) *function {
	if o.typ == nil {
		return nil
	}
	return o.typ.methods[name]
}

func (o *Instance) callMethod(ctx context.Context, method string, args []any) (*function, answer) {
	defer runtime.KeepAlive(o.ref)
	if o.typ == nil {
		return nil, answer{err: ErrClosed}
	}
	f := o.findMethod(method)
	if f == nil {
		return nil, answer{err: fmt.Errorf("%w: type %s, method %q", ErrNoMethod, o.typ.name, method)}
	}
	packed, err := f.packArgs(args)
	if err != nil {
		return nil, answer{err: err}
	}
	return f, o.call(ctx, f.method, packed...)
}

// marshalWire encodes the proxy with the name of its type.
func (o *Instance) marshalWire(e *codec.Encoder) error {
	if o.typ == nil {
		return fmt.Errorf("send proxy: %w", ErrClosed)
	}
	return o.marshal(e, o.typ.name)
}

// unmarshalWire decodes a proxy. It returns [ErrType] if its type is not registered in this
// process.
func (o *Instance) unmarshalWire(d *codec.Decoder) error {
	if err := d.OnlyTag(proxyTags); err != nil {
		return err
	}
	name, err := d.String()
	if err != nil {
		return err
	}
	var ok bool
	if o.typ, ok = types.Get(name); !ok {
		return fmt.Errorf("%w: %s is not registered", ErrType, name)
	}
	return o.decodeForm(d)
}
