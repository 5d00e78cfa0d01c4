package optim

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/shoal-mp/shoal/tensor"
)

// class describes an optimizer with its options in PyTorch's terms: the name of the class, and the
// layout of its state dict.
type class struct {
	name     string
	mark     string // a setting that no other class has
	counts   bool   // the state of a parameter includes its number of steps
	always   bool   // parameters have state before their first step
	maximize bool
	settings []setting
	moments  []moment
}

// moment describes one tensor of a parameter's state.
type moment struct {
	key    string
	at     int  // index in slot.State
	used   bool // the options require this tensor
	signed bool // PyTorch uses the opposite sign if Maximize is set, see stepDirection
}

// classes maps a mark, a setting that only one class has, to the name of the class in PyTorch.
var classes = map[string]string{"dampening": "SGD", "betas": "Adam or AdamW", "alpha": "RMSprop",
	"lr_decay": "Adagrad", "rho": "Adadelta", "etas": "Rprop"}

// passing are keys of a group that are accepted and ignored: PyTorch's own, and its schedulers'.
var passing = []string{"params", "param_names", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum"}

// A member is the optimizer of one group, with the description of its class.
type member struct {
	*core
	class
}

// member returns c with the description of its class. [membersOf] detects the optimizers of this
// package by this method.
func (c *core) member() member { return member{c, c.options.describeClass()} }

// membersOf returns the optimizers in o, one for each group. It panics with [tensor.ErrMisuse] if
// o is of another package.
func membersOf(o Optimizer) (members []member) {
	switch o := o.(type) {
	case interface{ member() member }:
		return []member{o.member()}
	case Groups:
		for _, part := range o {
			members = append(members, membersOf(part)...)
		}
		return members
	}
	misuse("%T has no state dict: want an optimizer of this package, or Groups of them", o)
	return nil
}

// load decodes a group and the states of its parameters, which it deletes from state. Nothing
// else is changed until commit is called, which must happen only if no group returned an error.
// The error of commit wraps shm.ErrNoSpace if there is no space for a shared state. err wraps the
// errors of [Load] for each mismatch.
func (c *core) load(group map[string]any, state map[int]map[string]any) (commit func() error, err error) {
	fresh, replace := c.fresh()
	problems := fresh.describeClass().decodeSettings(group)
	if errors.Is(errors.Join(problems...), ErrClass) {
		return nil, errors.Join(problems...) // other errors would only be consequences
	}
	if p := fresh.problem(); p != "" && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%w: %s", ErrFormat, p))
	}
	found, more := fresh.describeClass().decodeStates(c.slots, group, state)
	return func() error { replace(); return c.restore(found) }, errors.Join(append(problems, more...)...)
}

// decodeSettings decodes the options of a group. It returns errors that wrap [ErrClass] if the
// group belongs to another class, and otherwise one error for each invalid entry.
func (c class) decodeSettings(group map[string]any) []error {
	if _, same := group[c.mark]; !same {
		for mark, name := range classes {
			if _, other := group[mark]; other {
				return []error{fmt.Errorf("load the state of %s into %s: %w", name, c.name, ErrClass)}
			}
		}
	}
	problems := decodeSettings(c.settings, group, passing...)
	for _, s := range c.settings {
		_, isFlag := s.get().(bool)
		if _, written := group[s.key]; isFlag && !written && s.set != nil {
			s.set(false) // as PyTorch's __setstate__ does for the file of an older version
		}
	}
	return problems
}

// finding is the decoded state of one parameter. If there was none, steps is 0.
type finding struct {
	steps int64
	state map[int]*tensor.Tensor // by index in slot.State
}

// decodeStates decodes the states of a group's parameters and deletes them from state. found has
// one element for each slot, unless the list of parameters is invalid. The problems wrap the
// errors of [Load].
func (c class) decodeStates(slots []slot, group map[string]any, state map[int]map[string]any) (found []finding,
	problems []error) {
	ids, ok := numbersOf(group["params"])
	if !ok {
		return nil, []error{fmt.Errorf("params: %w: want the indices of the parameters", ErrFormat)}
	}
	taken := map[int]bool{}
	found = make([]finding, len(slots))
	for i, id := range ids {
		if taken[id] {
			problems = append(problems, fmt.Errorf("params: %w: %d is repeated", ErrFormat, id))
		}
		taken[id] = true
		if of, ok := state[id]; ok && i < len(slots) {
			f, err := c.decodeState(slots[i], of)
			if err != nil {
				problems = append(problems, fmt.Errorf("state of parameter %d (%s): %w", id,
					slots[i].Param.Name, err))
			}
			found[i] = f
		}
		delete(state, id)
	}
	if len(ids) != len(slots) {
		problems = append(problems, fmt.Errorf("got %d parameters, want %d: %w", len(ids), len(slots), ErrGroups))
	}
	return found, problems
}

