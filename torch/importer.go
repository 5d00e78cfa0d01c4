package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// An importer makes the values of one message.
type importer struct {
	ctx     context.Context
	opts    Options
	alone   bool     // not from a connection: nothing in it can be fetched
	manager *Manager // whose answer it is, if any
	child   bool     // from the Python that has started this process: any name may be in it, and inherited descriptors

	seen     map[any]any                       // what became of containers
	storages map[*pickle.Object]*tensor.Tensor // of no elements, which hold them
	fetched  map[*pickle.Object]bool           // descriptors that were promised to this process, and taken
	made     []io.Closer
}

func (c *Conn) importer(ctx context.Context) *importer {
	return &importer{ctx: ctx, opts: c.opts, child: c.child}
}

// unmarshal reads a message. Whatever it promises is taken, also on an error: a descriptor that nobody fetches stays open in the
// sender for ever.
func (i *importer) unmarshal(b []byte) (v any, err error) {
	names := allowed.Find
	if i.child {
		names = inertNames
	}
	tree, err := pickle.Unmarshal(b, names, i.opts.limits())
	i.begin()
	if err == nil {
		v, err = i.lift(tree)
	}
	for hold := range maps.Values(i.storages) {
		hold.Close()
	}
	if err == nil {
		return v, nil
	}
	for _, c := range i.made {
		c.Close()
	}
	if !i.alone {
		i.declineAll(tree)
	}
	return nil, fmt.Errorf("receive: %w", err)
}

func (i *importer) begin() {
	i.seen, i.storages, i.fetched = map[any]any{}, map[*pickle.Object]*tensor.Tensor{}, map[*pickle.Object]bool{}
}

// declineAll takes and drops what was promised and not taken.
func (i *importer) declineAll(tree any) {
	for o := range pickle.Objects(tree) {
		switch {
		case i.fetched[o]:
		case o.Class == sharedFD:
			if f, err := i.fetch(o); err == nil {
				f.Close()
			}
		case o.Class == rebuildCUDA && i.seen[o] == nil:
			if c, err := i.cudaTensor(o); err == nil {
				c.(*CUDATensor).Close()
			}
		case o.Class == rebuildFilename && i.storages[o] == nil:
			if hold, err := i.storageByName(o); err == nil {
				hold.Close()
			}
		}
	}
}

// lift makes a value of Go of one of pickle's.
func (i *importer) lift(v any) (any, error) {
	at := pickle.Identity(v)
	if at == nil {
		return i.plain(v), nil
	}
	if got, ok := i.seen[at]; ok {
		if got == errPending {
			return nil, unsupported("a value that contains itself")
		}
		return got, nil
	}
	i.seen[at] = errPending
	got, err := i.container(v)
	i.seen[at] = got
	return got, err
}

// errPending stands for what is being made.
var errPending = errors.New("pending")

// plain is what a value without parts becomes.
func (i *importer) plain(v any) any {
	if g, ok := v.(Global); ok {
		if dt, err := dtypeOf(g); err == nil {
			return dt
		}
	}
	return v
}

func (i *importer) container(v any) (any, error) {
	switch v := v.(type) {
	case Tuple:
		items, err := i.items(v)
		return Tuple(items), err
	case *pickle.List:
		return i.items(v.Items)
	case *Dict:
		return i.dict(v)
	case *Set:
		members, err := i.items(v.Members())
		if err != nil {
			return nil, err
		}
		return pickle.NewSet(v.Frozen, members...)
	case *pickle.Object:
		return i.object(v)
	}
	return nil, unsupported("%T", v)
}

func (i *importer) items(values []any) ([]any, error) {
	out := make([]any, len(values))
	for n, v := range values {
		var err error
		if out[n], err = i.lift(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (i *importer) dict(d *Dict) (any, error) {
	out := &Dict{Ordered: d.Ordered}
	for k, v := range d.All() {
		key, err := i.lift(k)
		if err != nil {
			return nil, err
		}
		value, err := i.lift(v)
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, value); err != nil {
			return nil, err
		}
	}
	attrs, err := i.lift(d.Attrs)
	out.Attrs = attrs
	return out, err
}

// object makes what a call would have made.
func (i *importer) object(o *pickle.Object) (any, error) {
	if i.child {
		if v, ok, err := i.inherited(o); ok {
			return v, err
		}
	}
	if what, known := cannotCross[o.Class]; known {
		return nil, unsupported("%s", what)
	}
	if i.alone {
		return nil, unsupported("%s outside a connection", o.Class)
	}
	v, err := i.resolve(o)
	if err != nil {
		return nil, err
	}
	if c, ok := v.(io.Closer); ok {
		i.made = append(i.made, c)
	}
	return v, nil
}

func (i *importer) resolve(o *pickle.Object) (any, error) {
	switch o.Class {
	case rebuildTensor:
		return i.tensor(o)
	case rebuildTyped, rebuildChild, rebuildFD, rebuildFilename, rebuildEmpty:
		return i.bareStorage(o)
	case rebuildConn:
		return i.connection(o)
	case rebuildSocket:
		return i.socket(o)
	case sharedFD:
		return i.fetch(o)
	case rebuildCUDA:
		return i.cudaTensor(o)
	case rebuildProxy:
		return i.proxy(o)
	case tokenClass:
		return i.token(o)
	case packedClass:
		return i.packed(o)
	}
	return nil, unsupported("a call of %s", o.Class)
}

// arg returns the n-th argument of a call as a T.
func arg[T any](o *pickle.Object, n int) (v T, err error) {
	if n < len(o.Args) {
		if v, ok := o.Args[n].(T); ok {
			return v, nil
		}
	}
	return v, protocolError("argument %d of %s is not %T", n+1, o.Class, v)
}
