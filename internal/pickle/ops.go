package pickle

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/encoding/python"
)

// ops maps each opcode to its implementation. Opcodes with a nil entry are refused.
var ops = [256]func(*machine) error{
	opProto: (*machine).proto,
	opFrame: func(m *machine) error { _, err := m.src.uint(8); return err }, // a read-ahead hint
	opStop:  func(m *machine) error { m.done = true; return nil },

	opNone:            constant(nil),
	opNewTrue:         constant(true),
	opNewFalse:        constant(false),
	opBinInt:          integer(4, func(u uint64) int64 { return int64(int32(u)) }),
	opBinInt1:         integer(1, func(u uint64) int64 { return int64(u) }),
	opBinInt2:         integer(2, func(u uint64) int64 { return int64(u) }),
	opLong1:           sized(1, (*source).look, long),
	opLong4:           sized(4, (*source).look, long),
	opBinFloat:        (*machine).float,
	opShortBinUnicode: sized(1, (*source).look, text),
	opBinUnicode:      sized(4, (*source).look, text),
	opBinUnicode8:     sized(8, (*source).look, text),
	opShortBinString:  sized(1, (*source).look, ascii),
	opBinString:       sized(4, (*source).look, ascii),
	opShortBinBytes:   sized(1, (*source).take, raw),
	opBinBytes:        sized(4, (*source).take, raw),
	opBinBytes8:       sized(8, (*source).take, raw),
	opByteArray8:      sized(8, (*source).take, func(b []byte) (any, error) { return &ByteArray{Bytes: b}, nil }),

	opMark:    (*machine).mark,
	opPop:     (*machine).drop,
	opPopMark: func(m *machine) error { _, err := m.popMark(); return err },
	opDup:     func(m *machine) error { return withTop(m, m.push) },

	opMemoize:    func(m *machine) error { return m.put(m.memo.len()) },
	opBinPut:     indexed(1, (*machine).put),
	opLongBinPut: indexed(4, (*machine).put),
	opBinGet:     indexed(1, (*machine).get),
	opLongBinGet: indexed(4, (*machine).get),

	opEmptyTuple: func(m *machine) error { return m.tuple(0) },
	opTuple1:     func(m *machine) error { return m.tuple(1) },
	opTuple2:     func(m *machine) error { return m.tuple(2) },
	opTuple3:     func(m *machine) error { return m.tuple(3) },
	opTuple:      marked(func(m *machine, v []any) error { return m.push(Tuple(slices.Clone(v))) }),
	opEmptyList:  func(m *machine) error { return m.push(new(List)) },
	opEmptyDict:  func(m *machine) error { return m.push(new(Dict)) },
	opEmptySet:   func(m *machine) error { return m.push(new(Set)) },
	opFrozenSet:  marked(func(m *machine, v []any) error { return m.pushed(python.NewSet(true, v...)) }),

	opAppend:   taking(1, (*machine).extend),
	opAppends:  marked((*machine).extend),
	opSetItem:  taking(2, (*machine).setItems),
	opSetItems: marked((*machine).setItems),
	opAddItems: marked((*machine).addItems),

	opGlobal:      (*machine).globalLines,
	opStackGlobal: taking(2, (*machine).stackGlobal),
	opReduce:      taking(2, func(m *machine, v []any) error { return m.call(v[0], v[1], nil, false) }),
	opNewObj:      taking(2, func(m *machine, v []any) error { return m.call(v[0], v[1], nil, true) }),
	opNewObjEx:    taking(3, func(m *machine, v []any) error { return m.call(v[0], v[1], v[2], true) }),
	opBuild:       taking(1, (*machine).build),
	opBinPersID:   taking(1, (*machine).outside),
}

func constant(v any) func(*machine) error {
	return func(m *machine) error { return m.push(v) }
}

func integer(width int, value func(uint64) int64) func(*machine) error {
	return func(m *machine) error {
		u, err := m.src.uint(width)
		if err != nil {
			return err
		}
		return m.push(value(u))
	}
}

// sized returns an opcode with a length of width bytes and a value of that length. get must be
// [source.take] if the value keeps the bytes, and may be [source.look] otherwise.
func sized(width int, get func(*source, uint64) ([]byte, error), value func([]byte) (any, error)) func(*machine) error {
	return func(m *machine) error {
		n, err := m.src.uint(width)
		if err != nil {
			return err
		}
		b, err := get(m.src, n)
		if err != nil {
			return err
		}
		return m.pushed(value(b))
	}
}

func indexed(width int, do func(*machine, uint64) error) func(*machine) error {
	return func(m *machine) error {
		at, err := m.src.uint(width)
		if err != nil {
			return err
		}
		return do(m, at)
	}
}

// taking returns an opcode that pops n values.
func taking(n int, do func(*machine, []any) error) func(*machine) error {
	return func(m *machine) error {
		values, err := m.pop(n)
		if err != nil {
			return err
		}
		return do(m, values)
	}
}

// marked returns an opcode that pops all values above the mark.
func marked(do func(*machine, []any) error) func(*machine) error {
	return func(m *machine) error {
		values, err := m.popMark()
		if err != nil {
			return err
		}
		return do(m, values)
	}
}

func withTop(m *machine, do func(any) error) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	return do(v)
}

// pushed pushes the result of a function. v is ignored if err is not nil, so a nil pointer in v is
// never pushed.
func (m *machine) pushed(v any, err error) error {
	if err != nil {
		return err
	}
	return m.push(v)
}

func (m *machine) proto() error {
	p, err := m.src.byte()
	if err == nil && p > maxProtocol {
		err = malformed("protocol %d, want 0 to %d", p, maxProtocol)
	}
	return err
}

// drop pops a value, or the mark if it is on top.
func (m *machine) drop() error {
	if len(m.marks) > 0 && m.above() == 0 {
		m.marks = m.marks[:len(m.marks)-1]
		return nil
	}
	_, err := m.pop(1)
	return err
}

func (m *machine) float() error {
	b, err := m.src.look(8)
	if err != nil {
		return err
	}
	return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// long decodes a little-endian two's complement integer.
func long(b []byte) (any, error) {
	if len(b) <= 8 {
		var u uint64
		for i, v := range b {
			u |= uint64(v) << (8 * i)
		}
		if len(b) == 0 {
			return int64(0), nil
		}
		shift := 64 - 8*len(b)
		return int64(u<<shift) >> shift, nil
	}
	b = slices.Clone(b)
	slices.Reverse(b)
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if n.IsInt64() {
		return n.Int64(), nil
	}
	return n, nil
}

// text decodes a str. Python encodes lone surrogates as if they were characters, so it may not be
// valid UTF-8.
func text(b []byte) (any, error) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			if !surrogate(rest) {
				return nil, malformed("str is not UTF-8")
			}
			n = 3
		}
		rest = rest[n:]
	}
	return string(b), nil
}

func surrogate(b []byte) bool {
	return len(b) >= 3 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80
}

// ascii decodes a Python 2 str, which must be ASCII.
func ascii(b []byte) (any, error) {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return nil, malformed("str of Python 2 is not ASCII")
		}
	}
	return string(b), nil
}

func raw(b []byte) (any, error) { return b, nil }