// decodeState decodes and checks the state of one parameter. The error wraps [ErrFormat],
// [ErrMissing], [ErrUnexpected], [ErrShape] or [ErrDType] for each mismatch.
func (c class) decodeState(s slot, of map[string]any) (f finding, err error) {
	var problems []error
	known := []string{"step"}
	f.state = map[int]*tensor.Tensor{}
	for _, m := range c.moments {
		known = append(known, m.key)
		v := of[m.key]
		switch {
		case !m.used:
		case v != nil:
			f.state[m.at], err = momentOf(s, v)
			problems = append(problems, wrapKey(m.key, err))
		case c.counts: // SGD has no momentum before its first step, and no step count
			problems = append(problems, fmt.Errorf("%s: %w", m.key, ErrMissing))
		}
	}
	f.steps, err = c.stepsOf(of, len(f.state))
	problems = append(problems, err)
	return f, errors.Join(append(problems, unexpectedKeys(of, known)...)...)
}

func (c class) stepsOf(of map[string]any, moments int) (int64, error) {
	if !c.counts {
		return int64(min(1, moments)), nil
	}
	v, ok := of["step"]
	if !ok {
		return 0, wrapKey("step", ErrMissing)
	}
	x, ok := numberOf(v)
	if n := int64(x); ok && x >= 0 && x < 1<<53 && float64(n) == x {
		return n, nil
	}
	return 0, fmt.Errorf("step: %w: got %v, want a whole number of at least 0", ErrFormat, v)
}

// momentOf returns v, which must be a float tensor with the shape of the parameter; otherwise the
// error wraps [ErrFormat], [ErrShape] or [ErrDType].
func momentOf(s slot, v any) (*tensor.Tensor, error) {
	t, ok := v.(*tensor.Tensor)
	if !ok || t == nil {
		return nil, fmt.Errorf("%w: got %T, want a tensor", ErrFormat, v)
	}
	if want := s.Param.T.Shape(); !slices.Equal(t.Shape(), want) {
		return nil, fmt.Errorf("%w: got %v, want %v as the parameter", ErrShape, t.Shape(), want)
	}
	switch t.DType() {
	case tensor.Float64, tensor.Float32, tensor.Float16, tensor.BFloat16:
		return t, nil
	}
	return nil, fmt.Errorf("%w: got %v, want floats", ErrDType, t.DType())
}

func wrapKey(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// restore copies the decoded states, one for each parameter, into the parameters' state. It
// shares the state again if it was shared.
func (c *core) restore(found []finding) error {
	states, start := c.options.stateCount()
	for i := range c.slots {
		if err := c.slots[i].restore(found[i], states, start, c.options.describeClass()); err != nil {
			return err
		}
	}
	if c.shared {
		return c.Share()
	}
	return nil
}

func (s *slot) restore(f finding, states int, start float64, c class) error {
	if s.Steps == nil && f.steps == 0 {
		return nil
	}
	for len(s.State) > states {
		last := len(s.State) - 1
		if err := s.State[last].Close(); err != nil {
			return err
		}
		s.State = s.State[:last]
	}
	s.createState(states, start)
	for i, t := range s.State {
		if f.state[i] == nil {
			t.Fill(start)
			continue
		}
		if err := tensor.Catch(func() { t.CopyFrom(f.state[i]) }); err != nil {
			return err
		}
	}
	for _, m := range c.moments {
		if m.used && m.signed && c.maximize {
			s.State[m.at].NegInPlace()
		}
	}
	atomic.StoreInt64(&tensor.Data[int64](s.Steps)[0], f.steps)
	return nil
}

// state returns the entry of a parameter in PyTorch's state dict, or nil if it has none. The
// tensors belong to the optimizer, except for the step count and for copies with the opposite
// sign.
func (m member) state(s *slot) map[string]any {
	if s.stepCount() == 0 && !m.always {
		return nil
	}
	s.createState(m.options.stateCount())
	d := map[string]any{}
	if m.counts {
		d["step"] = stepTensor(s.stepCount())
	}
	for _, x := range m.moments {
		switch {
		case !x.used:
		case x.signed && m.maximize:
			d[x.key] = s.State[x.at].Clone().NegInPlace()
		default:
			d[x.key] = s.State[x.at]
		}
	}
	if len(d) == 0 {
		return nil
	}
	return d
}

func (s *slot) stepCount() int64 {
	if s.Steps == nil {
		return 0
	}
	return atomic.LoadInt64(&tensor.Data[int64](s.Steps)[0])
}

// stepTensor returns a number of steps as float32, like PyTorch, or as float64 if float32 cannot
// represent it exactly.
func stepTensor(steps int64) *tensor.Tensor {
	if steps > 1<<24 {
		return tensor.Scalar(tensor.Float64, float64(steps))
	}
	return tensor.Scalar(tensor.Float32, float64(steps))
}
