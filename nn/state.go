package nn

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// State returns m's parameters and buffers under the names of PyTorch's state_dict. They are m's
// own tensors: do not close them, and Clone a tensor that must not change with m.
func State(m Module) map[string]*tensor.Tensor {
	state := map[string]*tensor.Tensor{}
	for name, p := range Named(m) {
		state[name] = p.T
	}
	maps.Insert(state, Buffers(m))
	return state
}

// Load copies the tensors of state into m's parameters and buffers, also for processes that share
// them. Names, shapes and dtypes must be those of [State]. The error wraps ErrMissing,
// ErrUnexpected, ErrShape or ErrDType for each difference, tensor.ErrClosed where m or state was
// closed, and then m is unchanged.
func Load(m Module, state map[string]*tensor.Tensor) error {
	own := State(m)
	if err := matches(own, state, sameDType); err != nil {
		return err
	}
	for name, t := range own {
		t.CopyFrom(state[name])
	}
	return nil
}

// checkOpen returns an error for tensors that are nil or closed.
func checkOpen(state map[string]*tensor.Tensor) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if err := foreignTensors.Check(state[name]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

func sameDType(own, t tensor.DType) bool { return own == t }

// matches reports how a state is not one of a module that has the tensors of own, given which
// dtypes go together.
func matches(own, state map[string]*tensor.Tensor, same func(own, t tensor.DType) bool) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		problems = append(problems, fits(name, own[name], state[name], same))
	}
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if _, ok := own[name]; !ok {
			problems = append(problems, fmt.Errorf("load %s: %w", name, ErrUnexpected))
		}
	}
	return errors.Join(problems...)
}

func fits(name string, own, t *tensor.Tensor, same func(own, t tensor.DType) bool) error {
	switch {
	case t == nil:
		return fmt.Errorf("load %s: %w", name, ErrMissing)
	case foreignTensors.Check(own) != nil:
		return fmt.Errorf("load into %s: %w", name, foreignTensors.Check(own))
	case foreignTensors.Check(t) != nil:
		return fmt.Errorf("load %s: %w", name, foreignTensors.Check(t))
	case !slices.Equal(t.Shape(), own.Shape()):
		return fmt.Errorf("load %s of shape %v into %v: %w", name, t.Shape(), own.Shape(), ErrShape)
	case !same(own.DType(), t.DType()):
		return fmt.Errorf("load %s of %v into %v, convert it with To: %w", name, t.DType(), own.DType(), ErrDType)
	}
	return nil
}

// Share moves the parameters and buffers of m to shared memory. Sending m does this as well; Share
// tells before whether there is room. The error wraps shm.ErrNoSpace if the domain is full, and
// tensor.ErrClosed if m was closed. The caller closes m by Close.
func Share(m Module) error {
	for name, p := range Named(m) {
		if err := p.Share(); err != nil {
			return fmt.Errorf("share %s: %w", name, err)
		}
	}
	for name, t := range Buffers(m) {
		if err := t.Share(); err != nil {
			return fmt.Errorf("share %s: %w", name, err)
		}
	}
	return nil
}

// To moves the parameters of m with their gradients, and its buffers, to a device, or to the host
// if dev is nil, as PyTorch's Module.to does. The pointers to Params and tensors stay the same, so
// an optimizer keeps its parameters. Its state does not move: make the optimizer after To. The
// error is the device's, or wraps tensor.ErrClosed if m was closed, and then m has not moved.
func To(m Module, dev tensor.Device) error {
	var own, moved []*tensor.Tensor
	move := func(name string, t *tensor.Tensor) error {
		if t == nil {
			return nil
		}
		if err := foreignTensors.Check(t); err != nil {
			return fmt.Errorf("move %s: %w", name, err)
		}
		there, err := t.ToDevice(dev)
		if err != nil {
			return fmt.Errorf("move %s: %w", name, err)
		}
		own, moved = append(own, t), append(moved, there)
		return nil
	}
	var err error
	for name, p := range Named(m) {
		err = errors.Join(err, move(name, p.T), move(name, p.Grad))
	}
	for name, t := range Buffers(m) {
		err = errors.Join(err, move(name, t))
	}
	for i, t := range moved {
		if err == nil {
			own[i].Set(t)
		}
		err = errors.Join(err, t.Close())
	}
	return err
}

// Close closes the parameters and buffers of m in this process. A process that received m calls it
// as well. It is idempotent.
func Close(m Module) error {
	var problems []error
	for _, p := range named(m) {
		problems = append(problems, p.Close())
	}
	for _, t := range Buffers(m) {
		problems = append(problems, t.Close())
	}
	return errors.Join(problems...)
}
