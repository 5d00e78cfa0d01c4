package optim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
)

// ScheduleState returns the schedules of an optimizer's groups as the state_dict of PyTorch's
// scheduler after epoch steps, for its load_state_dict. The schedules must differ only in their
// rates. PyTorch derives most rates from the previous rate, so the optimizer's [State] should be
// loaded there too, and State should be given the schedules.
//
//	pt.Save("ck.pt", map[string]any{"optimizer": optim.State(opt, s), "scheduler": optim.ScheduleState(epoch, s)})
//
// The function of a LambdaLR is omitted, as in PyTorch. ScheduleState panics with an error that
// wraps [tensor.ErrMisuse] if there are no schedules, if epoch is negative, if the schedules
// differ in more than their rates, or if PyTorch cannot express a schedule: a CyclicLR with both
// Halve and Gamma.
func ScheduleState(epoch int, schedules ...Schedule) map[string]any {
	if len(schedules) == 0 || epoch < 0 {
		misuse("ScheduleState: got %d schedules and epoch %d, want at least 1 schedule and an epoch of at least 0",
			len(schedules), epoch)
	}
	d := encodeSettings(scheduledOf(schedules[0]).optionSettings(epoch))
	for _, s := range schedules[1:] {
		own := encodeSettings(scheduledOf(s).optionSettings(epoch))
		if reflect.TypeOf(s) != reflect.TypeOf(schedules[0]) || !reflect.DeepEqual(own, d) {
			misuse("ScheduleState: %T with %v and %T with %v: schedules of groups may differ only in their rates",
				schedules[0], d, s, own)
		}
	}
	for _, l := range scheduledOf(schedules[0]).rateSettings() {
		d[l.key] = mapSchedules(schedules, func(s Schedule) any {
			return encodeSettings(scheduledOf(s).rateSettings())[l.key]
		})
	}
	d["_last_lr"] = mapSchedules(schedules, func(s Schedule) any { return s.rate(epoch) })
	d["last_epoch"] = epoch
	if seq, ok := schedules[0].(SequentialLR); ok {
		d["_schedulers"] = seq.scheduleStates(epoch, schedules)
		return d
	}
	d["_step_count"], d["_get_lr_called_within_step"], d["verbose"], d["_is_initial"] = epoch+1, false, false, false
	return d
}

func mapSchedules(schedules []Schedule, f func(s Schedule) any) []any {
	list := make([]any, len(schedules))
	for i, s := range schedules {
		list[i] = f(s)
	}
	return list
}

// LoadSchedule returns the schedules of an optimizer's groups, one for each, and their epoch,
// from a result of ScheduleState or scheduler.state_dict(). like must have the class of the
// schedules, and everything that a state dict lacks: the function of a LambdaLR, the parts of a
// SequentialLR, and the DivFactor, FinalDivFactor and momentum bounds of a OneCycleLR.
//
//	schedules, epoch, err := optim.LoadSchedule(optim.StepLR{}, state)
//
// The error wraps [ErrFormat], [ErrMissing], [ErrUnexpected] or [ErrGroups] for each mismatch.
// LoadSchedule panics with an error that wraps [tensor.ErrMisuse] if like is of another package.
func LoadSchedule[S Schedule](like S, state any) (schedules []S, epoch int, err error) {
	loaded, epoch, err := loadSchedule(like, state, 0)
	for _, s := range loaded {
		schedules = append(schedules, s.(S))
	}
	return schedules, epoch, err
}

// kept are the keys that LoadSchedule accepts and does not decode as settings.
var kept = []string{"_last_lr", "_step_count", "_get_lr_called_within_step", "verbose", "_is_initial", "last_epoch",
	"_schedulers", "anneal_func", "use_beta1", "_scale_fn_ref"}

func loadSchedule(like Schedule, state any, least int) (schedules []Schedule, epoch int, err error) {
	d, ok := dictOf(state)
	if !ok {
		return nil, 0, fmt.Errorf("%w: got %T, want a dict", ErrFormat, state)
	}
	var problems []error
	n, err := groupsOf(scheduledOf(like), d)
	if err == nil {
		err = wrapKey("last_epoch", boundedSetting("", &epoch, least).set(d["last_epoch"]))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%T: %w", like, err)
	}
	for i := range n {
		s := scheduledOf(like)
		if c, ok := s.(*CyclicLR); ok { // determines the lists that rateSettings returns
			c.CycleMomentum = d["cycle_momentum"] == true
		}
		problems = append(problems,
			wrapKey(fmt.Sprintf("%T, group %d", like, i), errors.Join(readSchedule(s, d, i)...)))
		schedules = append(schedules, reflect.ValueOf(s).Elem().Interface().(Schedule))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, 0, err
	}
	if seq, ok := like.(SequentialLR); ok {
		err = seq.load(d["_schedulers"], schedules)
	}
	return schedules, epoch, err
}

