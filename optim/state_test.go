package optim_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// one is a parameter with a gradient, as params of an optimizer.
func one(seed int) (*autograd.Param, func(yield func(*autograd.Param) bool)) {
	p := autograd.NewParam("p", values(seed, 4))
	p.Grad = values(seed+1, 4)
	return p, slices.Values([]*autograd.Param{p})
}

// optimizers are one of each kind, with all its state.
func optimizers(seed int) (all []optim.Optimizer, params []*autograd.Param) {
	for k := range 5 {
		p, seq := one(seed)
		params = append(params, p)
		all = append(all, []func() optim.Optimizer{
			func() optim.Optimizer {
				return optim.NewSGD(seq, optim.SGDOptions{LR: 0.1, Momentum: 0.9, Maximize: true})
			},
			func() optim.Optimizer {
				return optim.NewAdam(seq, optim.AdamOptions{LR: 0.1, Betas: &[2]float64{0, 0.999},
					AMSGrad: true, Maximize: true})
			},
			func() optim.Optimizer { return optim.NewAdamW(seq, optim.AdamOptions{LR: 0.1, WeightDecay: 0.1}) },
			func() optim.Optimizer {
				return optim.NewRMSprop(seq, optim.RMSpropOptions{LR: 0.1, Momentum: 0.5, Centered: true,
					Maximize: true})
			},
			func() optim.Optimizer {
				return optim.NewAdagrad(seq, optim.AdagradOptions{LR: 0.1, LRDecay: 0.1, InitialAccumulator: 0.5})
			},
		}[k]())
	}
	return all, params
}

// Whatever way a state dict takes, an optimizer goes on from it as the one does that it is of.
func TestRegression_S3_4_AnOptimizerGoesOnFromItsStateDict(t *testing.T) {
	for name, way := range map[string]func(d optim.StateDict) any{
		"itself": func(d optim.StateDict) any { return d },
		"a file": func(d optim.StateDict) any {
			path := filepath.Join(t.TempDir(), "opt.pt")
			testutil.NoError(t, pt.Save(path, d))
			v, err := pt.Load(path, pt.Options{Mmap: true})
			testutil.NoError(t, err)
			return v
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, params := optimizers(1)
			second, others := optimizers(50)
			for i := range first {
				first[i].Step()
				first[i].Step()
				state := way(optim.State(first[i]))
				testutil.NoError(t, optim.Load(second[i], state))
				others[i].T.CopyFrom(params[i].T)
				others[i].Grad = params[i].Grad.Clone()
				first[i].Step()
				second[i].Step()
				if !tensor.Equal(params[i].T, others[i].T) {
					t.Errorf("%T goes on with %v, not %v", first[i], others[i].T, params[i].T)
				}
			}
		})
	}
}

// A state dict without states is that of an optimizer that has not begun, and so begins the one
// that loads it.
func TestLoad_ForgetsWhatWas(t *testing.T) {
	fresh, params := optimizers(1)
	worn, others := optimizers(1)
	for i := range worn {
		state := optim.State(fresh[i])
		for range 3 {
			worn[i].Step()
		}
		testutil.NoError(t, optim.Load(worn[i], state))
		others[i].T.CopyFrom(params[i].T)
		fresh[i].Step()
		worn[i].Step()
		if !tensor.Equal(params[i].T, others[i].T) {
			t.Errorf("%T begins with %v, not %v", worn[i], others[i].T, params[i].T)
		}
	}
}

// Shared state stays where it is: those who have it go on with what was loaded.
func TestLoad_KeepsTheStateShared(t *testing.T) {
	inDomain(t)
	p, seq := one(1)
	adam := optim.NewAdam(seq, optim.AdamOptions{LR: 0.1})
	testutil.NoError(t, adam.Share())
	adam.Step()
	state := optim.State(adam)
	mean := state.State[0]["exp_avg"].(*tensor.Tensor)
	saved := map[string]any{}
	for key, v := range state.State[0] {
		saved[key] = v.(*tensor.Tensor).Clone()
	}
	adam.Step()
	testutil.NoError(t, optim.Load(adam, optim.StateDict{State: map[int]map[string]any{0: saved},
		ParamGroups: state.ParamGroups}))
	if now := optim.State(adam).State[0]["exp_avg"].(*tensor.Tensor); !mean.IsShared() || now != mean ||
		!tensor.Equal(mean, saved["exp_avg"].(*tensor.Tensor)) {
		t.Errorf("the mean is %v, shared %v", mean, mean.IsShared())
	}
	if got := optim.StepsOf(adam); !slices.Equal(got, []int64{1}) {
		t.Errorf("%v steps", got)
	}
	testutil.NoError(t, adam.Close())
	testutil.NoError(t, p.T.Close())
}

