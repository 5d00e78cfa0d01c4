package value

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Lifter makes values of Go of those of pickles. What is one object in Python is one value in Go.
type Lifter struct {
	// Object makes what a call would have made.
	Object func(o *pickle.Object) (any, error)
	// Outside makes what a persistent id stands for; nil where there is none.
	Outside func(p *pickle.Persistent) (any, error)
	// Unread is told the keys that lead to an entry of a dict that has no value, such as
	// "model.bias", and why. The dict is without the entry if it returns nil; otherwise its error
	// is Lift's. It may be nil.
	Unread func(keys string, err error) error

	seen   map[any]any // what became of containers
	keys   []string    // of the dicts that are being made
	unread error       // what Unread has returned
}

// errPending stands for what is being made.
var errPending = errors.New("pending")

// Lift returns the value for a user. The error wraps ErrUnsupported where there is none.
func (l *Lifter) Lift(v any) (any, error) {
	at := pickle.Identity(v)
	if at == nil {
		return plain(v), nil
	}
	if got, ok := l.seen[at]; ok {
		if got == errPending {
			return nil, Unsupported("a value that contains itself")
		}
		return got, nil
	}
	l.Begin(at, errPending)
	got, err := l.container(v)
	if l.seen[at] = got; err != nil {
		delete(l.seen, at) // or a second reference to it would be nil
	}
	return got, err
}

// Begin says what o is becoming, for what refers to it from within itself.
func (l *Lifter) Begin(o, becomes any) {
	if l.seen == nil {
		l.seen = map[any]any{}
	}
	l.seen[o] = becomes
}

// plain is what a value without parts becomes.
func plain(v any) any {
	if g, ok := v.(Global); ok {
		if dt, err := DTypeOf(g); err == nil {
			return dt
		}
	}
	return v
}

func (l *Lifter) container(v any) (any, error) {
	switch v := v.(type) {
	case Tuple:
		items, err := l.items(v)
		return Tuple(items), err
	case *pickle.List:
		return l.items(v.Items)
	case *Dict:
		return l.dict(v)
	case *Set:
		members, err := l.items(v.Members())
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

func (l *Lifter) items(values []any) ([]any, error) {
	out := make([]any, len(values))
	for n, v := range values {
		var err error
		if out[n], err = l.Lift(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Lifter) dict(d *Dict) (any, error) {
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

// Record makes the record of an object whose class nobody here knows.
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

// Arg returns the n-th argument of a call as a T.
func Arg[T any](o *pickle.Object, n int) (v T, err error) {
	if n < len(o.Args) {
		if v, ok := o.Args[n].(T); ok {
			return v, nil
		}
	}
	return v, Malformed("argument %d of %s is not %T", n+1, o.Class, v)
}