// groupsOf returns the number of groups in the state of a schedule. The error wraps [ErrFormat]
// if there is no list of rates.
func groupsOf(s scheduled, d map[string]any) (int, error) {
	key := "_last_lr"
	if rates := s.rateSettings(); len(rates) > 0 {
		key = rates[0].key
	}
	list, ok := listOf(d[key])
	if !ok || len(list) == 0 {
		return 0, fmt.Errorf("%s: %w: want a list of the groups' rates", key, ErrFormat)
	}
	return len(list), nil
}

// readSchedule decodes the entries of group i in d into s. It returns an error that wraps
// [ErrFormat], [ErrMissing] or [ErrUnexpected] for each invalid entry.
func readSchedule(s scheduled, d map[string]any, i int) []error {
	own := maps.Clone(d)
	for _, l := range s.rateSettings() {
		list, ok := listOf(d[l.key])
		if !ok || i >= len(list) {
			return []error{fmt.Errorf("%s: %w: want a rate for each group", l.key, ErrFormat)}
		}
		own[l.key] = list[i]
	}
	return decodeSettings(append(s.optionSettings(0), s.rateSettings()...), own, kept...)
}

// scheduled is a pointer to a schedule that has a state dict in PyTorch.
type scheduled interface {
	Schedule
	optionSettings(epoch int) []setting // the entries that all groups share
	rateSettings() []setting            // the entries that are lists over the groups, the initial rate first
}

// scheduledOf returns a pointer to a copy of s. It panics with [tensor.ErrMisuse] if s has no
// state dict.
func scheduledOf(s Schedule) scheduled {
	if s != nil {
		v := reflect.New(reflect.TypeOf(s))
		v.Elem().Set(reflect.ValueOf(s))
		if p, ok := v.Interface().(scheduled); ok {
			return p
		}
	}
	misuse("%T has no state dict: want a schedule of this package", s)
	return nil
}

// ratesOf returns the entries that PyTorch's scheduler stores in an optimizer's group, such as
// initial_lr.
func ratesOf(s Schedule) map[string]any {
	switch s := s.(type) {
	case OneCycleLR:
		d := map[string]any{"initial_lr": s.initialRate(), "max_lr": s.MaxLR, "min_lr": s.finalRate()}
		if s.CycleMomentum {
			d["base_momentum"], d["max_momentum"] = valueOr(s.BaseMomentum, 0.85), valueOr(s.MaxMomentum, 0.95)
		}
		return d
	case CyclicLR:
		d := map[string]any{"initial_lr": s.LR}
		if s.CycleMomentum {
			d["base_momentum"], d["max_momentum"] = valueOr(s.BaseMomentum, 0.8), valueOr(s.MaxMomentum, 0.9)
		}
		return d
	case SequentialLR:
		return ratesOf(s.Schedules[0])
	}
	return map[string]any{"initial_lr": scheduledOf(s).rateSettings()[0].get()}
}

func (s *StepLR) rateSettings() []setting        { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *MultiStepLR) rateSettings() []setting   { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *ExponentialLR) rateSettings() []setting { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *ConstantLR) rateSettings() []setting    { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *LinearLR) rateSettings() []setting      { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *PolynomialLR) rateSettings() []setting  { return []setting{numberSetting("base_lrs", &s.LR)} }
func (s *CosineAnnealing) rateSettings() []setting {
	return []setting{numberSetting("base_lrs", &s.LR)}
}
func (s *SequentialLR) rateSettings() []setting { return nil }
func (s *CosineAnnealingWarmRestarts) rateSettings() []setting {
	return []setting{numberSetting("base_lrs", &s.LR)}
}

func (s *LambdaLR) rateSettings() []setting {
	return []setting{numberSetting("base_lrs", &s.LR), fixedSetting("lr_lambdas", nil)}
}

func (s *CyclicLR) rateSettings() []setting {
	rates := []setting{numberSetting("base_lrs", &s.LR), numberSetting("max_lrs", &s.MaxLR)}
	if s.CycleMomentum {
		rates = append(rates, optionalSetting("base_momentums", &s.BaseMomentum, 0.8),
			optionalSetting("max_momentums", &s.MaxMomentum, 0.9))
	}
	return rates
}

func (s *OneCycleLR) rateSettings() []setting {
	return []setting{{"base_lrs", true, func() any { return s.initialRate() }, func(v any) error {
		var first float64
		err := setNumber(&first, v)
		s.MaxLR = first * cmp.Or(s.DivFactor, 25)
		return err
	}}}
}

