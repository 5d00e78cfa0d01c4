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
	opProto: (*machine).readProto,
	opFrame: func(m *machine) error { _, err := m.src.readUint(8); return err }, // a read-ahead hint
	opStop:  func(m *machine) error { m.done = true; return nil },

	opNone:            constantOpcode(nil),
	opNewTrue:         constantOpcode(true),
	opNewFalse:        constantOpcode(false),
	opBinInt:          integerOpcode(4, func(u uint64) int64 { return int64(int32(u)) }),
	opBinInt1:         integerOpcode(1, func(u uint64) int64 { return int64(u) }),
	opBinInt2:         integerOpcode(2, func(u uint64) int64 { return int64(u) }),
	opLong1:           sizedOpcode(1, (*source).nextBytes, decodeLong),
	opLong4:           sizedOpcode(4, (*source).nextBytes, decodeLong),
	opBinFloat:        (*machine).pushFloat,
	opShortBinUnicode: sizedOpcode(1, (*source).nextBytes, decodeText),
	opBinUnicode:      sizedOpcode(4, (*source).nextBytes, decodeText),
	opBinUnicode8:     sizedOpcode(8, (*source).nextBytes, decodeText),
	opShortBinString:  sizedOpcode(1, (*source).nextBytes, decodeASCII),
	opBinString:       sizedOpcode(4, (*source).nextBytes, decodeASCII),
	opShortBinBytes:   sizedOpcode(1, (*source).readBytes, rawBytes),
	opBinBytes:        sizedOpcode(4, (*source).readBytes, rawBytes),
	opBinBytes8:       sizedOpcode(8, (*source).readBytes, rawBytes),
	opByteArray8: sizedOpcode(8, (*source).readBytes, func(b []byte) (any,
		error) {
		return &ByteArray{Bytes: b}, nil
	}),

	opMark:    (*machine).pushMark,
	opPop:     (*machine).popTop,
	opPopMark: func(m *machine) error { _, err := m.popMark(); return err },
	opDup:     func(m *machine) error { return updateTop(m, m.push) },

	opMemoize:    func(m *machine) error { return m.putMemo(m.memo.len()) },
	opBinPut:     indexedOpcode(1, (*machine).putMemo),
	opLongBinPut: indexedOpcode(4, (*machine).putMemo),
	opBinGet:     indexedOpcode(1, (*machine).getMemo),
	opLongBinGet: indexedOpcode(4, (*machine).getMemo),

	opEmptyTuple: func(m *machine) error { return m.replaceByTuple(0) },
	opTuple1:     func(m *machine) error { return m.replaceByTuple(1) },
	opTuple2:     func(m *machine) error { return m.replaceByTuple(2) },
	opTuple3:     func(m *machine) error { return m.replaceByTuple(3) },
	opTuple:      markOpcode(func(m *machine, v []any) error { return m.push(Tuple(slices.Clone(v))) }),
	opEmptyList:  func(m *machine) error { return m.push(new(List)) },
	opEmptyDict:  func(m *machine) error { return m.push(new(Dict)) },
	opEmptySet:   func(m *machine) error { return m.push(new(Set)) },
	opFrozenSet:  markOpcode(func(m *machine, v []any) error { return m.pushResult(python.NewSet(true, v...)) }),

	opAppend:   popOpcode(1, (*machine).appendValues),
	opAppends:  markOpcode((*machine).appendValues),
	opSetItem:  popOpcode(2, (*machine).setItems),
	opSetItems: markOpcode((*machine).setItems),
	opAddItems: markOpcode((*machine).addItems),

	opGlobal:      (*machine).pushGlobalLines,
	opStackGlobal: popOpcode(2, (*machine).pushStackGlobal),
	opReduce:      popOpcode(2, func(m *machine, v []any) error { return m.pushCall(v[0], v[1], nil, false) }),
	opNewObj:      popOpcode(2, func(m *machine, v []any) error { return m.pushCall(v[0], v[1], nil, true) }),
	opNewObjEx:    popOpcode(3, func(m *machine, v []any) error { return m.pushCall(v[0], v[1], v[2], true) }),
	opBuild:       popOpcode(1, (*machine).build),
	opBinPersID:   popOpcode(1, (*machine).pushPersistent),
}

