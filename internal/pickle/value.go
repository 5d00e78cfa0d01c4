package pickle

import "github.com/shoal-mp/shoal/encoding/python"

// Aliases of the value types of package python.
type (
	Tuple     = python.Tuple
	Dict      = python.Dict
	Set       = python.Set
	ByteArray = python.ByteArray
	Global    = python.Global
	Array     = python.Array
	Scalar    = python.Scalar
)

// NewDict is [python.NewDict].
var NewDict = python.NewDict

// List is a Python list. One *List is one object in Python.
type List struct{ Items []any }

// Object is a call that was not executed: the result of REDUCE or NEWOBJ, and the changes that
// the pickle made to it. In [Marshal] it is a call that Python executes when it reads the
// pickle.
type Object struct {
	Class    Global
	New      bool // NEWOBJ: created without calling __init__; otherwise REDUCE, a call
	Args     Tuple
	Kwargs   *Dict // NEWOBJ_EX; otherwise nil
	State    any   // BUILD
	HasState bool
	List     []any // appended items
	Dict     *Dict // items set by key; may be nil
}

// PythonObject makes an Object usable as a key.
func (o *Object) PythonObject() {}

// Persistent is a reference to an object outside of the pickle. ID is the persistent ID, from
// which the reader finds the object.
type Persistent struct{ ID any }

// PythonObject makes a Persistent usable as a key.
func (p *Persistent) PythonObject() {}

// Constructor returns the value of a call with the given arguments. It must not have side
// effects that remain when the value is discarded. An error that wraps [ErrForm] refuses the
// value, and decoding continues. Any other error means that the pickle is malformed.
type Constructor func(args Tuple) (any, error)

// Globals reports whether a pickle may use the name g. If the [Constructor] is nil, calls become
// an [Object]. A nil Globals allows the standard names only.
type Globals func(g Global) (c Constructor, ok bool)

// Table is a map that implements [Globals] with its Find method.
type Table map[Global]Constructor

// Find returns the constructor of g. ok is false if g is not in the table.
func (t Table) Find(g Global) (c Constructor, ok bool) {
	c, ok = t[g]
	return c, ok
}
