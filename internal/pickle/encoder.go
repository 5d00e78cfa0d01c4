package pickle

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
)

// encoder writes one pickle. encode makes it. One goroutine may use it.
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

// Write writes the same bytes as [Marshal] to w, but does not copy large byte slices. It returns
// the same errors as [Marshal], or the error of w. It may have written a part of the pickle when
// it returns an error.
func Write(w io.Writer, v any, protocol int) error {
	rest, err := encode(w, v, protocol)
	if err == nil {
		_, err = w.Write(rest)
	}
	return err
}

// encode writes the beginning of the pickle to w, if that is not nil, and returns the rest. It
// returns the same errors as [Marshal], or the error of w.
func encode(w io.Writer, v any, protocol int) ([]byte, error) {
	if protocol < minProtocol || protocol > maxProtocol {
		return nil, fmt.Errorf("%w: protocol %d, want %d to %d", ErrValue, protocol, minProtocol, maxProtocol)
	}
	e := &encoder{w: w, b: []byte{opProto, byte(protocol)}, proto: protocol, memo: map[any]uint32{}}
	if err := e.encodeValue(v); err != nil {
		return nil, fmt.Errorf("write pickle: %w", err)
	}
	return append(e.b, opStop), nil
}

func (e *encoder) writeOp(op byte, operands ...byte) { e.b = append(append(e.b, op), operands...) }

func (e *encoder) encodeValue(v any) error {
	if e.depth++; e.depth > (Limits{}).withDefaults().Depth {
		return fmt.Errorf("values nest deeper than %d: %w", e.depth-1, ErrLimit)
	}
	defer func() { e.depth-- }()
	switch v := v.(type) {
	case nil:
		e.writeOp(opNone)
	case bool:
		if v {
			e.writeOp(opNewTrue)
		} else {
			e.writeOp(opNewFalse)
		}
	case int:
		e.encodeInteger(int64(v))
	case int64:
		e.encodeInteger(v)
	case *big.Int:
		e.encodeLong(v)
	case float64:
		e.b = binary.BigEndian.AppendUint64(append(e.b, opBinFloat), math.Float64bits(v))
	case complex128:
		return e.encodeCall(Global{Module: "builtins", Name: "complex"}, real(v), imag(v))
	case string:
		return e.encodeText(v)
	case []byte:
		return e.encodeBytes(v)
	case Tuple:
		return e.encodeTuple(v)
	case Global:
		return e.encodeGlobal(v)
	default:
		return e.encodeShared(v)
	}
	return nil
}

// encodeShared writes a value with an identity: in full the first time, and as a memo reference
// afterwards. The error wraps [ErrValue] if v has a type that cannot be pickled.
func (e *encoder) encodeShared(v any) error {
	if e.writeMemoized(v) {
		return nil
	}
	switch v := v.(type) {
	case *ByteArray:
		return e.encodeByteArray(v)
	case *List:
		e.writeOp(opEmptyList)
		e.memoize(v)
		return e.encodeMarked(opAppends, v.Items)
	case *Dict:
		return e.encodeDict(v)
	case *Set:
		return e.encodeSet(v)
	case *Object:
		return e.encodeObject(v)
	case *Persistent:
		if err := e.encodeValue(v.ID); err != nil {
			return err
		}
		e.writeOp(opBinPersID)
		return nil
	case *Array:
		o, err := arrayObject(v)
		return e.encodeAs(v, o, err)
	case *Scalar:
		o, err := scalarObject(v)
		return e.encodeAs(v, o, err)
	}
	return fmt.Errorf("%w: %T cannot be pickled", ErrValue, v)
}

// encodeAs writes v as the object o, or returns err if that is not nil.
func (e *encoder) encodeAs(v any, o *Object, err error) error {
	if err != nil {
		return err
	}
	err = e.encodeObject(o)
	e.memo[v] = e.memo[o]
	return err
}

// writeMemoized writes a memo reference and returns true if v was written before. Otherwise it
// writes nothing and returns false.
func (e *encoder) writeMemoized(v any) bool {
	at, ok := e.memo[v]
	switch {
	case !ok:
		return false
	case at < 256:
		e.writeOp(opBinGet, byte(at))
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opLongBinGet), at)
	}
	return true
}