func (s *StepLR) optionSettings(int) []setting {
	return []setting{boundedSetting("step_size", &s.Size, 1), numberSetting("gamma", &s.Gamma)}
}

func (s *ExponentialLR) optionSettings(int) []setting {
	return []setting{numberSetting("gamma", &s.Gamma)}
}

func (s *ConstantLR) optionSettings(int) []setting {
	return []setting{numberSetting("factor", &s.Factor), boundedSetting("total_iters", &s.Epochs, 1)}
}

func (s *LinearLR) optionSettings(int) []setting {
	return []setting{numberSetting("start_factor", &s.Start), numberSetting("end_factor", &s.End),
		boundedSetting("total_iters", &s.Epochs, 1)}
}

func (s *PolynomialLR) optionSettings(int) []setting {
	return []setting{boundedSetting("total_iters", &s.Epochs, 1), numberSetting("power", &s.Power)}
}

func (s *CosineAnnealing) optionSettings(int) []setting {
	return []setting{boundedSetting("T_max", &s.Epochs, 1), numberSetting("eta_min", &s.Min)}
}

func (s *LambdaLR) optionSettings(int) []setting { return nil }

// optionSettings returns the settings that all groups share. The milestones are encoded as
// PyTorch's Counter: a map from epoch to its multiplicity.
func (s *MultiStepLR) optionSettings(int) []setting {
	get := func() any {
		times := map[int]int{}
		for _, m := range s.Milestones {
			times[m]++
		}
		return times
	}
	return []setting{numberSetting("gamma", &s.Gamma), {"milestones", true, get, s.setMilestones}}
}

// maxMilestones bounds the number of milestones in a state dict, because the list holds one element
// for each time that an epoch is counted.
const maxMilestones = 1 << 16

func (s *MultiStepLR) setMilestones(v any) error {
	times, ok := pairsOf(v)
	if !ok {
		return fmt.Errorf("%w: got %T, want a Counter", ErrFormat, v)
	}
	s.Milestones = nil
	for k, n := range times {
		epoch, ok := wholeOf(k)
		count, also := wholeOf(n)
		if !ok || !also || count < 0 || len(s.Milestones)+count > maxMilestones {
			return fmt.Errorf("%w: epoch %v is listed %v times", ErrFormat, k, n)
		}
		s.Milestones = append(s.Milestones, slices.Repeat([]int{epoch}, count)...)
	}
	slices.Sort(s.Milestones)
	return nil
}

// optionSettings returns the settings that all groups share. As in PyTorch, they include T_cur and
// T_i: the position of the epoch in its cycle, from one restart to the next, and the length of that
// cycle.
func (s *CosineAnnealingWarmRestarts) optionSettings(epoch int) []setting {
	s.Mult = max(s.Mult, 1)
	return []setting{boundedSetting("T_0", &s.Epochs, 1), boundedSetting("T_mult", &s.Mult, 1),
		numberSetting("eta_min", &s.Min),
		{"T_cur", false, func() any { at, _ := s.wavePosition(epoch); return at }, nil},
		{"T_i", false, func() any { _, length := s.wavePosition(epoch); return length }, nil}}
}

func (s *OneCycleLR) optionSettings(int) []setting {
	kind := "cos"
	if s.Linear {
		kind = "linear"
	}
	return []setting{boundedSetting("total_steps", &s.Steps, 2), {"_schedule_phases", true, s.phaseDicts, s.setPhases},
		{"_anneal_func_type", false, func() any { return kind },
			func(v any) error { s.Linear = v == "linear"; return nil }},
		flagSetting("cycle_momentum", &s.CycleMomentum)}
}

func (s *OneCycleLR) phaseDicts() any {
	var list []map[string]any
	names := []string{"initial_lr", "max_lr", "min_lr"}
	if s.ThreePhase {
		names = []string{"initial_lr", "max_lr", "initial_lr", "min_lr"}
	}
	momentum := func(peak bool) string {
		if peak {
			return "base_momentum"
		}
		return "max_momentum"
	}
	for i, p := range s.phaseList() {
		list = append(list, map[string]any{"end_step": p.end, "start_lr": names[i], "end_lr": names[i+1],
			"start_momentum": momentum(p.falling), "end_momentum": momentum(p.rising)})
	}
	return list
}

func (s *OneCycleLR) setPhases(v any) error {
	phases, _ := listOf(v)
	if len(phases) != 2 && len(phases) != 3 {
		return fmt.Errorf("%w: got %d phases, want 2 or 3", ErrFormat, len(phases))
	}
	first, _ := dictOf(phases[0])
	end, ok := numberOf(first["end_step"])
	if share := (end + 1) / float64(s.Steps); ok && share >= 0 && share <= 1 {
		s.ThreePhase, s.PctStart = len(phases) == 3, &share
		return nil
	}
	return fmt.Errorf("%w: the first phase ends at step %v of %d", ErrFormat, first["end_step"], s.Steps)
}

