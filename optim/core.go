package optim

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An Optimizer changes parameters by their gradients.
type Optimizer interface {
	// ZeroGrad sets the gradients to zeros. It makes none for a parameter without one.
	ZeroGrad()
	// Step changes the parameters by one step, in place. Frozen parameters and those without a
	// gradient stay unchanged.
	Step()
}

// or returns what an option points to; nil is PyTorch's default.
func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// core is what all optimizers have: parameters, and for each some tensors of its shape. Its options
// are those that the optimizer embeds, by the same pointer.
type core struct {
	options options
	slots   []slot
	shared  bool
	single  updater[float32]
	double  updater[float64]
	fresh   func() (o options, replace func()) // a copy of the options, and what puts it in their place
}

// An updater has a parameter of one dtype take a step.
type updater[F kernel.Float] struct {
	update[F] // of the parameter that is being changed
	step      func(u *update[F])
}

// bind gives a core the options o, of which p is the same pointer, and the steps that they
// describe.
func bind[O any, P interface {
	*O
	options
}](c *core, p P, single func(*O, *update[float32]), double func(*O, *update[float64])) {
	c.options = p
	c.single.step = func(u *update[float32]) { single(p, u) }
	c.double.step = func(u *update[float64]) { double(p, u) }
	c.fresh = func() (options, func()) {
		o := *p
		return P(&o), func() { *p = o }
	}
}

// A slot is a parameter and its state, which is nil before the first step unless it is shared.
type slot struct {
	Param *autograd.Param
	Steps *tensor.Tensor   // how many were taken: Int64, a single number
	State []*tensor.Tensor // of the parameter's dtype and shape
}

// keep has a bound core optimize params.
func (c *core) keep(params iter.Seq[*autograd.Param]) {
	if p := c.options.problem(); p != "" {
		misuse("%s", p)
	}
	for p := range params {
		c.slots = append(c.slots, slot{Param: p})
	}
	if len(c.slots) == 0 {
		misuse("an optimizer of no parameters: was the module built, and were its Params given?")
	}
}

// ZeroGrad sets the gradients to zeros. It makes none for a parameter without one.
func (c *core) ZeroGrad() {
	for _, s := range c.slots {
		s.Param.ZeroGrad()
	}
}

// Share makes the state of each parameter and moves it to shared memory, as Note [Shared state]
// says. The error wraps shm.ErrNoSpace if the domain is full.
func (c *core) Share() error {
	c.shared = true
	for i := range c.slots {
		s := &c.slots[i]
		s.prepare(c.options.states())
		for _, t := range append(s.State, s.Steps) {
			if err := t.Share(); err != nil {
				return fmt.Errorf("share the state of parameter %s: %w", s.Param.Name, err)
			}
		}
	}
	return nil
}

// Close closes the state in this process, and not the parameters. It is idempotent.
func (c *core) Close() error {
	var problems []error
	for i := range c.slots {
		s := &c.slots[i]
		if s.Steps != nil {
			problems = append(problems, s.Steps.Close())
		}
		for _, t := range s.State {
			problems = append(problems, t.Close())
		}
		s.Steps, s.State = nil, nil
	}
	return errors.Join(problems...)
}

func (s *slot) prepare(states int, start float64) {
	if s.Steps == nil {
		s.Steps = tensor.New(tensor.Int64)
	}
	for len(s.State) < states {
		fresh := s.Param.T.NewZeros(s.Param.T.DType(), s.Param.T.Shape()...)
		if start != 0 {
			fresh.Fill(start)
		}
		s.State = append(s.State, fresh)
	}
}

func (s *slot) check() {
	if p, g := s.Param.T, s.Param.Grad; !slices.Equal(p.Shape(), g.Shape()) {
		misuse("parameter %s of shape %v has a gradient of %v", s.Param.Name, p.Shape(), g.Shape())
	}
}

// direction returns the learning rate and the weight decay of a step along -gradient + decay·p
// where the loss is to become larger. That is the step of both with the other sign along gradient -
// decay·p, so a step needs no second form; the mean gradients in the state have the other sign than
// PyTorch's then.
func direction(maximize bool, rate, decay float64) (float64, float64) {
	if maximize {
		return -rate, -decay
	}
	return rate, decay
}

// misuse panics with an error that wraps tensor.ErrMisuse.
func misuse(format string, args ...any) {
	panic(fmt.Errorf("optim: %s%.0w", fmt.Sprintf(format, args...), tensor.ErrMisuse))
}
