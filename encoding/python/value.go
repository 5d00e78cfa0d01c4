package python

import "errors"

// ErrKey is wrapped where Python could not hash a key of a Dict or a member of a Set, or the key is
// too large: tuples in tuples, or a mebibyte.
var ErrKey = errors.New("python: no key")

// A Tuple is a Python tuple.
type Tuple []any

// A ByteArray is a Python bytearray.
type ByteArray struct{ Bytes []byte }

// A Global is a Python class or function, by name.
type Global struct{ Module, Name string }

// String returns the name with dots.
func (g Global) String() string { return g.Module + "." + g.Name }

// A Record is an object of a class that only Python knows, as data: it was not made, and nothing of
// it ran.
type Record struct {
	Class Global
	Args  Tuple // of its constructor
	State any   // its attributes: a *Dict, as a rule
}

// Attr returns an attribute.
func (r *Record) Attr(name string) (v any, ok bool) {
	d, _ := r.State.(*Dict)
	return d.Get(name)
}
