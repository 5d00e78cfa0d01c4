package neon

import (
	"fmt"
	"strings"
)

// Value is a virtual register: a general register or a vector register.
type Value int

// none is the absence of a register.
const none Value = -1

// operation is an instruction of arm64, or a label.
type operation struct {
	text   string    // in the syntax of Go's assembler, or the comment of a word; @i is the register args[i]
	word   uint32    // the instruction without its registers, or 0 if Go's assembler knows it
	shifts []uint    // the positions of the registers in word
	args   []Value   // the registers
	defs   uint      // the set of args that are written
	uses   uint      // the set of args that are read
	memory *memory   // the address, which text includes as @m
	label  string    // a label
	target string    // the label that a branch jumps to
	falls  bool      // the next operation may follow
	copies bool      // args[0] = args[1]
	effect bool      // more happens than a register is written
	sets   bool      // writes the flags
	spill  bool      // made for a spilled register
	entry  *constant // the operation loads this constant
}

// memory is the address of an operation: a register plus disp bytes. If post is set, disp is
// not used, and step is added to the register afterwards.
type memory struct {
	base int // index in args
	disp int
	step int
	post bool
}

func (m *memory) String() string {
	if m.post {
		return fmt.Sprintf("%d(R@%d)", m.step, m.base)
	}
	if m.disp == 0 {
		return fmt.Sprintf("(R@%d)", m.base)
	}
	return fmt.Sprintf("%d(R@%d)", m.disp, m.base)
}

// constant is sixteen bytes in the table of constants of a file. offset is counted in bytes
// from the function's part of the table.
type constant struct {
	offset int
	hoist  bool // loaded once, at the begin of the function
}

func (o *operation) writes(i int) bool { return o.defs>>i&1 != 0 }
func (o *operation) reads(i int) bool  { return o.uses>>i&1 != 0 }

// print returns the line of o in the assembly, without a newline. number must return the number
// of a value's register.
func (o *operation) print(number func(Value) int) string {
	if o.label != "" {
		return o.label + ":"
	}
	text := o.text
	if m := o.memory; m != nil {
		text = strings.Replace(text, "@m", m.String(), 1)
		if m.post {
			name, rest, _ := strings.Cut(text, " ")
			text = name + ".P " + rest
		}
	}
	word := o.word
	for i := len(o.args) - 1; i >= 0; i-- {
		text = strings.ReplaceAll(text, fmt.Sprint("@", i), fmt.Sprint(number(o.args[i])))
		if o.word != 0 {
			word |= uint32(number(o.args[i])) << o.shifts[i]
		}
	}
	if o.word != 0 {
		return fmt.Sprintf("\tWORD $0x%08x // %s", word, text)
	}
	return "\t" + text
}

// Code is a function in translation. Its methods emit operations at the end of the function,
// and take and return virtual registers.
type Code struct {
	ops    []*operation
	vector []bool // whether a value is a vector register
	labels int    // number of local labels

	general   map[regID]Value
	lows      map[regID]Value
	highs     map[regID]Value
	places    map[place]Value // addresses that are in a register
	steady    map[regID]bool  // registers that hold a constant, in this block
	table     *table
	base      Value // address of the function's part of the table
	part      int   // offset of that part
	fixed     map[regID]*[2]*[16]byte
	constants map[*constant]bool
	needFlags bool
}

// General returns a new general register.
func (c *Code) General() Value { return c.fresh(false) }

// Vector returns a new vector register.
func (c *Code) Vector() Value { return c.fresh(true) }

func (c *Code) fresh(vector bool) Value {
	c.vector = append(c.vector, vector)
	return Value(len(c.vector) - 1)
}

// local returns a new label that begins with name. The caller must place it with [Code.Label].
func (c *Code) local(name string) string {
	c.labels++
	return fmt.Sprint(name, "_", c.labels)
}

func (c *Code) add(o *operation) { c.ops = append(c.ops, o) }

// Label places a label, which begins a block.
func (c *Code) Label(name string) {
	clear(c.places)
	clear(c.steady)
	c.add(&operation{label: name, falls: true, effect: true})
}

// Branch emits a jump to a label. op is B, or a conditional branch, with args as its operands.
func (c *Code) Branch(op, label string, args ...Value) {
	conditional := op != "B"
	c.add(&operation{text: op + map[bool]string{false: " ", true: ", "}[len(args) > 0] + label, args: args,
		uses: 1<<len(args) - 1, target: label, falls: conditional, effect: true})
}

// set adds an operation that writes args[0] and reads the others, and returns it, so that the
// caller can change that. text is as in [operation].
func (c *Code) set(text string, args ...Value) *operation {
	o := &operation{text: text, args: args, defs: 1, uses: 1<<len(args) - 2, falls: true}
	c.add(o)
	return o
}

