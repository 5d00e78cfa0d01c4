package optim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// StateDict is PyTorch's optimizer.state_dict(). pt.Save and a torch.Conn encode it in the form
// that load_state_dict accepts. Use torch.As to read one from a checkpoint.
//
//	pt.Save("ck.pt", map[string]any{"model": nn.State(net), "optimizer": optim.State(opt)})
//
// Parameters are numbered in the order of the groups.
type StateDict struct {
	// State maps the number of each parameter that has taken a step to its state.
	State map[int]map[string]any `torch:"state"`
	// ParamGroups holds the options of each group and, under "params", the numbers of its
	// parameters.
	ParamGroups []map[string]any `torch:"param_groups"`
}

// State returns the state of an optimizer of this package, or of Groups of them, in the form of
// PyTorch's optimizer of the same class. The tensors are not copied and change with later steps;
// the caller must Clone a tensor that should not. With Maximize, tensors with the opposite sign
// in PyTorch are copies. State panics with an error that wraps [tensor.ErrMisuse] if o is of
// another package, or if the number of schedules is neither 0 nor the number of groups.
//
// PyTorch's schedulers read their initial learning rates from the groups of the state. To write
// these rates, pass a schedule for each group: see [ScheduleState].
func State(o Optimizer, schedules ...Schedule) StateDict {
	members := membersOf(o)
	if len(schedules) > 0 && len(schedules) != len(members) {
		misuse("State: %d groups: got %d schedules, want one for each or none", len(members), len(schedules))
	}
	d, first := StateDict{State: map[int]map[string]any{}}, 0
	for i, m := range members {
		group, numbers := encodeSettings(m.settings), make([]int, 0, len(m.slots))
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

// Load sets an optimizer, or Groups of them, to the state in a state dict. state must be a
// StateDict, or the value that pt.Load or Recv of a torch.Conn returns for optimizer.state_dict().
// As in PyTorch, the options (LR, Momentum and so on, except Atomic) are loaded with the state,
// parameters are matched only by their order, and floats are converted to the parameter's dtype.
// Load copies the tensors.
//
// The error wraps [ErrFormat], [ErrClass], [ErrGroups], [ErrMissing], [ErrUnexpected], [ErrShape]
// or [ErrDType] for each mismatch; o is then unchanged. If the error wraps shm.ErrNoSpace, o may
// have parts of the new state. A state dict written by an older version of PyTorch does not
// distinguish Adam and AdamW, so Load accepts it for both. Load panics with an error that wraps
// [tensor.ErrMisuse] if o is of another package.
func Load(o Optimizer, state any) error {
	d, err := stateDictOf(state)
	if err != nil {
		return err
	}
	members := membersOf(o)
	if len(d.ParamGroups) != len(members) {
		return fmt.Errorf("load state dict: got %d groups, want %d: %w", len(d.ParamGroups), len(members), ErrGroups)
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
	if problems == nil { // after an error they may belong to a group that was skipped
		for _, n := range slices.Sorted(maps.Keys(left)) {
			problems = append(problems, fmt.Errorf("state of parameter %d, which belongs to no group: %w",
				n, ErrUnexpected))
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
