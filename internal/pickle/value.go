package pickle

import "github.com/shoal-mp/shoal/encoding/python"

// The values that programs see.
type (
	Tuple     = python.Tuple
	Dict      = python.Dict
	Set       = python.Set
	ByteArray = python.ByteArray
	Global    = python.Global
	Array     = python.Array
	Scalar    = python.Scalar
)

// NewDict is python.NewDict.
var NewDict = python.NewDict

// A List is a Python list.
type List struct{ Items []any }

// An Object is a call that was not made: what REDUCE or NEWOBJ would have returned, with what was
// done to it after.
type Object struct {
	Class    Global
	New      bool // NEWOBJ, an instance without a call of its __init__; otherwise REDUCE, a call
	Args     Tuple
	Kwargs   *Dict // of NEWOBJ_EX, else nil
	State    any   // of BUILD
	HasState bool
	List     []any // what was appended
	Dict     *Dict // what was set by key, else nil
}

// PythonObject lets it be a key.
func (o *Object) PythonObject() {}

// A Persistent is a reference to something outside the pickle.
type Persistent struct{ ID any }

// PythonObject lets it be a key.
func (p *Persistent) PythonObject() {}

// A Constructor makes the value of a call. It must have no effect that is not undone by forgetting
// the value.
type Constructor func(args Tuple) (any, error)

// Globals says which names may be used. A nil Constructor lets calls become an Object.
type Globals func(g Global) (c Constructor, ok bool)

// A Table is the usual way to write Globals.
type Table map[Global]Constructor

// Find looks g up.
func (t Table) Find(g Global) (c Constructor, ok bool) {
	c, ok = t[g]
	return c, ok
}
