package neon

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scalars translates the instructions on general registers, and those without an equivalent.
var scalars = map[string]func(c *Code, ops []operand.Op){
	"MOVQ": (*Code).move, "MOVL": (*Code).move, "MOVB": (*Code).move, "MOVLQSX": (*Code).moveSigned,
	"LEAQ": (*Code).lea,
	"ADDQ": arithmetic("ADD"), "SUBQ": arithmetic("SUB"), "ANDQ": arithmetic("AND"), "SHLQ": arithmetic("LSL"),
	"INCQ": increment("ADD"), "DECQ": increment("SUB"),
	"NEGQ": func(c *Code, ops []operand.Op) {
		r := c.changed(ops[0].(reg.Register))
		c.set("NEG"+c.suffix()+" R@1, R@0", r, r)
	},
	"XORQ": func(c *Code, ops []operand.Op) { // always of a register with itself
		c.set("MOVD ZR, R@0", c.changed(ops[1].(reg.Register)))
	},
	"CMPQ": (*Code).compareGeneral,
	"TESTQ": func(c *Code, ops []operand.Op) { // always of a register with itself
		c.effect("CMP $0, R@0", c.Register(ops[0].(reg.Register)))
	},
	"TESTB":      func(c *Code, ops []operand.Op) { c.effect("CMP $0, R@0", c.Register(ops[0].(reg.Register))) },
	"CMOVQLT":    (*Code).moveIfLess,
	"RET":        func(c *Code, _ []operand.Op) { c.add(&operation{text: "RET", effect: true}) },
	"JMP":        jump("B"),
	"JL":         jump("BLT"),
	"JLT":        jump("BLT"),
	"JLE":        jump("BLE"),
	"JG":         jump("BGT"),
	"JGE":        jump("BGE"),
	"JZ":         jump("BEQ"),
	"JE":         jump("BEQ"),
	"JNE":        jump("BNE"),
	"JNZ":        jump("BNE"),
	"JLEQ":       jump("BLE"),
	"SFENCE":     func(c *Code, _ []operand.Op) { c.effect("DMB $10") }, // stores, inner shareable domain
	"LDMXCSR":    func(*Code, []operand.Op) {},
	"STMXCSR":    func(*Code, []operand.Op) {},
	"PREFETCHT0": func(*Code, []operand.Op) {}, // processors prefetch these streams themselves
	"VZEROUPPER": func(*Code, []operand.Op) {},
}

func jump(op string) func(c *Code, ops []operand.Op) {
	return func(c *Code, ops []operand.Op) { c.Branch(op, string(ops[0].(operand.LabelRef))) }
}

// suffix returns S, the suffix of instructions that write the flags, if the flags are read, and
// otherwise "".
func (c *Code) suffix() string {
	if c.needFlags {
		return "S"
	}
	return ""
}

// arithmetic returns the translation of an instruction of the form to = to op from. op is its
// name on arm64.
func arithmetic(op string) func(c *Code, ops []operand.Op) {
	return func(c *Code, ops []operand.Op) {
		to := c.changed(ops[1].(reg.Register))
		name := op
		if op != "LSL" {
			name += c.suffix()
		}
		if n, ok := constantValue(ops[0]); ok {
			c.addImmediate(name, n, to)
			return
		}
		c.setFlags(name, fmt.Sprintf("%s R@2, R@1, R@0", name), to, to, c.generalOf(ops[0]))
	}
}

func (c *Code) addImmediate(name string, n int64, to Value) {
	c.setFlags(name, fmt.Sprintf("%s $%d, R@1, R@0", name, n), to, to)
}

func (c *Code) setFlags(name, text string, args ...Value) {
	o := c.set(text, args...)
	o.effect = strings.HasSuffix(name, "S")
}

// increment returns the translation of an addition or subtraction of 1. op is ADD or SUB.
func increment(op string) func(c *Code, ops []operand.Op) {
	return func(c *Code, ops []operand.Op) {
		name := op + c.suffix()
		c.addImmediate(name, 1, c.changed(ops[0].(reg.Register)))
	}
}

