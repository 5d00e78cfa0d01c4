package neon

import (
	"fmt"
	"math"
	"slices"
)

// Registers that the allocation may use. Go reserves R16 to R18 and R27 to R30
// (https://go.dev/doc/asm#arm64).
var (
	generalNumbers = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26}
	vectorCount    = 32
)

// graph is the interference of the values of a function: two that are live at the same time
// need two registers. [Code.interference] makes it.
type graph struct {
	code   *Code
	flow   *flow
	rows   []set
	merged groups
	weight []float64 // uses, each times ten to the power of its depth
	used   set
}

func (c *Code) interference() *graph {
	g := &graph{code: c, flow: c.flow(), merged: newGroups(len(c.vector)), weight: make([]float64, len(c.vector)),
		used: newSet(len(c.vector))}
	c.findLive(g.flow)
	c.requireWritten(g.flow)
	g.rows = make([]set, len(c.vector))
	for i := range g.rows {
		g.rows[i] = newSet(len(c.vector))
	}
	for i, o := range c.ops {
		for a, v := range o.args {
			g.used.put(v)
			g.weight[v] += math.Pow(10, float64(min(g.flow.depth[i], 4)))
			if !o.writes(a) {
				continue
			}
			g.flow.live[i].each(func(other Value) {
				if other != v && !(o.copies && other == o.args[1]) {
					g.connect(v, other)
				}
			})
			for b, other := range o.args { // results that are never read still need a register
				if other != v && o.writes(b) {
					g.connect(v, other)
				}
			}
		}
	}
	return g
}

func (g *graph) connect(a, b Value) {
	if g.code.vector[a] == g.code.vector[b] {
		g.rows[a].put(b)
		g.rows[b].put(a)
	}
}

// coalesce merges the operands of copies that do not interfere, so that they get the same
// register. It records them in g.merged.
func (g *graph) coalesce() {
	order := make([]int, 0)
	for i, o := range g.code.ops {
		if o.copies {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return g.flow.depth[b] - g.flow.depth[a] })
	for _, i := range order {
		o := g.code.ops[i]
		a, b := Value(g.merged.root(int(o.args[0]))), Value(g.merged.root(int(o.args[1])))
		if a == b || g.rows[a].has(b) {
			continue
		}
		g.merged[b] = int(a)
		g.weight[a] += g.weight[b]
		g.rows[b].each(func(v Value) {
			g.rows[v].removeValue(b)
			g.connect(v, a)
		})
		clear(g.rows[b])
		g.used.removeValue(b)
	}
}

// color assigns registers to the values that are not merged into others. numbers are the
// indices of their registers, and spilled is the values that did not get any.
func (g *graph) color() (numbers map[Value]int, spilled []Value) {
	degree := map[Value]int{}
	var left []Value
	g.used.each(func(v Value) {
		left = append(left, v)
		n := 0
		g.rows[v].each(func(Value) { n++ })
		degree[v] = n
	})
	var stack []Value
	removed := newSet(len(g.rows))
	for len(left) > 0 {
		pick := -1
		for i, v := range left {
			if degree[v] < g.limit(v) {
				pick = i
				break
			}
		}
		if pick < 0 {
			best := math.Inf(1)
			for i, v := range left {
				if cost := g.weight[v] / float64(degree[v]+1); cost < best {
					best, pick = cost, i
				}
			}
		}
		v := left[pick]
		left = slices.Delete(left, pick, pick+1)
		stack = append(stack, v)
		removed.put(v)
		g.rows[v].each(func(other Value) { degree[other]-- })
	}
	numbers = map[Value]int{}
	for _, v := range slices.Backward(stack) {
		taken := map[int]bool{}
		g.rows[v].each(func(other Value) {
			if n, ok := numbers[other]; ok {
				taken[n] = true
			}
		})
		n := 0
		for taken[n] {
			n++
		}
		if n >= g.limit(v) {
			spilled = append(spilled, v)
			continue
		}
		numbers[v] = n
	}
	return numbers, spilled
}

func (g *graph) limit(v Value) int {
	if g.code.vector[v] {
		return vectorCount
	}
	return len(generalNumbers)
}

// allocate assigns registers to all values. number returns the register of a value. spill
// permits vector values on the stack; otherwise ok is false if the registers do not suffice.
// frame is the size of the stack frame in bytes. It panics if the general registers do not
// suffice although spill is true.
func (c *Code) allocate(spill bool) (number func(Value) int, frame int, ok bool) {
	for range 30 {
		g := c.interference()
		g.coalesce()
		numbers, spilled := g.color()
		if len(spilled) == 0 {
			return func(v Value) int {
				n := numbers[Value(g.merged.root(int(v)))]
				if c.vector[v] {
					return n
				}
				return generalNumbers[n]
			}, frame, true
		}
		if !spill {
			return nil, 0, false
		}
		for _, v := range spilled {
			if !c.vector[v] {
				panic("neon: general registers do not suffice")
			}
			frame += 16
			c.store(v, g.merged, frame)
		}
	}
	return nil, 0, false
}

// store keeps the value v, and those merged with it, on the stack, frame bytes below its top:
// it adds a load before each use and a store behind each definition.
func (c *Code) store(v Value, merged groups, frame int) {
	slot := fmt.Sprintf("spill%d-%d(SP)", frame/16, frame)
	var ops []*operation
	for _, o := range c.ops {
		var uses, defs bool
		temporary := none
		for a, arg := range o.args {
			if Value(merged.root(int(arg))) != v {
				continue
			}
			if temporary == none {
				temporary = c.Vector()
			}
			uses, defs = uses || o.reads(a), defs || o.writes(a)
			o.args[a] = temporary
		}
		if uses {
			ops = append(ops,
				&operation{text: "FMOVQ " + slot + ", F@0", args: []Value{temporary}, defs: 1, falls: true})
		}
		ops = append(ops, o)
		if defs {
			ops = append(ops, &operation{text: "FMOVQ F@0, " + slot, args: []Value{temporary}, uses: 1, falls: true,
				effect: true})
		}
	}
	c.ops = ops
}
