package vm

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// A kind is the kind of an instruction.
type kind uint8

const (
	computes kind = iota // d = f(a, b, c)
	loads
	stores
	updates // memory = f(memory, a, b), and d = the previous value
	jumps
	exits
	waits
)

// A space is a state space of PTX.
type space uint8

const (
	inGlobal space = iota
	inShared
	inParam
)

// An instruction is a decoded instruction. Operands are indices of rows, or -1 if there is none.
type instruction struct {
	kind       kind
	space      space
	size       int  // of an element in memory
	signed     bool // sign-extended
	unless     bool // the guard is negated
	guard      int
	d, a, b, c int
	address    int
	offset     uint64
	vector     []int
	target     int
	line       int
	f          func(a, b, c uint64) uint64
}

// idle lists modifiers without effect here: they select the default behavior of this package, or
// the scope and ordering of memory accesses.
var idle = []string{"rn", "approx", "uni", "relaxed", "weak", "volatile", "sys", "gpu", "cta", "to", "global"}

// An opcode is the parsed name of an instruction, such as add.rn.f32. Functions that handle a
// modifier remove it from parts; a modifier that remains is an error.
type opcode struct {
	text  string
	name  string
	parts []string // modifiers, without types
	types []scalar
}

func (p *parser) parseOpcode() (o opcode) {
	o.text = p.nextToken()
	words := strings.Split(o.text, ".")
	o.name = words[0]
	for _, w := range words[1:] {
		if t, ok := types[w]; ok {
			o.types = append(o.types, t)
		} else {
			o.parts = append(o.parts, w)
		}
	}
	return o
}

// takeModifier removes a modifier, and reports whether it was present.
func (o *opcode) takeModifier(part string) bool {
	i := slices.Index(o.parts, part)
	if i >= 0 {
		o.parts = slices.Delete(o.parts, i, i+1)
	}
	return i >= 0
}

// takeFirst removes and returns the first modifier, or "" if there is none.
func (o *opcode) takeFirst() (part string) {
	if len(o.parts) > 0 {
		part, o.parts = o.parts[0], o.parts[1:]
	}
	return part
}

// parseInstruction parses an instruction up to its semicolon, which it does not consume. The
// target of a branch is recorded in p.jumps.
func (p *parser) parseInstruction() instruction {
	in := instruction{guard: -1, d: -1, a: -1, b: -1, c: -1, address: -1, line: p.tokens[0].line}
	if p.acceptToken("@") {
		in.unless = p.acceptToken("!")
		in.guard = p.parseDestination()
	}
	o := p.parseOpcode()
	switch o.name {
	case "bra":
		in.kind = jumps
		p.jumps[len(p.entry.code)] = p.tokens[0]
		p.nextToken()
	case "ret", "exit":
		in.kind = exits
	case "bar":
		in.kind = waits
		if !o.takeModifier("sync") || p.parseInteger() != 0 {
			p.failSyntax("only bar.sync 0")
		}
	case "ld", "st", "atom", "red":
		p.parseMemory(&in, &o)
	default:
		p.parseCompute(&in, &o)
	}
	o.parts = slices.DeleteFunc(o.parts, func(part string) bool { return slices.Contains(idle, part) })
	if len(o.parts) > 0 {
		p.failSyntax("%s with .%s", o.name, o.parts[0])
	}
	return in
}

// parseCompute parses the operands of an instruction on registers into in, and removes the
// modifiers that it handles from o.
func (p *parser) parseCompute(in *instruction, o *opcode) {
	var n int
	var t scalar
	if len(o.types) > 0 {
		t = o.types[0]
		in.f, n = o.functionOf()
	}
	if in.f == nil {
		p.failSyntax("instruction %q", o.text)
	}
	in.d = p.parseDestination()
	for i, row := range []*int{&in.a, &in.b, &in.c}[:n] {
		p.expectToken(",")
		if i == 2 && o.name == "selp" {
			t = scalar{}
		}
		*row = p.parseOperand(t)
	}
}

// parseMemory parses the operands of a load, store or atomic instruction into in, and removes the
// modifiers that it handles from o. It panics with a [*SyntaxError], which [Parse] returns.
func (p *parser) parseMemory(in *instruction, o *opcode) {
	if len(o.types) != 1 {
		p.failSyntax("%s of %d types", o.name, len(o.types))
	}
	t := o.types[0]
	in.size, in.signed = t.size, t.kind == 's'
	switch {
	case o.takeModifier("shared"):
		in.space = inShared
	case o.name == "ld" && o.takeModifier("param"):
		in.space = inParam
	case !o.takeModifier("global"):
		p.failSyntax("%s without a space", o.name)
	}
	lanes := 1
	if o.takeModifier("v2") {
		lanes = 2
	} else if o.takeModifier("v4") {
		lanes = 4
	}
	if o.name == "atom" || o.name == "red" {
		p.update(in, o, t)
		return
	}
	if in.kind = stores; o.name == "ld" {
		in.kind = loads
		in.vector = p.parseList(lanes, p.parseDestination)
		p.expectToken(",")
		p.parseAddress(in)
		return
	}
	p.parseAddress(in)
	p.expectToken(",")
	in.vector = p.parseList(lanes, func() int { return p.parseOperand(t) })
}

