package python

import "errors"

// ErrKey is wrapped if a key of a [Dict] or a member of a [Set] is not hashable in Python. It is
// also wrapped if a key is larger than 1 MiB, or consists of tuples that are nested too deeply.
var ErrKey = errors.New("python: invalid key")

// Tuple is a Python tuple.
type Tuple []any

// ByteArray is a Python bytearray. One *ByteArray is one object in Python.
type ByteArray struct{ Bytes []byte }

// Global is the name of a Python class or function: its module, and its name within the module.
type Global struct{ Module, Name string }

// String returns the dotted name.
func (g Global) String() string { return g.Module + "." + g.Name }

// Record is an object of an unknown Python class. It is pure data: the constructor of the class
// was not called. Decoders of pickles return one.
type Record struct {
	Class Global
	Args  Tuple // constructor arguments
	State any   // the attributes, usually a *Dict
}

// Attr returns an attribute, by name, from State. ok is false if State is not a *[Dict] or does
// not contain the attribute.
func (r *Record) Attr(name string) (v any, ok bool) {
	d, _ := r.State.(*Dict)
	return d.Get(name)
}