// edited returns the state dict of an Adam with one step, changed.
func edited(edit func(d *optim.StateDict)) optim.StateDict {
	_, seq := one(1)
	adam := optim.NewAdam(seq, optim.AdamOptions{LR: 0.1})
	adam.Step()
	d := optim.State(adam)
	edit(&d)
	return d
}

// Older versions of PyTorch do not write each flag, which is then False.
func TestLoad_MissingFlagsAreFalse(t *testing.T) {
	_, seq := one(1)
	o := optim.NewAdam(seq, optim.AdamOptions{LR: 0.5, Maximize: true})
	old := edited(func(d *optim.StateDict) { delete(d.ParamGroups[0], "maximize") })
	testutil.NoError(t, optim.Load(o, old))
	if v := optim.State(o).ParamGroups[0]["maximize"]; v != false {
		t.Errorf("maximize is %v, want false", v)
	}
}

func TestLoad_RefusesWhatDoesNotFit(t *testing.T) {
	adam := func() optim.Optimizer { _, seq := one(1); return optim.NewAdam(seq, optim.AdamOptions{LR: 0.5}) }
	sgd := func() optim.Optimizer { _, seq := one(1); return optim.NewSGD(seq, optim.SGDOptions{LR: 0.5}) }
	adamW := func() optim.Optimizer { _, seq := one(1); return optim.NewAdamW(seq, optim.AdamOptions{LR: 0.5}) }
	set := func(key string, v any) func(d *optim.StateDict) {
		return func(d *optim.StateDict) { d.State[0][key] = v }
	}
	option := func(key string, v any) func(d *optim.StateDict) {
		return func(d *optim.StateDict) { d.ParamGroups[0][key] = v }
	}
	for name, c := range map[string]struct {
		into  func() optim.Optimizer
		state any
		err   error
		says  string
	}{
		"another class": {sgd, edited(func(*optim.StateDict) {}), optim.ErrClass, "Adam or AdamW into SGD"},
		"AdamW":         {adamW, edited(func(*optim.StateDict) {}), optim.ErrClass, "decoupled_weight_decay"},
		"a class of PyTorch's": {sgd, edited(
			func(d *optim.StateDict) { d.ParamGroups[0] = map[string]any{"rho": 0.9} }), optim.ErrClass, "Adadelta"},
		"a tensor": {adam, values(1, 2), optim.ErrFormat, "*tensor.Tensor"},
		"nothing":  {adam, nil, optim.ErrFormat, "nil"},
		"a checkpoint": {adam, pickle.NewDict("model", nil, "optimizer", nil), optim.ErrFormat,
			`"model" "optimizer"`},
		"a list as a group": {adam, pickle.NewDict("state", new(pickle.Dict), "param_groups",
			[]any{[]any{}}), optim.ErrFormat, "group 0"},
		"a state by name": {adam, pickle.NewDict("state", pickle.NewDict("x", new(pickle.Dict)),
			"param_groups", []any{}), optim.ErrFormat, "parameter x"},
		"two groups": {adam, edited(
			func(d *optim.StateDict) { d.ParamGroups = append(d.ParamGroups, d.ParamGroups[0]) }),
			optim.ErrGroups, "got 2 groups, want 1"},
		"two parameters": {adam, edited(option("params", []any{int64(0), int64(1)})), optim.ErrGroups,
			"got 2 parameters, want 1"},
		"no parameters":     {adam, edited(option("params", "all")), optim.ErrFormat, "params"},
		"a parameter twice": {adam, edited(option("params", []int{0, 0})), optim.ErrFormat, "repeated"},
		"a state of nobody's": {adam, edited(func(d *optim.StateDict) { d.State[7] = d.State[0] }),
			optim.ErrUnexpected, "parameter 7"},
		"a shape": {adam, edited(set("exp_avg", values(1, 3))), optim.ErrShape,
			"parameter 0 (p): exp_avg"},
		"a dtype": {adam, edited(set("exp_avg_sq", values(1, 4).To(tensor.Int64))),
			optim.ErrDType, "exp_avg_sq"},
		"no tensor": {adam, edited(set("exp_avg", 3.0)), optim.ErrFormat, "got float64, want a tensor"},
		"a key of the state": {adam, edited(set("momentum_buffer", values(1, 4))), optim.ErrUnexpected,
			"momentum_buffer"},
		"no second moment": {adam, edited(func(d *optim.StateDict) { delete(d.State[0], "exp_avg_sq") }),
			optim.ErrMissing, "exp_avg_sq"},
		"no maximum": {adam, edited(option("amsgrad", true)), optim.ErrMissing, "max_exp_avg_sq"},
		"no steps": {adam, edited(func(d *optim.StateDict) { delete(d.State[0], "step") }),
			optim.ErrMissing, "step"},
		"half a step":  {adam, edited(set("step", 0.5)), optim.ErrFormat, "step"},
		"steps before": {adam, edited(set("step", -1)), optim.ErrFormat, "step"},
		"an option":    {adam, edited(option("momentum_decay", 0.1)), optim.ErrUnexpected, "momentum_decay"},
		"no learning rate": {adam, edited(func(d *optim.StateDict) { delete(d.ParamGroups[0], "lr") }),
			optim.ErrMissing, "lr"},
		"a word as a rate": {adam, edited(option("lr", "fast")), optim.ErrFormat, "lr"},
		"a rate below 0":   {adam, edited(option("lr", -1.0)), optim.ErrFormat, "at least 0"},
		"three betas":      {adam, edited(option("betas", []any{0.1, 0.2, 0.3})), optim.ErrFormat, "betas"},
		"a beta of 1": {adam, edited(option("betas", pickle.Tuple{1.0, 0.5})), optim.ErrFormat,
			"betas 1 and 0.5"},
		"a number as a flag": {adam, edited(option("amsgrad", 1)), optim.ErrFormat, "amsgrad"},
	} {
		o := c.into()
		before := fmt.Sprint(optim.State(o))
		err := optim.Load(o, c.state)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.err, c.says)
		}
		if errors.Is(err, optim.ErrClass) && errors.Is(err, optim.ErrUnexpected) {
			t.Errorf("%s: %v, and that is a consequence", name, err)
		}
		if after := fmt.Sprint(optim.State(o)); after != before {
			t.Errorf("%s: the optimizer was %s, and is %s", name, before, after)
		}
	}
}