// effect adds an operation that reads all args and has another effect than to write a register,
// and returns it. text is as in [operation].
func (c *Code) effect(text string, args ...Value) *operation {
	o := &operation{text: text, args: args, uses: 1<<len(args) - 1, falls: true, effect: true}
	c.add(o)
	return o
}

// Move emits the copy of a register. Both must be general, or both vector registers.
func (c *Code) Move(to, from Value) {
	if c.vector[to] {
		c.add(&operation{text: "VMOV V@1.B16, V@0.B16", args: []Value{to, from}, defs: 1, uses: 2, falls: true,
			copies: true})
		return
	}
	c.add(&operation{text: "MOVD R@1, R@0", args: []Value{to, from}, defs: 1, uses: 2, falls: true, copies: true})
}

// access adds a load or a store of n bytes at base plus disp. text includes the address as @m.
// args must have base at index baseAt; defs and uses are the sets of the args that it writes
// and reads, besides base. n is also the step for an address that moves behind the access.
func (c *Code) access(text string, base Value, baseAt, disp, n int, args []Value, defs, uses uint) {
	c.add(&operation{text: text, args: args, defs: defs, uses: uses | 1<<baseAt, falls: true,
		memory: &memory{base: baseAt, disp: disp, step: n}, effect: uses != 0})
}

// LoadPair emits the load of 32 bytes at base plus disp into two new vector registers, and
// returns them.
func (c *Code) LoadPair(base Value, disp int) (low, high Value) {
	low, high = c.Vector(), c.Vector()
	base, disp = c.ensureAddressRange(base, disp)
	c.access("FLDPQ @m, (F@0, F@1)", base, 2, disp, 32, []Value{low, high, base}, 3, 0)
	return low, high
}

// StorePair emits the store of two vector registers, 32 bytes, at base plus disp.
func (c *Code) StorePair(low, high, base Value, disp int) {
	base, disp = c.ensureAddressRange(base, disp)
	c.access("FSTPQ (F@0, F@1), @m", base, 2, disp, 32, []Value{low, high, base}, 0, 3)
}

// ensureAddressRange returns the address base plus disp in the range of an instruction for
// pairs. It emits an addition if necessary.
func (c *Code) ensureAddressRange(base Value, disp int) (Value, int) {
	if disp%16 == 0 && disp >= -1024 && disp < 1024 {
		return base, disp
	}
	return c.offset(base, disp), 0
}

// offset emits the sum of a register and a number in a new register, and returns it. It returns
// base if disp is 0.
func (c *Code) offset(base Value, disp int) Value {
	if disp == 0 {
		return base
	}
	sum := c.General()
	c.set(fmt.Sprintf("ADD $%d, R@1, R@0", disp), sum, base)
	return sum
}

// names of loads by the logarithm of their size
var (
	loads  = [5]string{"FMOVB", "FMOVH", "FMOVS", "FMOVD", "FMOVQ"}
	stores = loads
)

// LoadTo emits the load of size bytes, 4, 8 or 16, at base plus disp into to, and clears the
// others.
func (c *Code) LoadTo(to, base Value, disp, size int) {
	name := map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[size]
	base, disp = c.reach(base, disp, size)
	c.access(name+" @m, F@0", base, 1, disp, size, []Value{to, base}, 1, 0)
}

// Load is [Code.LoadTo] with a new register, which it returns.
func (c *Code) Load(base Value, disp, size int) Value {
	v := c.Vector()
	c.LoadTo(v, base, disp, size)
	return v
}

// Store emits the store of the lowest size bytes of v, 4, 8 or 16, at base plus disp.
func (c *Code) Store(v, base Value, disp, size int) {
	name := map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[size]
	base, disp = c.reach(base, disp, size)
	c.access(name+" F@0, @m", base, 1, disp, size, []Value{v, base}, 0, 1)
}

// reach returns the address base plus disp in the range of a load or store of size bytes. It
// emits an addition if necessary.
func (c *Code) reach(base Value, disp, size int) (Value, int) {
	if disp >= -256 && disp < 256 || disp > 0 && disp%size == 0 && disp < 4096*size {
		return base, disp
	}
	return c.offset(base, disp), 0
}

// Spread emits the load of a number of size bytes, 4 or 8, at base plus disp into all lanes of
// a new register, and returns it.
func (c *Code) Spread(base Value, disp, size int) Value {
	v, at := c.Vector(), c.offset(base, disp)
	lanes := map[int]string{4: "S4", 8: "D2"}[size]
	o := c.set("VLD1R (R@1), [V@0."+lanes+"]", v, at)
	o.falls = true
	return v
}
