// Package pickle reads and writes Python pickles of protocols 2 to 5 as pure data. It also reads
// protocols 0 and 1. It never executes anything that a pickle contains.
//
// A pickle is a program for a stack machine that may call any Python function. This package
// implements the machine for a closed dialect. Plain values become Go values, as listed below. The
// result of a call is the value returned by the [Constructor] of its name, or an inert [Object] if
// the name is allowed but has no constructor. A name that is not allowed is a [*GlobalError].
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
// Object identity is preserved: one object in Python is one pointer in Go, and vice versa.
//
// Values may contain cycles and shared parts. A function that traverses them must remember the
// pointers that it has visited. The depth in [Limits] is the depth of such a traversal.
package pickle
