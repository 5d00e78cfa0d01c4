package optim

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/internal/sentinel"
	"github.com/shoal-mp/shoal/tensor"
)

// Optimizer updates parameters by their gradients.
type Optimizer interface {
	// ZeroGrad sets the gradients to zeros. Parameters without a gradient stay without one.
	ZeroGrad()
	// Step updates the parameters in place. Frozen parameters and parameters without a gradient are
	// not changed.
	Step()
}

// valueOr returns *v, or otherwise if v is nil.
func valueOr[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// core is the common part of all optimizers: the parameters, and state tensors of the same shape
// for each. options points to the options that the optimizer embeds.
type core struct {
	options options
	slots   []slot
	shared  bool
	single  updater[float32]
	double  updater[float64]
	// fresh returns a copy of the options, and a function that installs it.
	fresh func() (o options, replace func())
}

// updater performs the steps of parameters of one dtype. It is reused for all of them.
type updater[F kernel.Float] struct {
	update[F] // the parameter that is being updated
	step      func(u *update[F])
}

// bind sets the options of c to p, and its step functions for Float32 and Float64 to single and
// double. It must be called before the first step and after each change of the options pointer.
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

// slot is a parameter and its state. The state is nil before the first step unless it is shared.
type slot struct {
	Param *autograd.Param
	Steps *tensor.Tensor   // number of steps taken: Int64 scalar
	State []*tensor.Tensor // tensors with the parameter's dtype and shape
}

// addParams adds params to the core, which must be bound. It panics with [tensor.ErrMisuse] if an
// option is out of range or if there are no params.
func (c *core) addParams(params iter.Seq[*autograd.Param]) {
	if p := c.options.problem(); p != "" {
		misuse("%s", p)
	}
	for p := range params {
		c.slots = append(c.slots, slot{Param: p})
	}
	if len(c.slots) == 0 {
		misuse("got no parameters: build the module and pass its Params")
	}
}

// ZeroGrad sets the gradients to zeros. Parameters without a gradient stay without one.
func (c *core) ZeroGrad() {
	for _, s := range c.slots {
		s.Param.ZeroGrad()
	}
}

// Share allocates the state of each parameter and moves it to shared memory. For the consequences
// see Note [Shared state]. The error wraps shm.ErrNoSpace if the domain is full.
func (c *core) Share() error {
	c.shared = true
	for i := range c.slots {
		s := &c.slots[i]
		s.createState(c.options.stateCount())
		for _, t := range append(s.State, s.Steps) {
			if err := t.Share(); err != nil {
				return fmt.Errorf("share the state of parameter %s: %w", s.Param.Name, err)
			}
		}
	}
	return nil
}

// Close closes the state of the parameters in this process, but not the parameters. It is
// idempotent.
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

func (s *slot) createState(states int, start float64) {
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
		misuse("parameter %s has shape %v but a gradient of shape %v", s.Param.Name, p.Shape(), g.Shape())
	}
}

// stepDirection returns the learning rate and the weight decay of a step, both negated if
// maximize is true.
//
// To maximise a loss, the step must follow -gradient + decay·p. This equals a step along gradient
// - decay·p with both signs flipped, so no second form of the step is needed. The mean gradients
// in the state then have the opposite sign to PyTorch's.
func stepDirection(maximize bool, rate, decay float64) (float64, float64) {
	if maximize {
		return -rate, -decay
	}
	return rate, decay
}

// misuse panics with an error that wraps [tensor.ErrMisuse].
func misuse(format string, args ...any) {
	panic(sentinel.New("optim: "+fmt.Sprintf(format, args...), tensor.ErrMisuse))
}