// memoize stores the value on top of the stack in the memo, for later references to v.
func (e *encoder) memoize(v any) {
	at := e.next
	e.memo[v] = at
	e.next++
	switch {
	case e.proto >= 4:
		e.writeOp(opMemoize)
	case at < 256:
		e.writeOp(opBinPut, byte(at))
	default:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opLongBinPut), at)
	}
}

// encodeMarked writes a mark, the values, and the opcode op. It writes nothing if there are no
// values.
func (e *encoder) encodeMarked(op byte, values []any) error {
	if len(values) == 0 {
		return nil
	}
	e.writeOp(opMark)
	for _, v := range values {
		if err := e.encodeValue(v); err != nil {
			return err
		}
	}
	e.writeOp(op)
	return nil
}

func (e *encoder) encodeTuple(t Tuple) error {
	if len(t) == 0 {
		e.writeOp(opEmptyTuple)
		return nil
	}
	if e.writeMemoized(identityOf(t)) {
		return nil
	}
	if err := e.encodeMarked(opTuple, t); err != nil {
		return err
	}
	e.memoize(identityOf(t))
	return nil
}

func (e *encoder) encodePairs(d *Dict) error {
	if d.Len() == 0 {
		return nil
	}
	both := make([]any, 0, 2*d.Len())
	for k, v := range d.All() {
		both = append(both, k, v)
	}
	return e.encodeMarked(opSetItems, both)
}

func (e *encoder) encodeDict(d *Dict) error {
	if d.Ordered {
		if err := e.encodeCall(Global{Module: "collections", Name: "OrderedDict"}); err != nil {
			return err
		}
	} else {
		e.writeOp(opEmptyDict)
	}
	e.memoize(d)
	if err := e.encodePairs(d); err != nil || d.Attrs == nil {
		return err
	}
	return e.encodeState(d.Attrs)
}

func (e *encoder) encodeState(v any) error {
	if err := e.encodeValue(v); err != nil {
		return err
	}
	e.writeOp(opBuild)
	return nil
}

func (e *encoder) encodeSet(s *Set) error {
	switch {
	case e.proto < 4:
		name := "set"
		if s.Frozen {
			name = "frozenset"
		}
		if err := e.encodeCall(Global{Module: "builtins", Name: name}, &List{s.Members()}); err != nil {
			return err
		}
	case s.Frozen:
		e.writeOp(opMark)
		for _, v := range s.Members() {
			if err := e.encodeValue(v); err != nil {
				return err
			}
		}
		e.writeOp(opFrozenSet)
	default:
		e.writeOp(opEmptySet)
		if err := e.encodeMarked(opAddItems, s.Members()); err != nil {
			return err
		}
	}
	e.memoize(s)
	return nil
}

func (e *encoder) encodeObject(o *Object) error {
	if err := e.encodeGlobal(o.Class); err != nil {
		return err
	}
	if err := e.encodeValue(o.Args); err != nil {
		return err
	}
	switch {
	case o.Kwargs != nil && e.proto >= 4:
		if err := e.encodeValue(o.Kwargs); err != nil {
			return err
		}
		e.writeOp(opNewObjEx)
	case o.Kwargs != nil:
		return fmt.Errorf("%w: keyword arguments of %s need protocol 4", ErrValue, o.Class)
	case o.New:
		e.writeOp(opNewObj)
	default:
		e.writeOp(opReduce)
	}
	e.memoize(o)
	if err := e.encodeMarked(opAppends, o.List); err != nil {
		return err
	}
	if err := e.encodePairs(o.Dict); err != nil || !o.HasState {
		return err
	}
	return e.encodeState(o.State)
}

// encodeCall writes a call of g, which leaves its result on the stack.
func (e *encoder) encodeCall(g Global, args ...any) error {
	if err := e.encodeGlobal(g); err != nil {
		return err
	}
	if err := e.encodeTuple(args); err != nil {
		return err
	}
	e.writeOp(opReduce)
	return nil
}
