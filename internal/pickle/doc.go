// Package pickle reads and writes Python's pickles, protocols 2 to 5, as data: nothing in them ever
// runs.
//
// A pickle is a program for a small stack machine that may name any Python callable. This package
// runs the machine over a closed dialect. Plain values become Go values (see the table below). What
// calls a callable becomes what a [Constructor] for its name makes of the arguments, or an inert
// [Object] where the name is allowed and has none. A name that is not allowed is a [*GlobalError].
//
//	v, err := pickle.Unmarshal(b, pickle.Table{{"torch", "Size"}: newSize}.Find, pickle.Limits{})
//	b, err := pickle.Marshal(v, 4)
//
//	Python                 Go, read            Go, written
//	None                   nil                 nil
//	bool                   bool                bool
//	int                    int64 or *big.Int   int, int64, *big.Int
//	float, complex         float64, complex128 the same
//	str                    string              string
//	bytes, bytearray       []byte, *ByteArray  the same
//	tuple                  Tuple               Tuple
//	list                   *List               *List
//	dict, OrderedDict      *Dict               *Dict
//	set, frozenset         *Set                *Set
//	numpy.ndarray          *Array              *Array
//	numpy scalar           *Scalar             *Scalar
//	a class or a function  Global              Global
//	any other object       *Object             *Object
//	persistent id          *Persistent         *Persistent
//
// What is one object in Python is one pointer here, and the other way round.
//
// The trap: values may form cycles, and one value may stand in many places. A function that walks
// them remembers the pointers it has seen; the depth that [Limits] bounds is that of such a walk.
package pickle
