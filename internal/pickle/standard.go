package pickle

import (
	"fmt"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/encoding/python"
)

// standard contains the names that plain values use in any protocol.
var standard = Table{
	{Module: "builtins", Name: "set"}:            func(args Tuple) (any, error) { return setOf(false, args) },
	{Module: "builtins", Name: "frozenset"}:      func(args Tuple) (any, error) { return setOf(true, args) },
	{Module: "builtins", Name: "list"}:           newList,
	{Module: "builtins", Name: "bytearray"}:      newByteArray,
	{Module: "builtins", Name: "bytes"}:          newBytes,
	{Module: "builtins", Name: "complex"}:        newComplex,
	{Module: "_codecs", Name: "encode"}:          encodeLatin1,
	{Module: "collections", Name: "OrderedDict"}: newOrderedDict,
	{Module: "collections", Name: "Counter"}:     newCounter,
	{Module: "builtins", Name: "object"}:         nil,
	{Module: "copyreg", Name: "_reconstructor"}:  newObject,

	{Module: "numpy", Name: "ndarray"}:                       nil,
	{Module: "numpy", Name: "memmap"}:                        nil,
	{Module: "numpy", Name: "dtype"}:                         newNumpyType,
	{Module: "numpy.core.multiarray", Name: "_reconstruct"}:  newArray,
	{Module: "numpy._core.multiarray", Name: "_reconstruct"}: newArray,
	{Module: "numpy.core.multiarray", Name: "scalar"}:        newScalar,
	{Module: "numpy._core.multiarray", Name: "scalar"}:       newScalar,
	{Module: "numpy.core.numeric", Name: "_frombuffer"}:      newArrayFromBuffer,
	{Module: "numpy._core.numeric", Name: "_frombuffer"}:     newArrayFromBuffer,
}

// canonicalModule returns the Python 3 name of a module that protocol 2 calls by its Python 2
// name, and module itself for any other name.
func canonicalModule(module string) string {
	switch module {
	case "__builtin__":
		return "builtins"
	case "copy_reg":
		return "copyreg"
	}
	return module
}

// checkArity returns an error if the number of arguments is not from least to most.
func checkArity(args Tuple, least, most int) error {
	if len(args) < least || len(args) > most {
		return fmt.Errorf("got %d arguments, want %d to %d", len(args), least, most)
	}
	return nil
}

// argumentAt returns args[i], which must have type T. It returns an error if the argument is
// missing or has another type.
func argumentAt[T any](args Tuple, i int) (v T, err error) {
	if i >= len(args) {
		return v, fmt.Errorf("got only %d arguments", len(args))
	}
	v, ok := args[i].(T)
	if !ok {
		return v, fmt.Errorf("argument %d is %T, want %T", i+1, args[i], v)
	}
	return v, nil
}

// argumentItems returns the elements of the only argument, which must be a list or a tuple, or
// nil if there is no argument.
func argumentItems(args Tuple) ([]any, error) {
	if err := checkArity(args, 0, 1); err != nil || len(args) == 0 {
		return nil, err
	}
	switch v := args[0].(type) {
	case *List:
		return v.Items, nil
	case Tuple:
		return v, nil
	}
	return nil, fmt.Errorf("argument 1 is %T, want a list", args[0])
}

func setOf(frozen bool, args Tuple) (any, error) {
	list, err := argumentItems(args)
	if err != nil {
		return nil, err
	}
	return python.NewSet(frozen, list...)
}

func newList(args Tuple) (any, error) {
	list, err := argumentItems(args)
	return &List{append([]any(nil), list...)}, err
}

func newByteArray(args Tuple) (any, error) {
	if len(args) == 2 { // protocol 2: a str and "latin-1"
		b, err := encodeLatin1(args)
		if err != nil {
			return nil, err
		}
		return &ByteArray{Bytes: b.([]byte)}, nil
	}
	if err := checkArity(args, 0, 1); err != nil || len(args) == 0 {
		return new(ByteArray), err
	}
	b, err := argumentAt[[]byte](args, 0)
	return &ByteArray{Bytes: append([]byte(nil), b...)}, err
}

// newBytes is the constructor for the call that protocol 2 uses to encode empty bytes.
func newBytes(args Tuple) (any, error) { return []byte{}, checkArity(args, 0, 0) }

func newComplex(args Tuple) (any, error) {
	re, err := argumentAt[float64](args, 0)
	if err != nil {
		return nil, err
	}
	im, err := argumentAt[float64](args, 1)
	return complex(re, im), err
}

// encodeLatin1 is the constructor for the call that protocol 2 uses to encode bytes: a str with
// the characters 0 to 255. It returns a []byte.
func encodeLatin1(args Tuple) (any, error) {
	s, err := argumentAt[string](args, 0)
	if err != nil {
		return nil, err
	}
	if name, err := argumentAt[string](args, 1); err != nil || name != "latin1" && name != "latin-1" {
		return nil, fmt.Errorf("encoding is %q, want latin1", name)
	}
	b := make([]byte, 0, utf8.RuneCountInString(s))
	for _, r := range s {
		if r > 0xff {
			return nil, fmt.Errorf("character %U is not in latin1", r)
		}
		b = append(b, byte(r))
	}
	return b, nil
}

// newCounter is the constructor of a collections.Counter, and returns it as a *[Dict].
func newCounter(args Tuple) (any, error) {
	if err := checkArity(args, 0, 1); err != nil || len(args) == 0 {
		return new(Dict), err
	}
	return argumentAt[*Dict](args, 0)
}

func newOrderedDict(args Tuple) (any, error) {
	pairs, err := argumentItems(args)
	d := &Dict{Ordered: true}
	for _, p := range pairs {
		pair, ok := p.(Tuple)
		if l, is := p.(*List); is {
			pair, ok = l.Items, true
		}
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("got %T, want a pair", p)
		}
		if err := d.Set(pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return d, err
}
