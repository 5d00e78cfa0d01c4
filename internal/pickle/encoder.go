package pickle

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
)

// encoder writes one pickle.
type encoder struct {
	w     io.Writer // nil if b collects everything
	b     []byte
	proto int
	memo  map[any]uint32 // memo indices of written values, by pointer or name
	next  uint32         // next memo index
	depth int
}

// Marshal returns the pickle of v, which must have one of the types in the package documentation.
// protocol must be from 2 to 5. One pointer in v becomes one object in Python. The error wraps
// [ErrValue] if v contains another type, and [ErrLimit] if it is nested deeper than 1000 values.
func Marshal(v any, protocol int) ([]byte, error) { return encode(nil, v, protocol) }

// Write writes the same bytes as [Marshal] to w, but does not copy large byte slices. It may have
// written a part of the pickle when it returns an error.
func Write(w io.Writer, v any, protocol int) error {
	rest, err := encode(w, v, protocol)
	if err == nil {
		_, err = w.Write(rest)
	}
	return err
}

// encode writes the beginning of the pickle to w, if that is not nil, and returns the rest.
func encode(w io.Writer, v any, protocol int) ([]byte, error) {
	if protocol < minProtocol || protocol > maxProtocol {
		return nil, fmt.Errorf("%w: protocol %d, want %d to %d", ErrValue, protocol, minProtocol, maxProtocol)
	}
	e := &encoder{w: w, b: []byte{opProto, byte(protocol)}, proto: protocol, memo: map[any]uint32{}}
	if err := e.value(v); err != nil {
		return nil, fmt.Errorf("write pickle: %w", err)
	}
	return append(e.b, opStop), nil
}

func (e *encoder) op(op byte, operands ...byte) { e.b = append(append(e.b, op), operands...) }

func (e *encoder) value(v any) error {
	if e.depth++; e.depth > (Limits{}).orDefaults().Depth {
		return fmt.Errorf("values nest deeper than %d: %w", e.depth-1, ErrLimit)
	}
	defer func() { e.depth-- }()
	switch v := v.(type) {
	case nil:
		e.op(opNone)
	case bool:
		if v {
			e.op(opNewTrue)
		} else {
			e.op(opNewFalse)
		}
	case int:
		e.integer(int64(v))
	case int64:
		e.integer(v)
	case *big.Int:
		e.long(v)
	case float64:
		e.b = binary.BigEndian.AppendUint64(append(e.b, opBinFloat), math.Float64bits(v))
	case complex128:
		return e.call(Global{Module: "builtins", Name: "complex"}, real(v), imag(v))
	case string:
		return e.text(v)
	case []byte:
		return e.bytes(v)
	case Tuple:
		return e.tuple(v)
	case Global:
		return e.global(v)
	default:
		return e.shared(v)
	}
	return nil
}

// shared writes a value with an identity: in full the first time, and as a memo reference
// afterwards.
func (e *encoder) shared(v any) error {
	if e.remembered(v) {
		return nil
	}
	switch v := v.(type) {
	case *ByteArray:
		return e.byteArray(v)
	case *List:
		e.op(opEmptyList)
		e.remember(v)
		return e.several(opAppends, v.Items)
	case *Dict:
		return e.dict(v)
	case *Set:
		return e.set(v)
	case *Object:
		return e.object(v)
	case *Persistent:
		if err := e.value(v.ID); err != nil {
			return err
		}
		e.op(opBinPersID)
		return nil
	case *Array:
		o, err := arrayObject(v)
		return e.standsFor(v, o, err)
	case *Scalar:
		o, err := scalarObject(v)
		return e.standsFor(v, o, err)
	}
	return fmt.Errorf("%w: %T cannot be pickled", ErrValue, v)
}

// standsFor writes v as the object o.
func (e *encoder) standsFor(v any, o *Object, err error) error {
	if err != nil {
		return err
	}
	err = e.object(o)
	e.memo[v] = e.memo[o]
	return err
}

// remembered writes a memo reference and returns true if v was written before.
func (e *encoder) remembered(v any) bool {
	at, ok := e.memo[v]
	switch {
	case !ok:
		return false
	case at < 256:
		e.op(opBinGet, byte(at))
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opLongBinGet), at)
	}
	return true
}

// remember stores the value on top of the stack in the memo.
func (e *encoder) remember(v any) {
	at := e.next
	e.memo[v] = at
	e.next++
	switch {
	case e.proto >= 4:
		e.op(opMemoize)
	case at < 256:
		e.op(opBinPut, byte(at))
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opLongBinPut), at)
	}
}

// several writes a mark, the values, and op. It writes nothing if there are no values.
func (e *encoder) several(op byte, values []any) error {
	if len(values) == 0 {
		return nil
	}
	e.op(opMark)
	for _, v := range values {
		if err := e.value(v); err != nil {
			return err
		}
	}
	e.op(op)
	return nil
}

func (e *encoder) tuple(t Tuple) error {
	if len(t) == 0 {
		e.op(opEmptyTuple)
		return nil
	}
	if e.remembered(place(t)) {
		return nil
	}
	if err := e.several(opTuple, t); err != nil {
		return err
	}
	e.remember(place(t))
	return nil
}

func (e *encoder) pairs(d *Dict) error {
	if d.Len() == 0 {
		return nil
	}
	both := make([]any, 0, 2*d.Len())
	for k, v := range d.All() {
		both = append(both, k, v)
	}
	return e.several(opSetItems, both)
}

func (e *encoder) dict(d *Dict) error {
	if d.Ordered {
		if err := e.call(Global{Module: "collections", Name: "OrderedDict"}); err != nil {
			return err
		}
	} else {
		e.op(opEmptyDict)
	}
	e.remember(d)
	if err := e.pairs(d); err != nil || d.Attrs == nil {
		return err
	}
	return e.state(d.Attrs)
}

func (e *encoder) state(v any) error {
	if err := e.value(v); err != nil {
		return err
	}
	e.op(opBuild)
	return nil
}

func (e *encoder) set(s *Set) error {
	switch {
	case e.proto < 4:
		name := "set"
		if s.Frozen {
			name = "frozenset"
		}
		if err := e.call(Global{Module: "builtins", Name: name}, &List{s.Members()}); err != nil {
			return err
		}
	case s.Frozen:
		e.op(opMark)
		for _, v := range s.Members() {
			if err := e.value(v); err != nil {
				return err
			}
		}
		e.op(opFrozenSet)
	default:
		e.op(opEmptySet)
		if err := e.several(opAddItems, s.Members()); err != nil {
			return err
		}
	}
	e.remember(s)
	return nil
}

func (e *encoder) object(o *Object) error {
	if err := e.global(o.Class); err != nil {
		return err
	}
	if err := e.value(o.Args); err != nil {
		return err
	}
	switch {
	case o.Kwargs != nil && e.proto >= 4:
		if err := e.value(o.Kwargs); err != nil {
			return err
		}
		e.op(opNewObjEx)
	case o.Kwargs != nil:
		return fmt.Errorf("%w: keyword arguments of %s need protocol 4", ErrValue, o.Class)
	case o.New:
		e.op(opNewObj)
	default:
		e.op(opReduce)
	}
	e.remember(o)
	if err := e.several(opAppends, o.List); err != nil {
		return err
	}
	if err := e.pairs(o.Dict); err != nil || !o.HasState {
		return err
	}
	return e.state(o.State)
}

// call writes a call of g.
func (e *encoder) call(g Global, args ...any) error {
	if err := e.global(g); err != nil {
		return err
	}
	if err := e.tuple(args); err != nil {
		return err
	}
	e.op(opReduce)
	return nil
}
