package ptx

import "fmt"

// A Descent describes a step of an optimizer. Rule must be SGD, Adam, RMSprop or Adagrad. The
// other fields are as in device.Descent: Momentum is true if the momentum is not 0, and First
// in the first step.
type Descent struct {
	Rule                                                            string
	Momentum, First, Nesterov, Decoupled, AMSGrad, Centered, Atomic bool
}

// Indices of the coefficients of a step, which are float64 extra words. Each rule uses some of
// them.
const (
	Rate     = iota // learning rate; for Adam, divided by the bias correction of the mean
	Decay           // weight decay, added to the gradient
	Momentum        // factor of the momentum buffer (SGD) or the previous step (RMSprop)
	Fresh           // factor of the gradient in the momentum buffer, or in Adam's mean
	Keep            // factor of the previous mean square
	Square          // factor of the new square
	Eps
	Root   // factor of the root of Adam's mean square, which corrects its bias
	Shrink // fraction of the parameter that decoupled weight decay subtracts
	Numbers
)

// Descend returns the kernel of an optimizer step. The operands are the parameters, their gradients
// and the state tensors of the rule, all of type t; the extra words are the coefficients. It
// returns false if the rule is unknown, or unless t is [Float32] or [Float64]. With d.Atomic, the
// change is added to the parameters atomically.
func Descend(d Descent, t Type) (Kernel, bool) {
	step, ok := rules[d.Rule]
	if !ok || t != Float32 && t != Float64 {
		return Kernel{}, false
	}
	d.First = d.First && d.Rule == "SGD" && d.Momentum // without effect on other rules
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
			g = s.fma(s.loadNumber(Decay), p, g)
		}
		change := step.change(s, d, g, state)
		if d.Decoupled {
			change = s.emitOp("sub", change, s.emitOp("mul", s.loadNumber(Shrink), p))
		}
		if !d.Atomic {
			change = s.emitOp("add", p, change)
		}
		return append([]string{change}, state...)
	}
	return e.kernel(), true
}

// A stepper emits instructions in the class of the parameters, t. extra is the index of the
// first coefficient.
type stepper struct {
	*asm
	t     Type
	extra int
}

func (s stepper) loadNumber(i int) string { return s.cast(s.t, Float64, s.loadWord("f64", s.extra+i)) }
func (s stepper) emitOp(name string, x ...string) string {
	return s.asm.emitResult(op(name, s.t), x...)
}
func (s stepper) fma(x, y, z string) string { return s.emitOp("fma", x, y, z) }
func (s stepper) mean(keep, fresh int, old, x string) string {
	return s.fma(s.loadNumber(keep), old, s.emitOp("mul", s.loadNumber(fresh), x))
}

// divideByRoot returns g / (√square·factor + Eps). If factor is "", it is 1.
func (s stepper) divideByRoot(g, square, factor string) string {
	r := s.emitOp("sqrt", square)
	if factor != "" {
		r = s.emitOp("mul", r, factor)
	}
	return s.emitOp("div", g, s.emitOp("add", r, s.loadNumber(Eps)))
}

// An updateRule is the rule of an optimizer. states returns the number of its state tensors.
// change emits the update of one element: it replaces the values in state by new ones and
// returns the number that the caller must add to the parameter, for the gradient g.
type updateRule struct {
	states func(d Descent) int
	change func(s stepper, d Descent, g string, state []string) string
}

var rules = map[string]updateRule{
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
		m, fresh := g, g // the buffer must not be read before the first step
		if !d.First {
			m = s.mean(Momentum, Fresh, state[0], g)
		}
		state[0] = m
		if g = m; d.Nesterov {
			g = s.fma(s.loadNumber(Momentum), m, fresh)
		}
	}
	return s.emitOp("neg", s.emitOp("mul", s.loadNumber(Rate), g))
}

func adamStates(d Descent) int {
	if d.AMSGrad {
		return 3
	}
	return 2
}

func adam(s stepper, d Descent, g string, state []string) string {
	state[0] = s.fma(s.loadNumber(Fresh), s.emitOp("sub", g, state[0]), state[0])
	state[1] = s.mean(Keep, Square, state[1], s.emitOp("mul", g, g))
	square := state[1]
	if d.AMSGrad {
		state[2] = s.emitOp("max", state[2], square)
		square = state[2]
	}
	return s.emitOp("neg", s.emitOp("mul", s.loadNumber(Rate), s.divideByRoot(state[0], square, s.loadNumber(Root))))
}

func adagrad(s stepper, d Descent, g string, state []string) string {
	state[0] = s.fma(g, g, state[0])
	return s.emitOp("neg", s.emitOp("mul", s.loadNumber(Rate), s.divideByRoot(g, state[0], "")))
}

func rmsprop(s stepper, d Descent, g string, state []string) string {
	state[0] = s.mean(Keep, Square, state[0], s.emitOp("mul", g, g))
	spread := state[0]
	if d.Centered {
		state[1] = s.fma(s.loadNumber(Square), s.emitOp("sub", g, state[1]), state[1])
		spread = s.emitOp("sub", spread, s.emitOp("mul", state[1], state[1]))
	}
	step := s.divideByRoot(g, spread, "")
	if d.Momentum {
		state[2] = s.fma(s.loadNumber(Momentum), state[2], step)
		step = state[2]
	}
	return s.emitOp("neg", s.emitOp("mul", s.loadNumber(Rate), step))
}