// generalOf returns an operand in a general register. It emits the load of a number or of
// memory.
func (c *Code) generalOf(op operand.Op) Value {
	if r, ok := op.(reg.Register); ok {
		return c.Register(r)
	}
	v := c.General()
	if n, ok := constantValue(op); ok {
		c.set(fmt.Sprintf("MOVD $%d, R@0", n), v)
		return v
	}
	c.loadGeneral("MOVD", op.(operand.Mem), v)
	return v
}

// loadGeneral emits the load of a general register from memory or a parameter by the
// instruction name.
func (c *Code) loadGeneral(name string, m operand.Mem, to Value) {
	if isParameter(m) {
		c.set(name+" "+parameter(m)+", R@0", to)
		return
	}
	size := map[string]int{"MOVD": 8, "MOVWU": 4, "MOVW": 4, "MOVBU": 1}[name]
	base, disp := c.address(m)
	base, disp = c.reach(base, disp, size)
	c.access(name+" @m, R@0", base, 1, disp, size, []Value{to, base}, 1, 0)
}

// move translates moves to and from general registers. A load of less than eight bytes clears
// the other bytes of the register.
func (c *Code) move(ops []operand.Op) {
	to, ok := ops[1].(reg.Register)
	if !ok {
		c.storeGeneral(ops[0], ops[1].(operand.Mem))
		return
	}
	switch from := ops[0].(type) {
	case operand.Mem:
		c.loadGeneral(map[uint]string{8: "MOVD", 4: "MOVWU", 1: "MOVBU"}[to.Size()], from, c.changed(to))
	case reg.Register:
		c.Move(c.changed(to), c.Register(from))
	default:
		c.set(fmt.Sprintf("MOVD $%d, R@0", immediate(from)), c.changed(to))
	}
}

func (c *Code) storeGeneral(from operand.Op, m operand.Mem) {
	r := from.(reg.Register)
	name := map[uint]string{8: "MOVD", 4: "MOVW", 1: "MOVB"}[r.Size()]
	if isParameter(m) {
		c.effect(name+" R@0, "+parameter(m), c.Register(r))
		return
	}
	base, disp := c.address(m)
	base, disp = c.reach(base, disp, int(r.Size()))
	c.access(name+" R@0, @m", base, 1, disp, int(r.Size()), []Value{c.Register(r), base}, 0, 1)
}

func (c *Code) moveSigned(ops []operand.Op) {
	c.loadGeneral("MOVW", ops[0].(operand.Mem), c.changed(ops[1].(reg.Register)))
}

// lea translates the computation of an address, or of the address of a constant.
func (c *Code) lea(ops []operand.Op) {
	m, to := ops[0].(operand.Mem), ops[1].(reg.Register)
	if isStatic(m) {
		if c.base == none {
			c.base = c.General()
		}
		c.set(fmt.Sprintf("ADD $%d, R@1, R@0", c.table.region(m.Symbol.Name)), c.changed(to), c.base)
		return
	}
	base := c.Register(m.Base)
	if m.Index == nil || m.Scale == 0 {
		c.set(fmt.Sprintf("ADD $%d, R@1, R@0", m.Disp), c.changed(to), base)
		return
	}
	index := c.Register(m.Index)
	sum := c.General()
	c.addScaled(sum, base, index, int(m.Scale))
	c.Move(c.changed(to), c.offset(sum, m.Disp))
}

// compareGeneral translates a comparison. It must swap the operands, because the branch that
// follows names the second one last on amd64 and first on arm64.
func (c *Code) compareGeneral(ops []operand.Op) {
	first := c.generalOf(ops[0])
	if n, ok := constantValue(ops[1]); ok {
		c.effect(fmt.Sprintf("CMP $%d, R@0", n), first)
		return
	}
	c.effect("CMP R@1, R@0", first, c.generalOf(ops[1]))
}

func (c *Code) moveIfLess(ops []operand.Op) {
	from, to := c.Register(ops[0].(reg.Register)), c.changed(ops[1].(reg.Register))
	c.set("CSEL LT, R@1, R@2, R@0", to, from, to)
}