func TestLoadSchedule_RefusesWhatDoesNotFit(t *testing.T) {
	load := func(like optim.Schedule, d map[string]any) error {
		_, _, err := optim.LoadSchedule(like, d)
		return err
	}
	step := optim.ScheduleState(3, optim.StepLR{LR: 1, Size: 2, Gamma: 0.5})
	with := func(d map[string]any, key string, v any) map[string]any {
		d = maps.Clone(d)
		d[key] = v
		return d
	}
	one := optim.ScheduleState(3, optim.OneCycleLR{MaxLR: 1, Steps: 10})
	cycle := optim.ScheduleState(3, optim.CyclicLR{LR: 1, MaxLR: 2, Up: 2})
	parts := []optim.Schedule{optim.ConstantLR{LR: 1, Factor: 0.5, Epochs: 1}, optim.ExponentialLR{LR: 1, Gamma: 0.5}}
	seq := optim.ScheduleState(3, optim.SequentialLR{Schedules: parts, Milestones: []int{2}})
	many := optim.ScheduleState(3, optim.MultiStepLR{LR: 1, Milestones: []int{1}, Gamma: 0.5})
	for name, c := range map[string]struct {
		like  optim.Schedule
		state map[string]any
		err   error
	}{
		"another class": {optim.ExponentialLR{}, step, optim.ErrUnexpected},
		"a class with more": {optim.StepLR{}, optim.ScheduleState(3, optim.ExponentialLR{Gamma: 0.5}),
			optim.ErrMissing},
		"no groups":       {optim.StepLR{}, with(step, "base_lrs", []any{}), optim.ErrFormat},
		"a word":          {optim.StepLR{}, with(step, "base_lrs", []any{"x"}), optim.ErrFormat},
		"no epoch":        {optim.StepLR{}, with(step, "last_epoch", nil), optim.ErrFormat},
		"an epoch before": {optim.StepLR{}, with(step, "last_epoch", -1), optim.ErrFormat},
		"a size of 0":     {optim.StepLR{}, with(step, "step_size", 0), optim.ErrFormat},
		"half a size":     {optim.StepLR{}, with(step, "step_size", 0.5), optim.ErrFormat},
		"momentum":        {optim.OneCycleLR{}, with(one, "cycle_momentum", "up"), optim.ErrFormat},
		"no momentum":     {optim.CyclicLR{}, with(cycle, "cycle_momentum", true), optim.ErrFormat},
		"one phase":       {optim.OneCycleLR{}, with(one, "_schedule_phases", []any{1}), optim.ErrFormat},
		"phases of words": {optim.OneCycleLR{}, with(one, "_schedule_phases", []any{"x", "y"}), optim.ErrFormat},
		"a mode":          {optim.CyclicLR{}, with(cycle, "mode", "round"), optim.ErrFormat},
		"no cycle":        {optim.CyclicLR{}, with(cycle, "total_size", 0), optim.ErrFormat},
		"a function":      {optim.CyclicLR{}, with(cycle, "_scale_fn_custom", "f"), optim.ErrUnexpected},
		"fewer maxima":    {optim.CyclicLR{}, with(cycle, "max_lrs", []any{}), optim.ErrFormat},
		"other parts":     {optim.SequentialLR{Schedules: parts[:1]}, seq, optim.ErrFormat},
		"parts in order": {optim.SequentialLR{Schedules: []optim.Schedule{parts[1], parts[0]}}, seq,
			optim.ErrMissing},
		"no parts":        {optim.SequentialLR{Schedules: parts}, with(seq, "_schedulers", nil), optim.ErrFormat},
		"milestones":      {optim.MultiStepLR{}, with(many, "milestones", []any{1}), optim.ErrFormat},
		"many milestones": {optim.MultiStepLR{}, with(many, "milestones", map[int]int{1: 1 << 30}), optim.ErrFormat},
	} {
		if err := load(c.like, c.state); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
	plateau := &optim.ReduceLROnPlateau{LR: 1}
	state := plateau.State()
	for name, c := range map[string]struct {
		state any
		err   error
	}{
		"a schedule": {step, optim.ErrMissing},
		"two groups": {with(state, "min_lrs", []any{0, 0}), optim.ErrGroups}, "nothing": {nil, optim.ErrFormat},
		"a factor of 1": {with(state, "factor", 1), optim.ErrFormat},
		"a mode":        {with(state, "mode", "mean"), optim.ErrFormat},
	} {
		if err := plateau.Load(c.state); !errors.Is(err, c.err) || plateau.LR != 1 {
			t.Errorf("plateau of %s: %v, want %v", name, err, c.err)
		}
	}
}

func TestState_PanicsOfWhatHasNone(t *testing.T) {
	_, seq := one(1)
	sgd := optim.NewSGD(seq, optim.SGDOptions{LR: 1})
	for name, f := range map[string]func(){
		"another's optimizer": func() { optim.State(optim.Groups{struct{ optim.Optimizer }{sgd}}) },
		"two schedules":       func() { optim.State(sgd, optim.StepLR{Size: 1}, optim.StepLR{Size: 1}) },
		"no schedules":        func() { optim.ScheduleState(0) },
		"different ones":      func() { optim.ScheduleState(0, optim.StepLR{Size: 1}, optim.StepLR{Size: 2}) },
		"a mode of none":      func() { optim.ScheduleState(0, optim.CyclicLR{Up: 1, Halve: true, Gamma: new(0.5)}) },
		"another's schedule":  func() { optim.ScheduleState(0, struct{ optim.Schedule }{optim.StepLR{Size: 1}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			f()
		}()
	}
}

// FuzzLoad reads pickles as state dicts: with what is accepted a step can be taken.
func FuzzLoad(f *testing.F) {
	for _, o := range func() []optim.Optimizer { all, _ := optimizers(1); return all }() {
		o.Step()
		b, err := pt.Marshal(optim.State(o), pt.MarshalOptions{})
		testutil.NoError(f, err)
		f.Add(b)
	}
	for _, s := range []optim.Schedule{optim.StepLR{LR: 1, Size: 2, Gamma: 0.5},
		optim.OneCycleLR{MaxLR: 1, Steps: 10}, optim.CyclicLR{LR: 1, MaxLR: 2, Up: 2}} {
		b, err := pt.Marshal(optim.ScheduleState(3, s), pt.MarshalOptions{})
		testutil.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := pt.Unmarshal(b)
		if err != nil {
			return
		}
		all, _ := optimizers(1)
		for _, o := range all {
			if optim.Load(o, v) == nil {
				o.Step()
			}
		}
		rates(optim.LoadSchedule(optim.StepLR{}, v))
		rates(optim.LoadSchedule(optim.OneCycleLR{}, v))
		rates(optim.LoadSchedule(optim.CyclicLR{}, v))
		rates(optim.LoadSchedule(optim.MultiStepLR{}, v))
		rates(optim.LoadSchedule(optim.CosineAnnealingWarmRestarts{}, v))
	})
}

func rates[S optim.Schedule](schedules []S, epoch int, err error) {
	for _, s := range schedules {
		optim.LR(s, epoch)
	}
}
