package nn

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// State returns the parameters and buffers of m under the names of PyTorch's state_dict. The
// tensors are not copied: the caller must not close them, and must Clone a tensor that should not
// change with m.
func State(m Module) map[string]*tensor.Tensor {
	state := map[string]*tensor.Tensor{}
	for name, p := range Named(m) {
		state[name] = p.T
	}
	maps.Insert(state, Buffers(m))
	return state
}

// Load copies the tensors of state into the parameters and buffers of m, also for processes that
// share them. Names, shapes and dtypes must match [State]. For each mismatch the error wraps
// [ErrMissing], [ErrUnexpected], [ErrShape] or [ErrDType], or [tensor.ErrClosed] if a tensor of m
// or state is closed; m is then unchanged.
func Load(m Module, state map[string]*tensor.Tensor) error {
	own := State(m)
	if err := compareStates(own, state, sameDType); err != nil {
		return err
	}
	for name, t := range own {
		t.CopyFrom(state[name])
	}
	return nil
}

// checkOpen returns an error that wraps [tensor.ErrClosed] for each tensor that is nil or closed,
// or nil if there is none.
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

// compareStates returns an error that wraps [ErrMissing], [ErrUnexpected], [ErrShape], [ErrDType]
// or [tensor.ErrClosed] for each difference between state and own, the tensors of a module, or
// nil if there is none. same reports whether two dtypes are compatible.
func compareStates(own, state map[string]*tensor.Tensor, same func(own, t tensor.DType) bool) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		problems = append(problems, compareTensors(name, own[name], state[name], same))
	}
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if _, ok := own[name]; !ok {
			problems = append(problems, fmt.Errorf("load %s: %w", name, ErrUnexpected))
		}
	}
	return errors.Join(problems...)
}

func compareTensors(name string, own, t *tensor.Tensor, same func(own, t tensor.DType) bool) error {
	switch {
	case t == nil:
		return fmt.Errorf("load %s: %w", name, ErrMissing)
	case foreignTensors.Check(own) != nil:
		return fmt.Errorf("load into %s: %w", name, foreignTensors.Check(own))
	case foreignTensors.Check(t) != nil:
		return fmt.Errorf("load %s: %w", name, foreignTensors.Check(t))
	case !slices.Equal(t.Shape(), own.Shape()):
		return fmt.Errorf("load %s: got shape %v, want %v: %w", name, t.Shape(), own.Shape(), ErrShape)
	case !same(own.DType(), t.DType()):
		return fmt.Errorf("load %s: got dtype %v, want %v: convert it with To: %w",
			name, t.DType(), own.DType(), ErrDType)
	}
	return nil
}

// Share moves the parameters and buffers of m to shared memory. Sending m does this too, but Share
// reports beforehand if there is not enough space. The error wraps shm.ErrNoSpace if the domain
// is full, and [tensor.ErrClosed] if m is closed. After shm.ErrNoSpace m may be partly shared, but
// is still usable. The caller must close m by [Close].
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

// To moves the parameters of m, their gradients, and its buffers to a device, or to the host if dev
// is nil, like PyTorch's Module.to. The pointers to Params and tensors stay the same, so an
// optimizer keeps its parameters. The state of an optimizer is not moved, so the optimizer should
// be created after To. The error is the device's, or wraps [tensor.ErrClosed] if m is closed; m is
// then not moved.
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

// Close closes the parameters of m, their gradients, and the buffers of m in this process. A
// process that received m must call it too. Close is idempotent.
func Close(m Module) error {
	var problems []error
	for _, p := range iterateParams(m) {
		problems = append(problems, p.Close())
	}
	for _, t := range Buffers(m) {
		problems = append(problems, t.Close())
	}
	return errors.Join(problems...)
}
