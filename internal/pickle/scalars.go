package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

func (e *encoder) encodeInteger(v int64) {
	switch {
	case v >= 0 && v < 1<<8:
		e.writeOp(opBinInt1, byte(v))
	case v >= 0 && v < 1<<16:
		e.b = binary.LittleEndian.AppendUint16(append(e.b, opBinInt2), uint16(v))
	case v == int64(int32(v)):
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opBinInt), uint32(v))
	default:
		e.b = binary.LittleEndian.AppendUint64(append(e.b, opLong1, 8), uint64(v))
	}
}

func (e *encoder) encodeLong(v *big.Int) {
	if v.IsInt64() {
		e.encodeInteger(v.Int64())
		return
	}
	b := twosComplement(v)
	if len(b) < 256 {
		e.writeOp(opLong1, byte(len(b)))
	} else {
		e.b = binary.LittleEndian.AppendUint32(append(e.b, opLong4), uint32(len(b)))
	}
	e.b = append(e.b, b...)
}

// twosComplement returns v as a little-endian two's complement integer with a sign bit, of at
// least one byte.
func twosComplement(v *big.Int) []byte {
	n := v.BitLen()/8 + 1
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	b := v.FillBytes(make([]byte, n))
	slices.Reverse(b)
	return b
}

// encodeSized writes an opcode, the length of b, and b. ops are the opcodes for lengths of 1, 4
// and 8 bytes; 0 means that there is none. The error wraps [ErrValue] if b is too long for the
// opcodes.
func (e *encoder) encodeSized(ops [3]byte, b []byte) error {
	switch {
	case len(b) < 1<<8 && ops[0] != 0:
		e.writeOp(ops[0], byte(len(b)))
	case len(b) <= math.MaxUint32 && ops[1] != 0:
		e.b = binary.LittleEndian.AppendUint32(append(e.b, ops[1]), uint32(len(b)))
	case ops[2] != 0:
		e.b = binary.LittleEndian.AppendUint64(append(e.b, ops[2]), uint64(len(b)))
	default:
		return fmt.Errorf("%w: %d bytes need protocol 4", ErrValue, len(b))
	}
	if e.w == nil || len(b) < direct {
		e.b = append(e.b, b...)
		return nil
	}
	_, err := e.w.Write(e.b)
	if e.b = e.b[:0]; err == nil {
		_, err = e.w.Write(b)
	}
	return err
}

// direct is the minimum size in bytes of a slice that is written without copying it.
const direct = 64 << 10

func (e *encoder) encodeText(s string) error {
	if _, err := decodeText([]byte(s)); err != nil {
		return fmt.Errorf("%w: string %.40q is not UTF-8", ErrValue, s)
	}
	ops := [3]byte{0, opBinUnicode, 0}
	if e.proto >= 4 {
		ops = [3]byte{opShortBinUnicode, opBinUnicode, opBinUnicode8}
	}
	return e.encodeSized(ops, []byte(s))
}

func (e *encoder) encodeBytes(b []byte) error {
	if e.proto >= 3 {
		ops := [3]byte{opShortBinBytes, opBinBytes, 0}
		if e.proto >= 4 {
			ops[2] = opBinBytes8
		}
		return e.encodeSized(ops, b)
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return e.encodeCall(Global{Module: "_codecs", Name: "encode"}, string(runes), "latin1")
}

func (e *encoder) encodeByteArray(b *ByteArray) error {
	var err error
	if e.proto >= 5 {
		err = e.encodeSized([3]byte{0, 0, opByteArray8}, b.Bytes)
	} else {
		err = e.encodeCall(Global{Module: "builtins", Name: "bytearray"}, b.Bytes)
	}
	e.memoize(b)
	return err
}

func (e *encoder) encodeGlobal(g Global) error {
	if e.writeMemoized(g) {
		return nil
	}
	if g.Module == "" || g.Name == "" || strings.ContainsAny(g.Module+g.Name, "\n\r") {
		return fmt.Errorf("%w: %q is not a Python name", ErrValue, g)
	}
	if e.proto < 4 {
		module := g.Module
		if e.proto == 2 && module == "builtins" {
			module = "__builtin__"
		}
		e.b = fmt.Appendf(append(e.b, opGlobal), "%s\n%s\n", module, g.Name)
	} else {
		for _, part := range []string{g.Module, g.Name} {
			if err := e.encodeText(part); err != nil {
				return err
			}
		}
		e.writeOp(opStackGlobal)
	}
	e.memoize(g)
	return nil
}