func (s *CyclicLR) optionSettings(int) []setting {
	down := s.Down
	if down == 0 {
		down = s.Up
	}
	gamma, mode, by := valueOr(s.Gamma, 1), "triangular", "cycle"
	switch {
	case s.Halve && gamma != 1:
		misuse("CyclicLR with Halve and Gamma %v has no state dict, because PyTorch has no such mode", gamma)
	case s.Halve:
		mode = "triangular2"
	case gamma != 1:
		mode, by = "exp_range", "iterations"
	}
	total, ratio := float64(s.Up+down), float64(s.Up)/float64(s.Up+down)
	return []setting{
		textSetting("mode", &mode, "triangular", "triangular2", "exp_range"), numberSetting("total_size", &total),
		numberSetting("step_ratio", &ratio),
		{"gamma", true, func() any { return gamma }, func(v any) error {
			s.Halve, s.Gamma = mode == "triangular2", nil
			if err := setNumber(&gamma, v); err != nil {
				return err
			}
			if mode == "exp_range" {
				s.Gamma = new(gamma)
			}
			return s.setSteps(total, ratio)
		}},
		fixedSetting("scale_mode", by), flagSetting("cycle_momentum", &s.CycleMomentum),
		{"_scale_fn_custom", false, func() any { return nil }, func(v any) error {
			if v != nil {
				return fmt.Errorf("%w: custom scale function", ErrUnexpected)
			}
			return nil
		}},
	}
}

func (s *CyclicLR) setSteps(total, ratio float64) error {
	up := math.Round(total * ratio)
	if !(up >= 1 && total-up >= 1 && total < 1<<53 && total == math.Trunc(total)) {
		return fmt.Errorf("%w: got a cycle of %v steps with %v ascending steps, want whole numbers with at least "+
			"1 ascending and 1 descending",
			ErrFormat, total, total*ratio)
	}
	s.Up, s.Down = int(up), int(total-up)
	return nil
}

func (s *SequentialLR) optionSettings(int) []setting {
	return []setting{{"_milestones", true, func() any { return s.Milestones }, func(v any) error {
		list, ok := numbersOf(v)
		if !ok || !slices.IsSorted(list) || len(list)+1 != len(s.Schedules) {
			return fmt.Errorf("%w: got milestones %v for %d schedules, want an ascending list with one fewer",
				ErrFormat, v,
				len(s.Schedules))
		}
		s.Milestones = list
		return nil
	}}}
}

// scheduleStates returns the state dicts of the parts at an epoch of the whole. The last_epoch of
// each part is its own last epoch, or -1 before it begins. schedules contains the SequentialLR of
// each group.
func (s SequentialLR) scheduleStates(epoch int, schedules []Schedule) []any {
	list := make([]any, len(s.Schedules))
	for k := range list {
		parts := make([]Schedule, len(schedules))
		for i, other := range schedules {
			parts[i] = other.(SequentialLR).Schedules[k]
		}
		begin, end := 0, epoch+1
		if k > 0 {
			begin = s.Milestones[k-1]
		}
		if k < len(s.Milestones) {
			end = min(end, s.Milestones[k])
		}
		at := max(end-1-begin, -1)
		state := ScheduleState(max(at, 0), parts...)
		state["last_epoch"] = at
		list[k] = state
	}
	return list
}

// load decodes the states of the parts into schedules, one for each group. The error wraps the
// errors of [LoadSchedule]; schedules may be partly changed then.
func (s SequentialLR) load(states any, schedules []Schedule) error {
	list, ok := listOf(states)
	if !ok || len(list) != len(s.Schedules) {
		return fmt.Errorf("_schedulers: %w: got %d, want %d", ErrFormat, len(list), len(s.Schedules))
	}
	parts := make([][]Schedule, len(list))
	for k, state := range list {
		loaded, _, err := loadSchedule(s.Schedules[k], state, -1)
		if err != nil {
			return fmt.Errorf("schedule %d: %w", k, err)
		}
		parts[k] = loaded
	}
	groups := len(parts[0])
	all := make([]Schedule, groups)
	for i := range all {
		seq := SequentialLR{Milestones: schedules[0].(SequentialLR).Milestones}
		for k := range parts {
			if len(parts[k]) != groups || groups != len(schedules) {
				return fmt.Errorf("_schedulers: %w: got %d and %d groups, want equal numbers",
					ErrGroups, groups, len(parts[k]))
			}
			seq.Schedules = append(seq.Schedules, parts[k][i])
		}
		schedules[i] = seq
	}
	return nil
}
