package neon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// table is the constants of a file: the data that its functions refer to, and the sixteen bytes
// each that the translation loads. Each function has a part of its own, so that its constants
// are in the range of the instruction that loads two registers. A constant is there twice, for
// both. newTable makes it.
type table struct {
	name    string
	data    map[string][]byte
	whole   []byte // parts of all functions
	bytes   []byte // part of the present function
	offsets map[[16]byte]*constant
	regions map[string]int // the offsets of data that functions take the address of
}

func newTable(name string, f *ir.File) *table {
	t := &table{name: name, data: map[string][]byte{}, offsets: map[[16]byte]*constant{}, regions: map[string]int{}}
	for _, s := range f.Sections {
		g, ok := s.(*ir.Global)
		if !ok {
			continue
		}
		data := make([]byte, (g.Size+15)/16*16)
		for _, d := range g.Data {
			putNumber(data[d.Offset:], d.Value)
		}
		t.data[g.Symbol.Name] = data
	}
	return t
}

// putNumber writes a constant of avo to the beginning of to, little endian. It panics if the
// constant is not a number.
func putNumber(to []byte, value operand.Constant) {
	n, ok := constantValue(value)
	switch v := value.(type) {
	case operand.F32:
		n, ok = int64(math.Float32bits(float32(v))), true
	case operand.F64:
		n, ok = int64(math.Float64bits(float64(v))), true
	}
	if !ok {
		panic(fmt.Sprintf("neon: datum %T: want a number", value))
	}
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], uint64(n))
	copy(to[:value.Bytes()], all[:])
}

// bytesOf returns the sixteen bytes of data at m, or those behind them if part is 1.
func (t *table) bytesOf(m operand.Mem, part int) *[16]byte {
	data := t.data[m.Symbol.Name][m.Disp+16*part:]
	return (*[16]byte)(data)
}

// constant returns the place of sixteen bytes in the present function's part of the table. It
// adds them if necessary.
func (t *table) constant(b *[16]byte) *constant {
	k := t.offsets[*b]
	if k == nil {
		k = &constant{offset: len(t.bytes)}
		t.offsets[*b] = k
		t.bytes = append(append(t.bytes, b[:]...), b[:]...)
	}
	return k
}

// begin starts the part of a function, and end ends it and returns its offset in the table in
// bytes. Functions with the same constants share a part.
func (t *table) begin() {
	t.bytes, t.offsets, t.regions = nil, map[[16]byte]*constant{}, map[string]int{}
}

func (t *table) end() int {
	for at := 0; at+len(t.bytes) <= len(t.whole); at += 16 {
		if bytes.Equal(t.whole[at:][:len(t.bytes)], t.bytes) {
			return at
		}
	}
	t.whole = append(t.whole, t.bytes...)
	return len(t.whole) - len(t.bytes)
}

// region returns the offset of the whole data with the given name in the present function's
// part of the table. It adds them if necessary.
func (t *table) region(name string) int {
	at, ok := t.regions[name]
	if !ok {
		at = len(t.bytes)
		t.regions[name] = at
		t.bytes = append(t.bytes, t.data[name]...)
	}
	return at
}

// fixedRegisters returns the contents, in two halves, of the registers that f writes once, from
// a constant or as 0.
func (t *table) fixedRegisters(f *ir.Function) map[regID]*[2]*[16]byte {
	written, fixed := map[regID]int{}, map[regID]*[2]*[16]byte{}
	for _, i := range f.Instructions() {
		for _, op := range i.Outputs {
			if r, ok := op.(reg.Register); ok {
				written[r.ID()]++
			}
		}
		if strings.HasPrefix(i.Opcode, "VXORP") && isSame(i.Operands[0], i.Operands[1]) {
			fixed[i.Operands[2].(reg.Register).ID()] = &[2]*[16]byte{{}, {}}
		}
		m, ok := firstOperand(i).(operand.Mem)
		if ok && isStatic(m) && strings.HasPrefix(i.Opcode, "VMOV") {
			if r, ok := i.Operands[1].(reg.Register); ok && len(t.data[m.Symbol.Name]) >= 32 {
				fixed[r.ID()] = &[2]*[16]byte{t.bytesOf(m, 0), t.bytesOf(m, 1)}
			}
		}
	}
	for id := range fixed {
		if written[id] != 1 {
			delete(fixed, id)
		}
	}
	return fixed
}

// print returns the table in the syntax of Go's assembler.
func (t *table) print() string {
	if len(t.whole) == 0 {
		return ""
	}
	var b strings.Builder
	for at := 0; at < len(t.whole); at += 8 {
		fmt.Fprintf(&b, "DATA %s<>+%d(SB)/8, $0x%016x\n", t.name, at, binary.LittleEndian.Uint64(t.whole[at:]))
	}
	fmt.Fprintf(&b, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n\n", t.name, len(t.whole))
	return b.String()
}

func firstOperand(i *ir.Instruction) operand.Op {
	if len(i.Operands) == 0 {
		return nil
	}
	return i.Operands[0]
}
