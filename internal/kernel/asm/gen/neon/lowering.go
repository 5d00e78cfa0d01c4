package neon

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type regID = reg.ID

// place is the address base + index·scale, of registers of avo.
type place struct {
	base, index regID
	scale       uint8
}

// rawMark begins the comments that stand for the code of Raw.
const rawMark = "raw "

var raws []func(c *Code)

// Raw adds the arm64 instructions that emit emits to the function that avo builds. [Translate]
// calls emit later. avo does not see the instructions: it must not compile the function.
func Raw(emit func(c *Code)) {
	build.Comment(rawMark + strconv.Itoa(len(raws)))
	raws = append(raws, emit)
}

// lower translates the instructions of f. The constants that they load are added to t.
func lower(f *ir.Function, t *table) (*Code, error) {
	c := &Code{general: map[regID]Value{}, lows: map[regID]Value{}, highs: map[regID]Value{},
		places: map[place]Value{}, steady: map[regID]bool{}, table: t, base: none, fixed: t.fixedRegisters(f)}
	for i, node := range f.Nodes {
		switch node := node.(type) {
		case ir.Label:
			c.Label(string(node))
		case *ir.Comment:
			if number, ok := strings.CutPrefix(node.Lines[0], rawMark); ok {
				n, err := strconv.Atoi(number)
				if err != nil {
					return nil, err
				}
				raws[n](c)
			}
		case *ir.Instruction:
			c.needFlags = flagsNeeded(f.Nodes[i+1:])
			if err := c.translate(node); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.Name, node.Opcode, err)
			}
		}
	}
	return c, nil
}

// flagsNeeded reports whether the first of the instructions in nodes that concern the flags
// reads them.
func flagsNeeded(nodes []ir.Node) bool {
	for _, node := range nodes {
		i, ok := node.(*ir.Instruction)
		switch {
		case !ok:
			continue
		case strings.HasPrefix(i.Opcode, "J") && i.Opcode != "JMP", strings.HasPrefix(i.Opcode, "CMOV"):
			return true
		case i.IsBranch, i.IsTerminal, strings.HasPrefix(i.Opcode, "CMP"), strings.HasPrefix(i.Opcode, "TEST"),
			strings.HasPrefix(i.Opcode, "ADDQ"), strings.HasPrefix(i.Opcode, "SUBQ"):
			return false
		}
	}
	return false
}

// translate adds the instructions of arm64 for one of amd64. It returns an error if it does not
// know the instruction.
func (c *Code) translate(i *ir.Instruction) error {
	if do := scalars[i.Opcode]; do != nil {
		do(c, i.Operands)
		return nil
	}
	do := vectors[i.Opcode]
	if do == nil {
		return fmt.Errorf("want a translation of this instruction in package neon")
	}
	do(c, i.Operands)
	return nil
}

// Register returns the value of a general register of avo, a new one on the first call for r.
func (c *Code) Register(r reg.Register) Value {
	v, ok := c.general[r.ID()]
	if !ok {
		v = c.General()
		c.general[r.ID()] = v
	}
	return v
}

// changed returns the value of a general register that is about to change. It forgets the
// addresses that were computed from the register.
func (c *Code) changed(r reg.Register) Value {
	for p := range c.places {
		if p.base == r.ID() || p.index == r.ID() {
			delete(c.places, p)
		}
	}
	return c.Register(r)
}

// Low and High return the lower and the upper half of a vector register of avo, new values on
// the first call for r.
func (c *Code) Low(r reg.Register) Value  { return c.half(c.lows, r) }
func (c *Code) High(r reg.Register) Value { return c.half(c.highs, r) }

func (c *Code) half(halves map[regID]Value, r reg.Register) Value {
	v, ok := halves[r.ID()]
	if !ok {
		v = c.Vector()
		halves[r.ID()] = v
	}
	return v
}

// write emits the copy of v, one or two values, to the halves of a vector register, or to
// memory.
func (c *Code) write(op operand.Op, v ...Value) {
	r, ok := op.(reg.Register)
	if !ok {
		base, disp := c.address(op.(operand.Mem))
		if len(v) == 2 {
			c.StorePair(v[0], v[1], base, disp)
		} else {
			c.Store(v[0], base, disp, 16)
		}
		return
	}
	if len(v) == 2 && v[1] == c.Low(r) { // an exchange of the halves
		v[1] = c.copied(v[1])
	}
	delete(c.steady, r.ID())
	c.Move(c.Low(r), v[0])
	if len(v) == 2 {
		c.Move(c.High(r), v[1])
	}
}

