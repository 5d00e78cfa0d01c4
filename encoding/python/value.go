package python

import "errors"

// ErrKey is wrapped where Python could not hash a key of a Dict or a member of a Set. It is also
// wrapped where a key is longer than a mebibyte, or is tuples that nest too deeply.
var ErrKey = errors.New("python: no key")

// A Tuple is a Python tuple.
type Tuple []any

// A ByteArray is a Python bytearray.
type ByteArray struct{ Bytes []byte }

// A Global is a Python class or function, by name.
type Global struct{ Module, Name string }

// String returns the name with dots.
func (g Global) String() string { return g.Module + "." + g.Name }

// A Record is an object of a class that only Python knows, as data. No constructor of the class has
// run.
type Record struct {
	Class Global
	Args  Tuple // arguments of the constructor
	State any   // the attributes, nearly always a *Dict
}

// Attr returns the attribute of a name; ok is false if State is not a *Dict or has no such
// attribute.
func (r *Record) Attr(name string) (v any, ok bool) {
	d, _ := r.State.(*Dict)
	return d.Get(name)
}
