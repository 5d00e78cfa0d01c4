package optim

import (
	"errors"
	"fmt"
	"math"
)

// ReduceLROnPlateau lowers a learning rate when a metric stops improving, like PyTorch's class of
// this name. A nil field selects PyTorch's default. The struct holds the complete state, so a
// program that resumes only has to store it.
//
//	plateau := &optim.ReduceLROnPlateau{LR: 0.1}
//	for range epochs {
//		train(sgd)
//		sgd.LR = plateau.Step(validate())
//	}
type ReduceLROnPlateau struct {
	LR        float64  // current learning rate
	Maximize  bool     // a larger metric is better
	Factor    *float64 // factor of LR at a reduction; must be less than 1; nil means 0.1
	Patience  *int     // number of epochs without improvement that are tolerated; nil means 10
	Threshold *float64 // relative improvement that counts; nil means 1e-4
	Absolute  bool     // Threshold is an absolute difference, instead of relative to the best
	Cooldown  int      // number of epochs after a reduction that are not counted
	MinLR     float64  // lower bound of the learning rate
	Eps       *float64 // skip reductions by at most Eps; nil means 1e-8

	Best float64 // best metric so far; infinite if all were NaN
	// Epochs is the number of metrics so far, Bad the number of latest epochs without improvement,
	// and Cooling the number of remaining cooldown epochs.
	Epochs, Bad, Cooling int
}

// Step records the metric of an epoch and returns the learning rate of the next epoch. It panics
// with an error that wraps [tensor.ErrMisuse] if Factor is not in [0, 1).
func (r *ReduceLROnPlateau) Step(measure float64) float64 {
	if f := valueOr(r.Factor, 0.1); !(f >= 0 && f < 1) {
		misuse("ReduceLROnPlateau: Factor %v: want at least 0 and less than 1", f)
	}
	if r.Epochs == 0 {
		r.Best = r.worstMetric()
	}
	r.Bad++
	if r.isImprovement(measure) {
		r.Best, r.Bad = measure, 0
	}
	r.Epochs++
	if r.Cooling > 0 {
		r.Cooling--
		r.Bad = 0
	}
	if r.Bad > valueOr(r.Patience, 10) {
		lower := max(r.LR*valueOr(r.Factor, 0.1), r.MinLR)
		if r.LR-lower > valueOr(r.Eps, 1e-8) {
			r.LR = lower
		}
		r.Cooling, r.Bad = r.Cooldown, 0
	}
	return r.LR
}

// isImprovement reports whether a metric improves on the best. NaN never does.
func (r *ReduceLROnPlateau) isImprovement(measure float64) bool {
	best, margin := r.Best, valueOr(r.Threshold, 1e-4)
	switch {
	case r.Maximize && r.Absolute:
		return measure > best+margin
	case r.Maximize:
		return measure > best*(1+margin)
	case r.Absolute:
		return measure < best-margin
	}
	return measure < best*(1-margin)
}

// State returns the state dict of PyTorch's ReduceLROnPlateau for an optimizer with one group,
// because r has a single learning rate.
func (r *ReduceLROnPlateau) State() map[string]any {
	d := encodeSettings(r.optionSettings())
	d["_last_lr"], d["min_lrs"], d["default_min_lr"], d["verbose"] = []any{r.LR}, []any{r.MinLR}, r.MinLR, false
	d["mode_worse"] = r.worstMetric()
	if r.Epochs == 0 {
		d["best"] = r.worstMetric()
	}
	return d
}

// Load sets r from a result of State or of PyTorch's scheduler.state_dict(). The error wraps
// [ErrFormat], [ErrMissing] or [ErrUnexpected] for each mismatch, or [ErrGroups] if the state has
// several groups. After an error r is unchanged.
func (r *ReduceLROnPlateau) Load(state any) error {
	d, ok := dictOf(state)
	if !ok {
		return fmt.Errorf("%w: got %T, want a dict", ErrFormat, state)
	}
	fresh := *r
	problems := decodeSettings(fresh.optionSettings(), d, "_last_lr", "min_lrs", "default_min_lr", "verbose",
		"mode_worse")
	for key, p := range map[string]*float64{"_last_lr": &fresh.LR, "min_lrs": &fresh.MinLR} {
		list, ok := listOf(d[key])
		switch {
		case key == "_last_lr" && d[key] == nil: // PyTorch has none before the first step
		case !ok:
			problems = append(problems, fmt.Errorf("%s: %w: want a list", key, ErrFormat))
		case len(list) != 1:
			problems = append(problems, fmt.Errorf("%s: %w: got %d groups, want 1", key,
				ErrGroups, len(list)))
		default:
			problems = append(problems, wrapKey(key, setNumber(p, list[0])))
		}
	}
	if f := valueOr(fresh.Factor, 0.1); !(f >= 0 && f < 1) {
		problems = append(problems, fmt.Errorf("factor: %w: got %v, want at least 0 and less than 1", ErrFormat, f))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	*r = fresh
	return nil
}

func (r *ReduceLROnPlateau) optionSettings() []setting {
	mode, by := "min", "rel"
	if r.Maximize {
		mode = "max"
	}
	if r.Absolute {
		by = "abs"
	}
	word := func(key string, p *string, on *bool, off, yes string) setting {
		s := textSetting(key, p, off, yes)
		set := s.set
		s.set = func(v any) error { err := set(v); *on = *p == yes; return err }
		return s
	}
	return []setting{
		word("mode", &mode, &r.Maximize, "min", "max"), word("threshold_mode", &by, &r.Absolute, "rel", "abs"),
		optionalSetting("factor", &r.Factor, 0.1), optionalIntSetting("patience", &r.Patience, 10),
		optionalSetting("threshold", &r.Threshold, 1e-4), optionalSetting("eps", &r.Eps, 1e-8),
		intSetting("cooldown", &r.Cooldown), intSetting("cooldown_counter", &r.Cooling),
		intSetting("num_bad_epochs", &r.Bad), boundedSetting("last_epoch", &r.Epochs, 0),
		numberSetting("best", &r.Best),
	}
}

func (r *ReduceLROnPlateau) worstMetric() float64 {
	if r.Maximize {
		return math.Inf(-1)
	}
	return math.Inf(1)
}
