package vm

import (
	"fmt"
	"strconv"
	"strings"
)

// A Module is the result of parsing a text: its kernels by name. [Parse] makes it.
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

// A parser parses a module. Its methods must only be called while [Parse] runs: they panic with a
// [*SyntaxError], which Parse returns.
type parser struct {
	tokens    []token
	module    Module
	entry     *Entry
	registers map[string]int
	symbols   map[string]symbol // parameters, and variables in shared memory
	labels    map[string]int
	jumps     map[int]token // label by index of the branch instruction
}

// A symbol is the address of a parameter or a variable: a byte offset in a space.
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
	if p.tokens, err = splitTokens(text); err != nil {
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
		p.parseDirective()
	}
	return &p.module, nil
}

// failSyntax panics with a [*SyntaxError], which Parse returns. It must only be called while Parse
// runs.
func (p *parser) failSyntax(format string, args ...any) {
	panic(&SyntaxError{p.tokens[0].line, fmt.Sprintf(format, args...)})
}

func (p *parser) peek() string { return p.tokens[0].text }

func (p *parser) nextToken() string {
	t := p.tokens[0].text
	if t == "" {
		p.failSyntax("the text ends too early")
	}
	p.tokens = p.tokens[1:]
	return t
}

// acceptToken consumes the next token if it equals text, and reports whether it did. It must
// not be called with "".
func (p *parser) acceptToken(text string) bool {
	if p.peek() != text {
		return false
	}
	p.nextToken()
	return true
}

func (p *parser) expectToken(texts ...string) {
	for _, text := range texts {
		if !p.acceptToken(text) {
			p.failSyntax("%q where %q belongs", p.peek(), text)
		}
	}
}

// parseDirective parses a directive outside of an entry.
func (p *parser) parseDirective() {
	switch t := p.nextToken(); t {
	case ".version":
		p.nextToken()
	case ".target":
		p.nextToken()
	case ".address_size":
		p.expectToken("64")
	case ".visible":
		p.expectToken(".entry")
		p.readEntry()
	default:
		p.failSyntax("directive %q", t)
	}
}

func (p *parser) readEntry() {
	e := &Entry{Name: p.nextToken(), constant: map[uint64]int{}, special: map[string]int{}}
	p.entry, p.registers, p.symbols, p.labels, p.jumps = e, map[string]int{}, map[string]symbol{},
		map[string]int{}, map[int]token{}
	if p.module.Entries[e.Name] != nil {
		p.failSyntax("entry %q again", e.Name)
	}
	p.expectToken("(")
	for !p.acceptToken(")") {
		p.acceptToken(",")
		p.expectToken(".param")
		e.ArgsSize = p.parseVariable(inParam, e.ArgsSize, maxArgs)
	}
	p.expectToken("{")
	for !p.acceptToken("}") {
		p.parseStatement()
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

// parseVariable parses a declaration after its state space s, and defines its symbol. at is the
// first free offset, in bytes, and limit the size of the space. It returns the first free
// offset after the variable.
func (p *parser) parseVariable(s space, at, limit int) int {
	align := 1
	if p.acceptToken(".align") {
		align = p.parseInteger()
	}
	size := p.parseScalar()
	align = max(align, size)
	name := p.nextToken()
	if p.acceptToken("[") {
		n := p.parseInteger()
		if n > limit {
			p.failSyntax("%d elements", n)
		}
		size *= n
		p.expectToken("]")
	}
	if align&(align-1) != 0 || align > 128 {
		p.failSyntax("alignment %d", align)
	}
	at = (at + align - 1) &^ (align - 1)
	if at+size > limit {
		p.failSyntax("%d bytes are more than there are", at+size)
	}
	p.defineSymbol(name, symbol{s, at})
	return at + size
}

func (p *parser) defineSymbol(name string, s symbol) {
	if _, ok := p.symbols[name]; ok {
		p.failSyntax("%q again", name)
	}
	p.symbols[name] = s
}

// parseScalar parses a type such as .u32, and returns its size in bytes.
func (p *parser) parseScalar() int {
	t, ok := types[strings.TrimPrefix(p.peek(), ".")]
	if !ok || p.peek()[0] != '.' {
		p.failSyntax("%q is no type", p.peek())
	}
	p.nextToken()
	return t.size
}

func (p *parser) parseInteger() int {
	n, err := strconv.ParseInt(p.peek(), 0, 32)
	if err != nil {
		p.failSyntax("%q is no number", p.peek())
	}
	p.nextToken()
	return int(n)
}

// parseStatement parses a declaration, a label or an instruction. It panics with a [*SyntaxError],
// which [Parse] returns.
func (p *parser) parseStatement() {
	switch t := p.peek(); {
	case t == ".reg":
		p.nextToken()
		p.parseDeclaration()
	case t == ".shared":
		p.nextToken()
		p.entry.static = p.parseVariable(inShared, p.entry.static, maxShared)
		p.expectToken(";")
	case p.tokens[min(1, len(p.tokens)-1)].text == ":":
		if _, ok := p.labels[t]; ok {
			p.failSyntax("label %q again", t)
		}
		p.labels[t] = len(p.entry.code)
		p.nextToken()
		p.nextToken()
	default:
		p.entry.code = append(p.entry.code, p.parseInstruction())
		p.expectToken(";")
	}
}

// parseDeclaration parses a declaration of registers: a list of names, each with an optional count.
func (p *parser) parseDeclaration() {
	if !p.acceptToken(".pred") {
		p.parseScalar()
	}
	for {
		name := p.nextToken()
		if name[0] != '%' {
			p.failSyntax("%q is no register", name)
		}
		if p.acceptToken("<") {
			n := p.parseInteger()
			p.expectToken(">")
			if n > maxRegisters {
				p.failSyntax("%d registers", n)
			}
			for i := range n {
				p.register(name + strconv.Itoa(i))
			}
		} else {
			p.register(name)
		}
		if p.acceptToken(";") {
			return
		}
		p.expectToken(",")
	}
}

func (p *parser) register(name string) {
	if _, ok := p.registers[name]; ok {
		p.failSyntax("register %q again", name)
	}
	if len(p.registers) >= maxRegisters {
		p.failSyntax("more than %d registers", maxRegisters)
	}
	p.registers[name] = p.newRow()
}

// newRow allocates a row, which holds a register of all lanes, and returns its index.
func (p *parser) newRow() int {
	p.entry.rows++
	return p.entry.rows - 1
}
