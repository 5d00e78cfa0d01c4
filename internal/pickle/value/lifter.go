package value

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Lifter converts decoded pickles to Go values. An object that is shared in Python becomes one
// shared Go value. A Lifter must not be used from several goroutines.
type Lifter struct {
	// Object converts the result of a constructor call. It must be set.
	Object func(o *pickle.Object) (any, error)
	// Outside converts a persistent ID. It may be nil if there are none.
	Outside func(p *pickle.Persistent) (any, error)
	// Unread, if not nil, is called for each dict entry with a value that cannot be converted. keys
	// is the path to the entry, such as "model.bias". If Unread returns nil, the entry is omitted;
	// otherwise Lift returns the error.
	Unread func(keys string, err error) error

	seen   map[any]any // converted containers, by identity
	keys   []string    // path of the dict entry being converted
	unread error       // latest error returned by Unread
}

// errPending marks a container that is being converted.
var errPending = errors.New("pending")

// Lift converts v to a value for users. The error wraps [ErrUnsupported] if v has no Go
// equivalent, or if it contains itself; otherwise it is an error of Object, Outside or Unread.
func (l *Lifter) Lift(v any) (any, error) {
	at := pickle.Identity(v)
	if at == nil {
		return convertPlain(v), nil
	}
	if got, ok := l.seen[at]; ok {
		if got == errPending {
			return nil, Unsupported("value contains itself")
		}
		return got, nil
	}
	l.Begin(at, errPending)
	got, err := l.liftContainer(v)
	if l.seen[at] = got; err != nil {
		delete(l.seen, at) // otherwise a second reference to it would be nil
	}
	return got, err
}

// Begin records that the container o is converted to the value becomes, which may be incomplete.
// It must be called before the parts of o are converted, if these may refer to o.
func (l *Lifter) Begin(o, becomes any) {
	if l.seen == nil {
		l.seen = map[any]any{}
	}
	l.seen[o] = becomes
}

// convertPlain converts a value without parts: a [Global] that names a dtype to the
// [tensor.DType]. It returns any other value unchanged.
func convertPlain(v any) any {
	if g, ok := v.(Global); ok {
		if dt, err := DTypeOf(g); err == nil {
			return dt
		}
	}
	return v
}

func (l *Lifter) liftContainer(v any) (any, error) {
	switch v := v.(type) {
	case Tuple:
		items, err := l.liftItems(v)
		return Tuple(items), err
	case *pickle.List:
		return l.liftItems(v.Items)
	case *Dict:
		return l.liftDict(v)
	case *Set:
		members, err := l.liftItems(v.Members())
		if err != nil {
			return nil, err
		}
		return python.NewSet(v.Frozen, members...)
	case *pickle.Object:
		return l.Object(v)
	case *pickle.Persistent:
		if l.Outside != nil {
			return l.Outside(v)
		}
	}
	return nil, Unsupported("%T", v)
}

func (l *Lifter) liftItems(values []any) ([]any, error) {
	out := make([]any, len(values))
	for n, v := range values {
		var err error
		if out[n], err = l.Lift(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Lifter) liftDict(d *Dict) (any, error) {
	out := &Dict{Ordered: d.Ordered}
	for k, v := range d.All() {
		key, err := l.Lift(k)
		if err != nil {
			return nil, err
		}
		l.keys = append(l.keys, fmt.Sprint(key))
		value, err := l.Lift(v)
		if err != nil && l.Unread != nil && !(l.unread != nil && errors.Is(err, l.unread)) {
			if err = l.Unread(strings.Join(l.keys, "."), err); err == nil {
				l.keys = l.keys[:len(l.keys)-1]
				continue
			}
			l.unread = err
		}
		l.keys = l.keys[:len(l.keys)-1]
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, value); err != nil {
			return nil, err
		}
	}
	attrs, err := l.Lift(d.Attrs)
	out.Attrs = attrs
	return out, err
}

// Record converts an object of an unknown class to a [Record]. Keyword arguments, appended items
// and set items of o are dropped. It returns the same errors as [Lifter.Lift].
func (l *Lifter) Record(o *pickle.Object) (*Record, error) {
	r := &Record{Class: o.Class}
	l.Begin(o, r)
	args, err := l.Lift(o.Args)
	if err != nil {
		return nil, err
	}
	r.Args, _ = args.(Tuple)
	r.State, err = l.Lift(o.State)
	return r, err
}

// Arg returns argument n, counted from 0, of a call as type T. The error wraps [ErrProtocol] if
// it is missing or has another type.
func Arg[T any](o *pickle.Object, n int) (v T, err error) {
	if n < len(o.Args) {
		if v, ok := o.Args[n].(T); ok {
			return v, nil
		}
	}
	return v, Malformed("argument %d of %s: want %T", n+1, o.Class, v)
}
