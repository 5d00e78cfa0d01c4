package optim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A StateDict is what optimizer.state_dict() of PyTorch returns, and load_state_dict takes:
// pt.Save and a torch.Conn write it as that, and torch.As reads it as a part of a
// checkpoint.
//
//	pt.Save("ck.pt", map[string]any{"model": nn.State(net), "optimizer": optim.State(opt)})
//
// Parameters have numbers, in the order in which the groups have them. [Load] says what the entries
// are.
type StateDict struct {
	State map[int]map[string]any `torch:"state"` // of the parameters that have taken a step
	// the options, and under "params" the numbers of the parameters
	ParamGroups []map[string]any `torch:"param_groups"`
}

// State returns the state of an optimizer of this package, or of Groups of them, as PyTorch's
// optimizer of that class has it. The tensors are o's own, but where PyTorch has them with the
// other sign (Maximize): Clone those that must stay as they are while o takes steps. It panics if o
// is of another package.
//
// PyTorch's schedulers look for their first rates in the groups. Give the schedule of each group,
// if it has one, so that they find them: see [ScheduleState].
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

// Load has an optimizer, or Groups of them, go on from a state dict: a StateDict, or what pt.Load
// or a torch.Conn's Recv returned of optimizer.state_dict(). As in PyTorch the options come with
// it (LR, Momentum and so on, but for Atomic), parameters are known by their order alone, and
// floats of one width become those of another. The tensors are copied.
//
// The error wraps ErrFormat, ErrClass, ErrGroups, ErrMissing, ErrUnexpected, ErrShape or ErrDType
// for each thing that does not fit, or shm.ErrNoSpace; but for the latter nothing was changed then.
// Whether a state is Adam's or AdamW's older versions of PyTorch do not say. It panics if o is of
// another package.
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
