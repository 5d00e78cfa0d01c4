package vm

import (
	"fmt"
	"strconv"
	"strings"
)

// A Module is the result of parsing a text.
type Module struct{ Entries map[string]*Entry }

// An Entry is a decoded kernel. It may be run from several goroutines at the same time.
type Entry struct {
	Name     string
	ArgsSize int // size of the arguments in bytes

	code     []instruction
	rows     int            // number of registers, constants and special registers
	constant map[uint64]int // value -> row
	special  map[string]int // name of a special register -> row
	static   int            // bytes of static shared memory
}

// A parser parses a module.
type parser struct {
	tokens    []token
	module    Module
	entry     *Entry
	registers map[string]int
	symbols   map[string]symbol // parameters, and variables in shared memory
	labels    map[string]int
	jumps     map[int]token // label by index of the branch instruction
}

// A symbol is the address of a name.
type symbol struct {
	space  space
	offset int
}

// Limits that keep a text from requesting more resources than a GPU has.
const (
	maxRegisters = 4096
	maxShared    = 48 << 10
	maxArgs      = 4352
)

// Parse decodes a text. All errors are of type [*SyntaxError].
func Parse(text string) (m *Module, err error) {
	p := &parser{module: Module{map[string]*Entry{}}}
	if p.tokens, err = lex(text); err != nil {
		return nil, err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SyntaxError:
			m, err = nil, r
		default:
			panic(r)
		}
	}()
	for p.peek() != "" {
		p.directive()
	}
	return &p.module, nil
}

// fail panics with a [*SyntaxError], which Parse returns. It must only be called while Parse runs.
func (p *parser) fail(format string, args ...any) {
	panic(&SyntaxError{p.tokens[0].line, fmt.Sprintf(format, args...)})
}

func (p *parser) peek() string { return p.tokens[0].text }

func (p *parser) next() string {
	t := p.tokens[0].text
	if t == "" {
		p.fail("the text ends too early")
	}
	p.tokens = p.tokens[1:]
	return t
}

// accept consumes the next token if it equals text, and reports whether it did.
func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(texts ...string) {
	for _, text := range texts {
		if !p.accept(text) {
			p.fail("%q where %q belongs", p.peek(), text)
		}
	}
}

// directive parses a directive outside of an entry.
func (p *parser) directive() {
	switch t := p.next(); t {
	case ".version":
		p.next()
	case ".target":
		p.next()
	case ".address_size":
		p.expect("64")
	case ".visible":
		p.expect(".entry")
		p.readEntry()
	default:
		p.fail("directive %q", t)
	}
}

func (p *parser) readEntry() {
	e := &Entry{Name: p.next(), constant: map[uint64]int{}, special: map[string]int{}}
	p.entry, p.registers, p.symbols, p.labels, p.jumps = e, map[string]int{}, map[string]symbol{},
		map[string]int{}, map[int]token{}
	if p.module.Entries[e.Name] != nil {
		p.fail("entry %q again", e.Name)
	}
	p.expect("(")
	for !p.accept(")") {
		p.accept(",")
		p.expect(".param")
		e.ArgsSize = p.variable(inParam, e.ArgsSize, maxArgs)
	}
	p.expect("{")
	for !p.accept("}") {
		p.statement()
	}
	for i, label := range p.jumps {
		to, ok := p.labels[label.text]
		if !ok {
			panic(&SyntaxError{label.line, fmt.Sprintf("no label %q", label.text)})
		}
		e.code[i].target = to
	}
	e.code = append(e.code, instruction{kind: exits, guard: -1}) // the end of the code returns
	p.module.Entries[e.Name] = e
}

// variable parses a declaration after its state space. at is the first free offset. It returns the
// first free offset after the variable.
func (p *parser) variable(s space, at, limit int) int {
	align := 1
	if p.accept(".align") {
		align = p.integer()
	}
	size := p.scalar()
	align = max(align, size)
	name := p.next()
	if p.accept("[") {
		n := p.integer()
		if n > limit {
			p.fail("%d elements", n)
		}
		size *= n
		p.expect("]")
	}
	if align&(align-1) != 0 || align > 128 {
		p.fail("alignment %d", align)
	}
	at = (at + align - 1) &^ (align - 1)
	if at+size > limit {
		p.fail("%d bytes are more than there are", at+size)
	}
	p.define(name, symbol{s, at})
	return at + size
}

func (p *parser) define(name string, s symbol) {
	if _, ok := p.symbols[name]; ok {
		p.fail("%q again", name)
	}
	p.symbols[name] = s
}

// scalar parses a type such as .u32, and returns its size in bytes.
func (p *parser) scalar() int {
	t, ok := types[strings.TrimPrefix(p.peek(), ".")]
	if !ok || p.peek()[0] != '.' {
		p.fail("%q is no type", p.peek())
	}
	p.next()
	return t.size
}

func (p *parser) integer() int {
	n, err := strconv.ParseInt(p.peek(), 0, 32)
	if err != nil {
		p.fail("%q is no number", p.peek())
	}
	p.next()
	return int(n)
}

// statement parses a declaration, a label or an instruction.
func (p *parser) statement() {
	switch t := p.peek(); {
	case t == ".reg":
		p.next()
		p.declare()
	case t == ".shared":
		p.next()
		p.entry.static = p.variable(inShared, p.entry.static, maxShared)
		p.expect(";")
	case p.tokens[min(1, len(p.tokens)-1)].text == ":":
		if _, ok := p.labels[t]; ok {
			p.fail("label %q again", t)
		}
		p.labels[t] = len(p.entry.code)
		p.next()
		p.next()
	default:
		p.entry.code = append(p.entry.code, p.instruction())
		p.expect(";")
	}
}

// declare parses a declaration of registers: a list of names, each with an optional count.
func (p *parser) declare() {
	if !p.accept(".pred") {
		p.scalar()
	}
	for {
		name := p.next()
		if name[0] != '%' {
			p.fail("%q is no register", name)
		}
		if p.accept("<") {
			n := p.integer()
			p.expect(">")
			if n > maxRegisters {
				p.fail("%d registers", n)
			}
			for i := range n {
				p.register(name + strconv.Itoa(i))
			}
		} else {
			p.register(name)
		}
		if p.accept(";") {
			return
		}
		p.expect(",")
	}
}

func (p *parser) register(name string) {
	if _, ok := p.registers[name]; ok {
		p.fail("register %q again", name)
	}
	if len(p.registers) >= maxRegisters {
		p.fail("more than %d registers", maxRegisters)
	}
	p.registers[name] = p.row()
}

// row allocates a row.
func (p *parser) row() int {
	p.entry.rows++
	return p.entry.rows - 1
}
