package pickle

// A Global is a Python name: a class, a function, a constant.
type Global struct{ Module, Name string }

func (g Global) String() string { return g.Module + "." + g.Name }

// A Tuple is a Python tuple.
type Tuple []any

// A List is a Python list.
type List struct{ Items []any }

// A ByteArray is a Python bytearray.
type ByteArray struct{ Bytes []byte }

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

// A Persistent is a reference to something outside the pickle.
type Persistent struct{ ID any }

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

// A builder is a value that takes the state of BUILD.
type builder interface{ build(state any) error }
