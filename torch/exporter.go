package torch

import (
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// An exporter makes one message.
type exporter struct {
	opts  Options
	peer  peer
	alone bool // not for a connection: no memory can be promised

	seen     map[any]any                        // what became of pointers
	storages map[*tensor.Storage]*pickle.Object // so that views stay views of one storage
	undoing  []func()
	moved    []io.Closer // to be closed when they are on their way
}

func (c *Conn) exporter() *exporter { return &exporter{opts: c.opts, peer: c.peer} }

func (e *exporter) marshal(v any) ([]byte, error) {
	e.seen, e.storages = map[any]any{}, map[*tensor.Storage]*pickle.Object{}
	low, err := e.lower(v, 0)
	if err == nil {
		var b []byte
		if b, err = pickle.Marshal(low, e.opts.protocol()); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("send %T: %w", v, err)
}

// undo takes back what was promised in a message that was not sent.
func (e *exporter) undo() {
	for _, f := range e.undoing {
		f()
	}
}

// moveAway closes what is the receiver's now.
func (e *exporter) moveAway() {
	for _, sent := range e.moved {
		sent.Close()
	}
}

// maxDepth bounds values in values.
const maxDepth = 900

// lower makes a value of pickle's of one of Go's.
func (e *exporter) lower(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, unsupported("values nest deeper than %d, or contain themselves", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64, int, *big.Int, float64, complex128, string, []byte, Global, *pickle.Object,
		*ByteArray, *Array, *Scalar:
		return v, nil
	case *tensor.Tensor:
		return e.once(v, func() (any, error) { return e.tensor(v, tensorClass, false) })
	case *autograd.Param:
		return e.once(v, func() (any, error) { return e.tensor(v.T, parameterClass, !v.Frozen) })
	case *CUDATensor:
		return e.cudaTensor(v)
	case tensor.DType:
		return named("torch." + v.String()), nil
	case Size:
		return &pickle.Object{Class: named("torch.Size"), Args: Tuple{sizes(v)}}, nil
	case Device:
		return &pickle.Object{Class: named("torch.device"), Args: Tuple{string(v)}}, nil
	case *Conn:
		return e.once(v, func() (any, error) { return e.connection(v) })
	case net.Conn:
		return e.once(v, func() (any, error) { return e.socket(v) })
	case *os.File:
		return e.descriptor(v)
	case *PackedSequence:
		return e.once(v, func() (any, error) { return e.packed(v, depth) })
	case interface{ self() *Proxy }:
		return e.proxy(v.self())
	case *Queue:
		return e.once(v, func() (any, error) { return e.queue(v) })
	case *Semaphore:
		return e.once(v, func() (any, error) { return e.semaphore(v) })
	case *Condition:
		return e.once(v, func() (any, error) { return e.condition(v) })
	case *Event:
		return e.once(v, func() (any, error) { return e.event(v) })
	case Tuple:
		items, err := e.several(reflect.ValueOf(v), depth)
		return Tuple(items), err
	case *Dict:
		return e.once(v, func() (any, error) { return e.dict(v, depth) })
	case *Set:
		return v, nil
	}
	return e.reflected(reflect.ValueOf(v), depth)
}

// once makes one thing of a pointer that occurs several times.
func (e *exporter) once(p any, do func() (any, error)) (any, error) {
	if got, ok := e.seen[p]; ok {
		return got, nil
	}
	got, err := do()
	if err == nil {
		e.seen[p] = got
	}
	return got, err
}

func (e *exporter) dict(d *Dict, depth int) (any, error) {
	if d == nil {
		return nil, nil
	}
	out := &Dict{Ordered: d.Ordered}
	for k, v := range d.All() {
		key, err := e.lower(k, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := e.lower(v, depth+1)
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, value); err != nil {
			return nil, err
		}
	}
	attrs, err := e.lower(d.Attrs, depth+1)
	out.Attrs = attrs
	return out, err
}

func (e *exporter) several(v reflect.Value, depth int) ([]any, error) {
	out := make([]any, v.Len())
	for i := range out {
		var err error
		if out[i], err = e.lower(v.Index(i).Interface(), depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sizes(list []int) Tuple {
	t := make(Tuple, len(list))
	for i, n := range list {
		t[i] = n
	}
	return t
}
