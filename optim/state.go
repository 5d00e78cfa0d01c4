package optim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A StateDict is PyTorch's optimizer.state_dict(). pt.Save and a torch.Conn write it so that
// load_state_dict takes it, and torch.As reads one out of a checkpoint.
//
//	pt.Save("ck.pt", map[string]any{"model": nn.State(net), "optimizer": optim.State(opt)})
//
// Parameters are numbered in the order of the groups.
type StateDict struct {
	// the state of each parameter that has taken a step, by its number
	State map[int]map[string]any `torch:"state"`
	// the options of each group, and under "params" the numbers of its parameters
	ParamGroups []map[string]any `torch:"param_groups"`
}

// State returns the state of an optimizer of this package, or of Groups of them, as PyTorch's
// optimizer of this class has it. The tensors are o's own and change with its steps: Clone those
// that must not. With Maximize, tensors that PyTorch has with the other sign are copies. State
// panics if o is of another package.
//
// PyTorch's schedulers take their first learning rates from the groups of the state. Give State a
// schedule for each group to write these rates: see [ScheduleState].
func State(o Optimizer, schedules ...Schedule) StateDict {
	members := membersOf(o)
	if len(schedules) > 0 && len(schedules) != len(members) {
		misuse("State of %d groups with %d schedules: one for each, or none", len(members), len(schedules))
	}
	d, first := StateDict{State: map[int]map[string]any{}}, 0
	for i, m := range members {
		group, numbers := write(m.settings), make([]int, 0, len(m.slots))
		for j := range m.slots {
			number := first + j
			if state := m.state(&m.slots[j]); state != nil {
				d.State[number] = state
			}
			numbers = append(numbers, number)
		}
		first += len(m.slots)
		group["params"] = numbers
		if len(schedules) > 0 {
			maps.Copy(group, ratesOf(schedules[i]))
		}
		d.ParamGroups = append(d.ParamGroups, group)
	}
	return d
}

// Load sets an optimizer, or Groups of them, to the state in a state dict: a StateDict, or the
// value that pt.Load or Recv of a torch.Conn returns for optimizer.state_dict(). As in PyTorch, the
// options come with the state (LR, Momentum and so on, except Atomic), parameters are matched by
// their order alone, and floats are converted to the parameter's dtype. Load copies the tensors.
//
// The error wraps ErrFormat, ErrClass, ErrGroups, ErrMissing, ErrUnexpected, ErrShape or ErrDType
// for each fault, and o is unchanged. If the error wraps shm.ErrNoSpace, o may have parts of the
// new state. A state dict of older versions of PyTorch does not say whether it is Adam's or
// AdamW's, and so Load takes either. Load panics if o is of another package.
func Load(o Optimizer, state any) error {
	d, err := stateDictOf(state)
	if err != nil {
		return err
	}
	members := membersOf(o)
	if len(d.ParamGroups) != len(members) {
		return fmt.Errorf("load a state dict of %d groups into %d: %w", len(d.ParamGroups), len(members), ErrGroups)
	}
	var problems []error
	var commits []func() error
	left := maps.Clone(d.State)
	for i, m := range members {
		commit, err := m.load(d.ParamGroups[i], left)
		if err != nil {
			problems = append(problems, fmt.Errorf("group %d: %w", i, err))
		}
		commits = append(commits, commit)
	}
	if problems == nil { // otherwise it is not known whose those are that are left
		for _, n := range slices.Sorted(maps.Keys(left)) {
			problems = append(problems, fmt.Errorf("state of parameter %d, which no group has: %w", n, ErrUnexpected))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for _, commit := range commits {
		problems = append(problems, commit())
	}
	return errors.Join(problems...)
}