// read returns n halves, 1 or 2, of a register or of memory, which it emits the loads of. It
// panics for another operand.
func (c *Code) read(op operand.Op, n int) []Value {
	switch op := op.(type) {
	case reg.Register:
		if n == 1 {
			return []Value{c.Low(op)}
		}
		return []Value{c.Low(op), c.High(op)}
	case operand.Mem:
		if isStatic(op) {
			var all []Value
			for i := range n {
				all = append(all, c.constantOf(op, i))
			}
			if n == 2 && *c.table.bytesOf(op, 0) == *c.table.bytesOf(op, 1) {
				all[1] = all[0]
			}
			return all
		}
		base, disp := c.address(op)
		if n == 2 {
			low, high := c.LoadPair(base, disp)
			return []Value{low, high}
		}
		return []Value{c.Load(base, disp, 16)}
	}
	panic(fmt.Sprintf("neon: operand %T %[1]v: want a register or memory", op))
}

// count returns the number of 128-bit halves of an operand: 1 for an XMM register, and
// otherwise 2.
func count(op operand.Op) int {
	if r, ok := op.(reg.Register); ok && r.Size() == 16 {
		return 1
	}
	return 2
}

func isStatic(m operand.Mem) bool { return m.Base == reg.StaticBase }

func isParameter(m operand.Mem) bool { return m.Base == reg.FramePointer }

// parameter returns the address of a parameter or a result in the syntax of Go's assembler.
func parameter(m operand.Mem) string { return fmt.Sprintf("%s+%d(FP)", m.Symbol.Name, m.Disp) }

// address returns an address as a register and a displacement in bytes. It emits the addition
// of an index. It panics for the address of a constant or a parameter.
func (c *Code) address(m operand.Mem) (Value, int) {
	if isStatic(m) || isParameter(m) {
		panic("neon: address of " + m.Asm() + ": want memory that a register points to")
	}
	base := c.Register(m.Base)
	if m.Index == nil || m.Scale == 0 {
		return base, m.Disp
	}
	p := place{m.Base.ID(), m.Index.ID(), m.Scale}
	if at, ok := c.places[p]; ok {
		return at, m.Disp
	}
	at := c.General()
	c.addScaled(at, base, c.Register(m.Index), int(m.Scale))
	c.places[p] = at
	return at, m.Disp
}

// addScaled emits to = base + index·scale. scale must be 1, 2, 4 or 8.
func (c *Code) addScaled(to, base, index Value, scale int) {
	shift := map[int]string{1: "", 2: "<<1", 4: "<<2", 8: "<<3"}[scale]
	c.set("ADD R@2"+shift+", R@1, R@0", to, base, index)
}

// constantOf emits the load of sixteen bytes of a constant, those at m or, if part is 1, those
// behind them, into a new register, and returns it.
func (c *Code) constantOf(m operand.Mem, part int) Value {
	k := c.table.constant(c.table.bytesOf(m, part))
	v := c.Vector()
	if c.base == none {
		c.base = c.General()
	}
	c.access("FMOVQ @m, F@0", c.base, 1, k.offset, 16, []Value{v, c.base}, 1, 0)
	c.ops[len(c.ops)-1].entry = k
	return v
}

// fixedLanes returns the contents of a register that is written once, from a constant, in two
// halves. It returns nil for any other operand.
func (c *Code) fixedLanes(op operand.Op) *[2]*[16]byte {
	if r, ok := op.(reg.Register); ok {
		return c.fixed[r.ID()]
	}
	return nil
}

// words returns the eight 32-bit numbers of a constant register, as [Code.fixedLanes] returns
// it.
func words(fixed *[2]*[16]byte) (all [8]uint32) {
	for i := range all {
		all[i] = binary.LittleEndian.Uint32(fixed[i/4][4*(i%4):])
	}
	return all
}

// constantValue returns the number of an immediate operand, and false for any other operand.
func constantValue(op operand.Op) (int64, bool) {
	switch n := op.(type) {
	case operand.U8:
		return int64(n), true
	case operand.U16:
		return int64(n), true
	case operand.U32:
		return int64(n), true
	case operand.U64:
		return int64(n), true
	case operand.I8:
		return int64(n), true
	case operand.I16:
		return int64(n), true
	case operand.I32:
		return int64(n), true
	case operand.I64:
		return int64(n), true
	}
	return 0, false
}

// immediate returns the number of an operand that must be an immediate one; otherwise it
// panics.
func immediate(op operand.Op) int {
	n, ok := constantValue(op)
	if !ok {
		panic(fmt.Sprintf("neon: operand %s: want a number", op.Asm()))
	}
	return int(n)
}
