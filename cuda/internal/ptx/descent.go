package ptx

import "fmt"

// A Descent is a step of an optimizer: SGD, Adam, RMSprop or Adagrad.
type Descent struct {
	Rule                                                            string
	Momentum, First, Nesterov, Decoupled, AMSGrad, Centered, Atomic bool
}

// The numbers of a step, as float64 in the extra words. Not all rules have all of them.
const (
	Rate     = iota // of learning; Adam's is divided by what its mean has not seen yet
	Decay           // what of the parameter enters its gradient
	Momentum        // what is kept of the momentum, or of the last step; of Adam's mean
	Fresh           // what enters that
	Keep            // what is kept of the mean square
	Square          // what enters that
	Eps
	Root   // what the root of Adam's mean square is multiplied by
	Shrink // what decoupled decay takes off
	Numbers
)

// Descend returns the kernel of a step for parameters of a type, their gradients, and their state.
func Descend(d Descent, t Type) (Kernel, bool) {
	step, ok := rules[d.Rule]
	if !ok || t != Float32 && t != Float64 {
		return Kernel{}, false
	}
	d.First = d.First && d.Rule == "SGD" && d.Momentum // of others the text is the same
	e := each{name: fmt.Sprintf("%+v", d), operands: []access{{t, reads | writes}, {t, reads}}, extra: Numbers}
	if d.Atomic {
		e.operands[0].mode = reads | adds
	}
	for range step.states(d) {
		e.operands = append(e.operands, access{t, reads | writes})
	}
	e.body = func(a *asm, x []string, _ string, extra int) []string {
		s := stepper{a, t, extra}
		p, g, state := x[0], x[1], x[2:]
		if !d.Decoupled {
			g = s.fma(s.number(Decay), p, g)
		}
		change := step.change(s, d, g, state)
		if d.Decoupled {
			change = s.do("sub", change, s.do("mul", s.number(Shrink), p))
		}
		if !d.Atomic {
			change = s.do("add", p, change)
		}
		return append([]string{change}, state...)
	}
	return e.kernel(), true
}

// A stepper writes instructions in the class of the parameters.
type stepper struct {
	*asm
	t     Type
	extra int
}

func (s stepper) number(i int) string                { return s.cast(s.t, Float64, s.word("f64", s.extra+i)) }
func (s stepper) do(name string, x ...string) string { return s.asm.do(op(name, s.t), x...) }
func (s stepper) fma(x, y, z string) string          { return s.do("fma", x, y, z) }
func (s stepper) mean(keep, fresh int, old, x string) string {
	return s.fma(s.number(keep), old, s.do("mul", s.number(fresh), x))
}

// root is a gradient divided by a root.
func (s stepper) root(g, square, factor string) string {
	r := s.do("sqrt", square)
	if factor != "" {
		r = s.do("mul", r, factor)
	}
	return s.do("div", g, s.do("add", r, s.number(Eps)))
}

// A rule changes state in place, and returns by how much the parameter changes.
type rule struct {
	states func(d Descent) int
	change func(s stepper, d Descent, g string, state []string) string
}

var rules = map[string]rule{
	"SGD": {sgdStates, sgd}, "Adam": {adamStates, adam},
	"RMSprop": {func(Descent) int { return 3 }, rmsprop}, "Adagrad": {func(Descent) int { return 1 }, adagrad},
}

func sgdStates(d Descent) int {
	if d.Momentum {
		return 1
	}
	return 0
}

func sgd(s stepper, d Descent, g string, state []string) string {
	if d.Momentum {
		m, fresh := g, g // what was there before the first step is not looked at
		if !d.First {
			m = s.mean(Momentum, Fresh, state[0], g)
		}
		state[0] = m
		if g = m; d.Nesterov {
			g = s.fma(s.number(Momentum), m, fresh)
		}
	}
	return s.do("neg", s.do("mul", s.number(Rate), g))
}

func adamStates(d Descent) int {
	if d.AMSGrad {
		return 3
	}
	return 2
}

func adam(s stepper, d Descent, g string, state []string) string {
	state[0] = s.fma(s.number(Fresh), s.do("sub", g, state[0]), state[0])
	state[1] = s.mean(Keep, Square, state[1], s.do("mul", g, g))
	square := state[1]
	if d.AMSGrad {
		state[2] = s.do("max", state[2], square)
		square = state[2]
	}
	return s.do("neg", s.do("mul", s.number(Rate), s.root(state[0], square, s.number(Root))))
}

func adagrad(s stepper, d Descent, g string, state []string) string {
	state[0] = s.fma(g, g, state[0])
	return s.do("neg", s.do("mul", s.number(Rate), s.root(g, state[0], "")))
}

func rmsprop(s stepper, d Descent, g string, state []string) string {
	state[0] = s.mean(Keep, Square, state[0], s.do("mul", g, g))
	spread := state[0]
	if d.Centered {
		state[1] = s.fma(s.number(Square), s.do("sub", g, state[1]), state[1])
		spread = s.do("sub", spread, s.do("mul", state[1], state[1]))
	}
	step := s.root(g, spread, "")
	if d.Momentum {
		state[2] = s.fma(s.number(Momentum), state[2], step)
		step = state[2]
	}
	return s.do("neg", s.do("mul", s.number(Rate), step))
}