func constantOpcode(v any) func(*machine) error {
	return func(m *machine) error { return m.push(v) }
}

func integerOpcode(width int, value func(uint64) int64) func(*machine) error {
	return func(m *machine) error {
		u, err := m.src.readUint(width)
		if err != nil {
			return err
		}
		return m.push(value(u))
	}
}

// sizedOpcode returns an opcode with a length of width bytes and an operand of that length,
// which value converts to the value that is pushed. get must be [source.readBytes] if the value
// keeps the bytes, and may be [source.nextBytes] otherwise.
func sizedOpcode(width int, get func(*source, uint64) ([]byte, error),
	value func([]byte) (any, error)) func(*machine) error {
	return func(m *machine) error {
		n, err := m.src.readUint(width)
		if err != nil {
			return err
		}
		b, err := get(m.src, n)
		if err != nil {
			return err
		}
		return m.pushResult(value(b))
	}
}

func indexedOpcode(width int, do func(*machine, uint64) error) func(*machine) error {
	return func(m *machine) error {
		at, err := m.src.readUint(width)
		if err != nil {
			return err
		}
		return do(m, at)
	}
}

// popOpcode returns an opcode that pops n values and passes them to do in push order.
func popOpcode(n int, do func(*machine, []any) error) func(*machine) error {
	return func(m *machine) error {
		values, err := m.pop(n)
		if err != nil {
			return err
		}
		return do(m, values)
	}
}

// markOpcode returns an opcode that pops the last mark and all values above it, and passes the
// values to do in push order.
func markOpcode(do func(*machine, []any) error) func(*machine) error {
	return func(m *machine) error {
		values, err := m.popMark()
		if err != nil {
			return err
		}
		return do(m, values)
	}
}

func updateTop(m *machine, do func(any) error) error {
	v, err := m.topValue()
	if err != nil {
		return err
	}
	return do(v)
}

// pushResult pushes v, or returns err if that is not nil. v is ignored then, so a nil pointer in
// v is never pushed.
func (m *machine) pushResult(v any, err error) error {
	if err != nil {
		return err
	}
	return m.push(v)
}

func (m *machine) readProto() error {
	p, err := m.src.readByte()
	if err == nil && p > maxProtocol {
		err = malformed("protocol %d, want 0 to %d", p, maxProtocol)
	}
	return err
}

// popTop drops the top value, or the last mark if there is no value above it. The error wraps
// [ErrFormat] if the stack is empty.
func (m *machine) popTop() error {
	if len(m.marks) > 0 && m.countAboveMark() == 0 {
		m.marks = m.marks[:len(m.marks)-1]
		return nil
	}
	_, err := m.pop(1)
	return err
}

func (m *machine) pushFloat() error {
	b, err := m.src.nextBytes(8)
	if err != nil {
		return err
	}
	return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// decodeLong decodes a little-endian two's complement integer to an int64 or, if it is larger, a
// *[big.Int]. The error is always nil.
func decodeLong(b []byte) (any, error) {
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

// decodeText decodes a str to a string. Python encodes lone surrogates as if they were
// characters, so the string may not be valid UTF-8. Any other invalid UTF-8 is an error that
// wraps [ErrFormat].
func decodeText(b []byte) (any, error) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			if !isSurrogate(rest) {
				return nil, malformed("str is not UTF-8")
			}
			n = 3
		}
		rest = rest[n:]
	}
	return string(b), nil
}

func isSurrogate(b []byte) bool {
	return len(b) >= 3 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80
}

// decodeASCII decodes a Python 2 str to a string. The error wraps [ErrFormat] if it is not
// ASCII.
func decodeASCII(b []byte) (any, error) {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return nil, malformed("str of Python 2 is not ASCII")
		}
	}
	return string(b), nil
}

func rawBytes(b []byte) (any, error) { return b, nil }
