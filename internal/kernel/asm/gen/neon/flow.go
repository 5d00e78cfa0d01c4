package neon

import "math/bits"

// set is a set of values. newSet makes a set for the values from 0 to n-1.
type set []uint64

func newSet(n int) set            { return make(set, (n+63)/64) }
func (s set) has(v Value) bool    { return s[v/64]>>(v%64)&1 != 0 }
func (s set) put(v Value)         { s[v/64] |= 1 << (v % 64) }
func (s set) removeValue(v Value) { s[v/64] &^= 1 << (v % 64) }
func (s set) each(f func(Value)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			f(Value(64*i + bits.TrailingZeros64(word)))
		}
	}
}

// addAll adds the elements of t, and reports whether there were new ones.
func (s set) addAll(t set) (more bool) {
	for i, word := range t {
		more = more || word&^s[i] != 0
		s[i] |= word
	}
	return more
}

// flow is the control flow of a function, operation by operation: next and previous hold the
// indices of the operations that may follow and precede each. [Code.flow] makes it without
// live, which [Code.findLive] computes.
type flow struct {
	next, previous [][]int
	depth          []int // number of loops around each operation
	live           []set // values that are live after each operation
}

func (c *Code) flow() *flow {
	f := &flow{next: make([][]int, len(c.ops)), previous: make([][]int, len(c.ops)), depth: make([]int, len(c.ops))}
	labels := map[string]int{}
	for i, o := range c.ops {
		if o.label != "" {
			labels[o.label] = i
		}
	}
	for i, o := range c.ops {
		if o.target != "" {
			to, ok := labels[o.target]
			if !ok {
				panic("neon: label " + o.target + ": want its definition")
			}
			f.next[i] = append(f.next[i], to)
			for at := to; at <= i; at++ {
				f.depth[at]++
			}
		}
		if o.falls && i+1 < len(c.ops) {
			f.next[i] = append(f.next[i], i+1)
		}
	}
	for i, all := range f.next {
		for _, to := range all {
			f.previous[to] = append(f.previous[to], i)
		}
	}
	return f
}

// findLive computes f.live, the values that are live after each operation.
func (c *Code) findLive(f *flow) {
	f.live = make([]set, len(c.ops))
	for i := range f.live {
		f.live[i] = newSet(len(c.vector))
	}
	before := newSet(len(c.vector))
	for changed := true; changed; {
		changed = false
		for i := len(c.ops) - 1; i >= 0; i-- {
			copy(before, f.live[i])
			c.ops[i].stepBack(before)
			for _, p := range f.previous[i] {
				if f.live[p].addAll(before) {
					changed = true
				}
			}
		}
	}
}

// stepBack turns live, the values that are live after o, into those that are live before, in
// place.
func (o *operation) stepBack(live set) {
	for i, v := range o.args {
		if o.writes(i) && !o.reads(i) {
			live.removeValue(v)
		}
	}
	for i, v := range o.args {
		if o.reads(i) {
			live.put(v)
		}
	}
}

// prune removes the operations without an effect that write only values that are not live,
// until there are none.
func (c *Code) prune() {
	for {
		f := c.flow()
		c.findLive(f)
		kept := c.ops[:0:0]
		for i, o := range c.ops {
			if o.effect || o.isNeeded(f.live[i]) {
				kept = append(kept, o)
			}
		}
		if len(kept) == len(c.ops) {
			return
		}
		c.ops = kept
	}
}

func (o *operation) isNeeded(live set) bool {
	if o.copies && o.args[0] == o.args[1] {
		return false
	}
	for i, v := range o.args {
		if o.writes(i) && live.has(v) {
			return true
		}
	}
	return false
}

// separate gives a value of its own to each part of a value's life that does not meet the others:
// the definitions that reach the same use stay together.
func (c *Code) separate() {
	f := c.flow()
	type site struct{ op, arg int }
	defs := map[Value][]site{}
	for i, o := range c.ops {
		for a, v := range o.args {
			if o.writes(a) {
				defs[v] = append(defs[v], site{i, a})
			}
		}
	}
	for v := range Value(len(c.vector)) {
		sites := defs[v]
		if len(sites) < 2 {
			continue
		}
		number := map[int]int{} // of the definition by operation
		for n, s := range sites {
			number[s.op] = n
		}
		groups := newGroups(len(sites))
		reached := map[int][]int{} // definitions that reach the use of an operation
		for i, o := range c.ops {
			for a, used := range o.args {
				if used == v && o.reads(a) && reached[i] == nil {
					reached[i] = c.reaching(f, v, i, number)
					for _, n := range reached[i][1:] {
						groups.join(reached[i][0], n)
					}
					if o.writes(a) {
						groups.join(reached[i][0], number[i])
					}
				}
			}
		}
		names := map[int]Value{}
		name := func(n int) Value {
			root := groups.root(n)
			if _, ok := names[root]; !ok {
				names[root] = c.fresh(c.vector[v])
			}
			return names[root]
		}
		for i := range c.ops {
			all := reached[i]
			for a, used := range c.ops[i].args {
				if used == v && c.ops[i].reads(a) {
					c.ops[i].args[a] = name(all[0])
				}
			}
		}
		for n, s := range sites {
			if c.ops[s.op].args[s.arg] == v {
				c.ops[s.op].args[s.arg] = name(n)
			}
		}
	}
}

// reaching returns the numbers of the definitions of v that reach operation at. number maps the
// operations that define v to these numbers. If no definition reaches it, reaching returns 0,
// the first one.
func (c *Code) reaching(f *flow, v Value, at int, number map[int]int) (all []int) {
	seen, queue := map[int]bool{}, append([]int{}, f.previous[at]...)
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		if n, ok := number[i]; ok {
			all = append(all, n)
			continue
		}
		queue = append(queue, f.previous[i]...)
	}
	if len(all) == 0 {
		all = []int{0} // undefined, as the upper half of a register that is not used
	}
	return all
}

// groups are disjoint sets of the numbers from 0 to its length less 1. At first each number is
// a set of its own. root returns the number that stands for a set, and join joins two sets.
type groups []int

func newGroups(n int) groups {
	g := make(groups, n)
	for i := range g {
		g[i] = i
	}
	return g
}

func (g groups) root(i int) int {
	for g[i] != i {
		i = g[i]
	}
	return i
}

func (g groups) join(a, b int) { g[g.root(a)] = g.root(b) }

// requireWritten panics if a general register is read before it is written. The upper half of a
// vector register may be, because a 128-bit instruction of amd64 clears it.
func (c *Code) requireWritten(f *flow) {
	entry := newSet(len(c.vector))
	copy(entry, f.live[0])
	c.ops[0].stepBack(entry)
	entry.each(func(v Value) {
		if !c.vector[v] {
			panic("neon: a general register is read before it is written")
		}
	})
}