// update parses the operands of an atomic instruction of type t into in, and removes the
// modifiers that it handles from o.
func (p *parser) update(in *instruction, o *opcode, t scalar) {
	in.kind = updates
	if o.name == "atom" {
		in.d = p.parseDestination()
		p.expectToken(",")
	}
	p.parseAddress(in)
	p.expectToken(",")
	in.a = p.parseOperand(t)
	if t.size < 4 {
		p.failSyntax("%s of %d bytes", o.name, t.size)
	}
	part := o.takeFirst()
	for slices.Contains(idle, part) {
		part = o.takeFirst()
	}
	switch part {
	case "exch":
		in.f = func(_, a, _ uint64) uint64 { return a }
	case "cas":
		in.f = func(old, a, b uint64) uint64 {
			if old == a {
				return b
			}
			return old
		}
		p.expectToken(",")
		in.b = p.parseOperand(t)
	case "add", "min", "max":
		in.f, _ = (&opcode{name: part, types: o.types}).functionOf()
	default:
		p.failSyntax("%s.%s", o.name, part)
	}
}

// parseList parses one operand by one, or n operands in braces, and returns their rows.
func (p *parser) parseList(n int, one func() int) (rows []int) {
	if n == 1 {
		return []int{one()}
	}
	p.expectToken("{")
	for i := range n {
		if i > 0 {
			p.expectToken(",")
		}
		rows = append(rows, one())
	}
	p.expectToken("}")
	return rows
}

// parseAddress parses an address in brackets into in: a register or a symbol in the space of
// in, with an optional offset.
func (p *parser) parseAddress(in *instruction) {
	p.expectToken("[")
	if s, ok := p.symbols[p.peek()]; ok {
		if s.space != in.space {
			p.failSyntax("%q is in another space", p.peek())
		}
		p.nextToken()
		in.address = p.constantRow(uint64(s.offset))
	} else {
		in.address = p.parseDestination()
	}
	switch {
	case p.acceptToken("+"):
		in.offset = uint64(p.parseInteger())
	case p.acceptToken("-"):
		in.offset = -uint64(p.parseInteger())
	}
	p.expectToken("]")
}

// parseDestination parses a writable register and returns its row.
func (p *parser) parseDestination() int {
	row, ok := p.registers[p.peek()]
	if !ok {
		p.failSyntax("no register %q", p.peek())
	}
	p.nextToken()
	return row
}

// parseOperand parses a readable operand of type t and returns its row: a symbol, a register, a
// special register or a constant.
func (p *parser) parseOperand(t scalar) int {
	negative := p.acceptToken("-")
	text := p.peek()
	if s, ok := p.symbols[text]; ok {
		p.nextToken()
		return p.constantRow(uint64(s.offset))
	}
	if text == "" || text[0] < '0' || text[0] > '9' {
		if slices.Contains(specials, text) {
			p.nextToken()
			return p.specialRow(text)
		}
		return p.parseDestination()
	}
	v, ok := parseConstant(text, t)
	if !ok || negative && t.kind == 'f' {
		p.failSyntax("%q is no number of its type", text)
	}
	p.nextToken()
	if negative {
		v = -v
	}
	return p.constantRow(t.truncateBits(v))
}

// parseConstant parses a constant of type t and returns its bits. The prefixes 0f and 0d denote
// the bits of floats. ok is false if it is not a constant of this type.
func parseConstant(text string, t scalar) (v uint64, ok bool) {
	if t.kind == 'f' || t.kind == 'b' && (strings.HasPrefix(text, "0f") || strings.HasPrefix(text, "0d")) {
		prefix := map[int]string{4: "0f", 8: "0d"}[t.size]
		digits, found := strings.CutPrefix(text, prefix)
		if !found || prefix == "" {
			return 0, false
		}
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) != t.size {
			return 0, false
		}
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return v, true
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(text, "U"), 0, 64)
	return v, err == nil
}

// constantRow returns the index of the row that holds the constant v in all lanes. It allocates a
// row for a new constant.
func (p *parser) constantRow(v uint64) int {
	row, ok := p.entry.constant[v]
	if !ok {
		row = p.newRow()
		p.entry.constant[v] = row
	}
	return row
}

// specialRow returns the index of the row of a special register. It allocates a row on the
// first use.
func (p *parser) specialRow(name string) int {
	row, ok := p.entry.special[name]
	if !ok {
		row = p.newRow()
		p.entry.special[name] = row
	}
	return row
}
